"""A node under test, asked only what the protocol offers; commands of POSIX show and make the rest."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from orchestrator.remote.base import Job, JobState, Remote

PATIENCE_S = 60


def until(condition: Callable[[], bool]) -> None:
    """Waits for what must come; the limit only ends a test that has failed."""
    limit = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < limit, "it never came"
        time.sleep(0.02)


@dataclass(frozen=True)
class Bench:
    """A node and a root of ours on it."""

    remote: Remote
    root: PurePosixPath

    def said(self, *argv: str) -> str:
        done = self.remote.run(argv, deadline_s=30)
        assert done.exit == 0, done
        return done.stdout.decode().strip()

    def job(self, script: str, *, name: str = "work", deadline_s: int = 60, grace_s: int = 1) -> Job:
        return Job(self.root / name, ("sh", "-c", script), deadline_s, grace_s)

    def start(self, script: str, *, name: str = "work", deadline_s: int = 60, grace_s: int = 1) -> Job:
        job = self.job(script, name=name, deadline_s=deadline_s, grace_s=grace_s)
        self.remote.start(job)
        return job

    def ended(self, job: Job) -> JobState:
        until(lambda: self.remote.inspect(job).status != "running")
        return self.remote.inspect(job)

    def running(self, job: Job) -> JobState:
        """The job's state once its program is known."""
        until(lambda: self.remote.inspect(job).pid is not None)
        state = self.remote.inspect(job)
        assert state.status == "running"
        return state

    def file(self, name: str) -> bytes | None:
        return self.remote.get(self.root / name)

    def wait_for(self, name: str) -> bytes:
        until(lambda: bool(self.file(name)))
        return self.file(name) or b""

    def alive(self, pid: int) -> bool:
        done = self.remote.run(["grep", "-q", "^State:.[^ZX]", f"/proc/{pid}/status"], deadline_s=10)
        return done.exit == 0

    def quiet(self) -> bool:
        return self.remote.processes_under(self.root) == ()
