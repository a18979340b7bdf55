"""The runner under the shells that nodes have: nothing in it may need more than POSIX gives."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import pytest

from orchestrator.remote.base import Job, JobState, RemoteError
from orchestrator.remote.local import Local

TOOLS = ("sh", "setsid", "sleep", "mkdir", "mv", "cat", "head")
PATIENCE_S = 60


def dash(_bin: Path) -> str | None:
    return shutil.which("dash")


def busybox(bin_: Path) -> str | None:
    """A node with no other tools than BusyBox's."""
    found = shutil.which("busybox")
    for tool in TOOLS if found else ():
        (bin_ / tool).symlink_to(found or "")
    return found


@pytest.fixture(params=[dash, busybox], ids=["dash", "busybox"])
def node(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Local]:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    shell = request.param(bin_)
    if shell is None:
        pytest.skip(f"{request.node.callspec.id} is not installed")
    if not (bin_ / "sh").exists():
        (bin_ / "sh").symlink_to(shell)
        monkeypatch.setenv("PATH", str(bin_), prepend=":")
    else:
        monkeypatch.setenv("PATH", str(bin_))
    node = Local()
    node.make_root(PurePosixPath(tmp_path) / "root", "tests")
    yield node
    for pid in node.processes_under(PurePosixPath(tmp_path)):
        os.kill(pid, signal.SIGKILL)


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < limit, "it never came"
        time.sleep(0.02)


def started(node: Local, folder: Path, script: str, deadline_s: int = 60, grace_s: int = 1) -> Job:
    job = Job(PurePosixPath(folder) / "root" / "work", ("sh", "-c", script), deadline_s, grace_s)
    node.start(job)
    return job


def ended(node: Local, job: Job) -> JobState:
    until(lambda: node.inspect(job).status != "running")
    until(lambda: node.processes_under(job.folder) == ())
    return node.inspect(job)


@pytest.mark.parametrize("code", [0, 1, 255])
def test_exit_codes_and_output(node: Local, tmp_path: Path, code: int) -> None:
    job = started(node, tmp_path, f"echo out; echo err >&2; exit {code}", deadline_s=3600)
    assert ended(node, job).exit == code
    assert node.get(job.folder / "job" / "stdout") == b"out\n"
    assert node.get(job.folder / "job" / "stderr") == b"err\n"
    assert node.list(job.folder / "job") == ("exit", "pid", "stderr", "stdout")


def test_signals(node: Local, tmp_path: Path) -> None:
    assert ended(node, started(node, tmp_path, "kill -SEGV $$")).exit == 128 + signal.SIGSEGV


def test_the_identity_that_it_notes(node: Local, tmp_path: Path) -> None:
    job = started(node, tmp_path, "exec sleep 60")
    until(lambda: node.inspect(job).pid is not None)
    state = node.inspect(job)
    assert state.status == "running"
    fields = Path(f"/proc/{state.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    # its own group and session, and the time of its start
    assert fields[2:4] == [str(state.pid)] * 2
    assert int(fields[19]) == state.start_ticks
    node.signal(job, signal.SIGTERM)
    assert ended(node, job).exit == 128 + signal.SIGTERM


def test_a_name_with_blanks_and_parentheses_hides_no_start_time(node: Local, tmp_path: Path) -> None:
    program = tmp_path / "a) b (c"
    program.write_bytes(b"#!/bin/sh\nwhile :; do sleep 0.1; done\n")
    program.chmod(0o700)
    job = Job(PurePosixPath(tmp_path) / "root" / "work", (str(program),), 60)
    node.start(job)
    until(lambda: node.inspect(job).pid is not None)
    assert (node.inspect(job).start_ticks or 0) > 0
    node.signal(job, signal.SIGKILL)
    assert ended(node, job).exit == 128 + signal.SIGKILL


def test_deadlines(node: Local, tmp_path: Path) -> None:
    script = "trap '' TERM; sleep 600 & while :; do sleep 0.1; done"
    assert ended(node, started(node, tmp_path, script, deadline_s=1)).exit == 128 + signal.SIGKILL


def test_a_start_is_one_start(node: Local, tmp_path: Path) -> None:
    for _ in range(3):
        job = started(node, tmp_path, "echo ran >>count; sleep 0.2")
    assert ended(node, job).exit == 0
    assert node.get(job.folder / "count") == b"ran\n"


def test_what_is_left_in_the_group_ends(node: Local, tmp_path: Path) -> None:
    assert ended(node, started(node, tmp_path, "(trap '' TERM; exec sleep 600) & exit 7")).exit == 7


def test_a_folder_that_cannot_be_is_refused(node: Local, tmp_path: Path) -> None:
    (tmp_path / "root" / "work").write_text("a file", encoding="utf-8")
    with pytest.raises(RemoteError, match="work"):
        started(node, tmp_path, "exit 0")
