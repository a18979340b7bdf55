"""What only this machine shows: shells that do not come up, slow controllers, people who look on."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath

import pytest

from orchestrator.remote import local, runners
from orchestrator.remote.base import Completed, Job, RemoteError
from orchestrator.remote.local import Local
from orchestrator.remote.writers import await_no_writer

PATIENCE_S = 60


@pytest.fixture
def root(tmp_path: Path) -> PurePosixPath:
    root = PurePosixPath(tmp_path) / "root"
    Local().make_root(root, "tests")
    return root


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts another `sh` before the node's own."""

    def put(script: str) -> None:
        path = tmp_path / "bin" / "sh"
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o700)
        monkeypatch.setenv("PATH", str(path.parent), prepend=":")

    return put


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < limit, "it never came"
        time.sleep(0.02)


def test_a_runner_that_never_has_its_folder_is_ended(
    root: PurePosixPath,
    tmp_path: Path,
    shell: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shell(f"echo $$ >{tmp_path}/pid; sleep 600 & echo $! >{tmp_path}/child; wait")
    monkeypatch.setattr(runners, "_START_S", 1.0)
    with pytest.raises(RemoteError, match="the runner made no folder"):
        Local().start(Job(root / "work", ("true",), 60))
    for name in ("pid", "child"):
        pid = int((tmp_path / name).read_text())
        until(partial(is_gone, pid))


def command(pid: int) -> bytes:
    """Empty once a process is a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_gone(pid: int) -> bool:
    return not command(pid)


def test_a_runner_that_ends_without_its_folder_is_refused(
    root: PurePosixPath, shell: Callable[[str], None]
) -> None:
    shell("exit 9")
    with pytest.raises(RemoteError, match="the runner made no folder"):
        Local().start(Job(root / "work", ("true",), 60))


def test_a_job_that_has_ended_before_we_looked_was_started(
    root: PurePosixPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Local()
    reap = node._runners.reap

    def late() -> None:
        until(lambda: node.get(root / "work" / "job" / "exit") is not None)
        time.sleep(0.1)
        reap()

    monkeypatch.setattr(node._runners, "reap", late)
    job = Job(root / "work", ("true",), 60)
    node.start(job)
    assert node.inspect(job).exit == 0


@pytest.fixture
def looking_on(root: PurePosixPath) -> Iterator[int]:
    """A process with a terminal of its own, standing in our folder."""
    terminal, inner = os.openpty()
    with subprocess.Popen(["setsid", "-c", "sleep", "600"], cwd=root, stdin=inner) as person:
        os.close(inner)
        until(lambda: command(person.pid).startswith(b"sleep"))
        yield person.pid
        person.kill()
    os.close(terminal)


def test_a_person_who_looks_on_is_left_alone(root: PurePosixPath, looking_on: int) -> None:
    node = Local()
    job = Job(root / "work", ("sleep", "600"), 60)
    node.start(job)
    until(lambda: node.inspect(job).pid is not None)
    node.end(root)
    assert node.processes_under(root) == (looking_on,)


def test_a_program_that_another_process_may_still_write_to_is_waited_for(root: PurePosixPath) -> None:
    path = Path(root) / "program"
    Local().put(b"#!/bin/sh\nexit 0\n", PurePosixPath(path), executable=True)
    with path.open("ab") as writer:  # as a process has it that is begun meanwhile
        other = subprocess.Popen(["sleep", "0.3"], pass_fds=[writer.fileno()])
    with other:
        assert Local().run([str(path)], deadline_s=PATIENCE_S).exit == 126
        await_no_writer(path)
        assert Local().run([str(path)], deadline_s=PATIENCE_S).exit == 0


def test_what_is_put_as_a_program_runs_whatever_else_is_begun_meanwhile(root: PurePosixPath) -> None:
    done = threading.Event()

    def begin() -> None:
        while not done.is_set():
            assert Local().run(["true"], deadline_s=PATIENCE_S).exit == 0

    others = [threading.Thread(target=begin) for _ in range(2)]
    for other in others:
        other.start()
    try:
        for _ in range(50):
            Local().put(b"#!/bin/sh\nexit 0\n", root / "program", executable=True)
            assert Local().run([str(root / "program")], deadline_s=PATIENCE_S) == Completed(0, b"", b"")
    finally:
        done.set()
        for other in others:
            other.join()


def test_what_no_signal_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a tool does that hangs in a driver; none can be made here, so the signal is what does not come."""
    node = Local()
    meant: list[int] = []
    monkeypatch.setattr(local, "_END_S", 0.05)
    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", lambda group, _: meant.append(group))
        assert node.run(["sleep", str(PATIENCE_S)], deadline_s=0.05).exit is None
    os.killpg(meant[0], signal.SIGKILL)
    while Path(f"/proc/{meant[0]}").exists():  # until a later command reaps it
        assert node.run(["true"], deadline_s=PATIENCE_S).exit == 0
