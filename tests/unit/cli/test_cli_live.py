from __future__ import annotations

import os
import pty
import termios

from rich.console import Console

from evidence.event import GENESIS, Event
from orchestrator.cli.live import LiveView, PlainView, Progress, live_view


def event(kind: str, **data: object) -> Event:
    return Event("run", 1, f"orch.{kind}", "lane", "2026-01-01T00:00:00.000000Z", 1, GENESIS, data)


STORY = (
    event("lane.started", lane="first"),
    event("step.started", step="split", attempt=1),
    event("launch.started", step="split", attempt=1, launch="run"),
    event("attempt.failed", step="split", attempt=1, reason="no exit code came back from worker"),
    event("step.started", step="split", attempt=2),
    event("launch.started", step="split", attempt=2, launch="again"),
)


def test_a_step_is_followed_through_its_attempts():
    progress = Progress()
    for each in STORY:
        progress.event(each)
    (step,) = progress.steps.values()
    assert (step.name, step.attempt, step.launch, step.verdict) == ("split", 2, "again", "")
    progress.update("split", "again", {"root": (7, 0.5), "worker": (6, 0.75)})
    assert step.detail == "again  loss 0.5  root 7  worker 6"
    progress.event(event("launch.finished", step="split", attempt=2, launch="again"))
    assert step.detail == "no exit code came back from worker"
    progress.event(event("step.judged", step="split", verdict="pass"))
    assert step.verdict == "pass"
    assert step.seconds == step.elapsed_s


def test_a_log_gets_a_line_for_what_begins_fails_and_is_judged(capsys):
    view = PlainView()
    for each in (*STORY, event("step.judged", step="split", verdict="fail")):
        view.event(each)
    view.progress("split", "again", {"root": (7, 0.5)})
    view.note("the tracker cannot be written")
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[:3] == [
        "split: started",
        "split: attempt 1 failed: no exit code came back from worker",
        "split: started, attempt 2",
    ]
    assert lines[3].startswith("split: fail (")
    assert lines[4:] == ["the tracker cannot be written"]


def test_a_frame_shows_every_step_and_what_runs_now():
    view = LiveView()
    for each in (*STORY, event("step.started", step="evaluate", attempt=1)):
        view.event(each)
    view.progress("split", "again", {"root": (7, 0.5)})
    view.event(event("step.judged", step="evaluate", verdict="unknown"))
    console = Console(width=100, force_terminal=False, color_system=None)
    with console.capture() as capture:
        console.print(view)
    first, second = capture.get().splitlines()
    assert "split" in first
    assert "attempt 2  again  loss 0.5  root 7" in first
    assert second.startswith("unknown  evaluate")


def test_ctrl_c_writes_nothing_among_the_live_lines_and_the_terminal_is_as_before(monkeypatch):
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal, os.fdopen(ours, "rb"):
        monkeypatch.setattr("sys.stderr", terminal)
        with live_view() as view:
            assert isinstance(view, LiveView)
            assert not termios.tcgetattr(terminal)[3] & termios.ECHOCTL
        assert termios.tcgetattr(terminal) == before
        assert before[3] & termios.ECHOCTL
