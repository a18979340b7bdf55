"""Jobs' runners on this machine: how one is started and found again, and what environment a job begins with.

Knows `runner.sh`'s command line. Must not know what a job's notes say.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from orchestrator.remote import proc
from orchestrator.remote.base import Job, RemoteError

RUNNER = Path(__file__).with_name("runner.sh")
PASSED_ON = "ORCH_SET_"
"""Before the name of what the program gets: nothing that it is to have reaches the runner's own tools."""

_LOOK_S = 0.001
_START_S = 10.0
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_FILES = [(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_RDWR, 0) for descriptor in (0, 1, 2)]
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class Runners:
    """Runners that this controller started, so that they are reaped and leave no zombie."""

    def __init__(self) -> None:
        self._started: set[int] = set()

    def start(self, job: Job) -> bool:
        """Starts a job in a session of its own and waits until it has its folder; False if it makes none.

        Raises:
            OSError: the system refuses.
        """
        made = Path(job.folder) / "job"
        passed = set_for(job, os.environ)
        argv = [*_begins(job), str(job.deadline_s), str(job.grace_s), " ".join(passed), *job.argv]
        clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environment = {
            **clean,
            "LC_ALL": "C",
            **{PASSED_ON + name: value for name, value in passed.items()},
        }
        runner = os.posix_spawnp(
            argv[0], argv, environment, file_actions=_NO_FILES, setsid=True, setsigdef=_IGNORED_BY_PYTHON
        )
        self._started.add(runner)
        limit = time.monotonic() + _START_S
        while not made.exists():
            self.reap()
            if runner in self._started and time.monotonic() < limit:
                time.sleep(_LOOK_S)
            elif not made.exists():  # it may have made it and ended between the two looks
                self._give_up(runner)
                return False
        return True

    def _give_up(self, runner: int) -> None:
        """Ends a runner that we started, with all that it started before it had its folder."""
        if runner in self._started:
            os.killpg(runner, signal.SIGKILL)
            os.waitpid(runner, 0)
            self._started.discard(runner)

    def of(self, job: Job) -> int | None:
        """The shell that watches this job, at the head of its own process group; None if it is gone.

        Its watchdog bears the same command line, and may outlive a runner that was killed.
        """
        self.reap()
        wanted = _begins(job)
        for pid in proc.pids():
            with suppress(ProcessLookupError):
                if proc.cmdline(pid)[: len(wanted)] == wanted and os.getpgid(pid) == pid:
                    return pid
        return None

    def reap(self) -> None:
        """Takes note of those that have ended."""
        self._started -= {runner for runner in self._started if _ended(runner)}


def set_for(job: Job, own: Mapping[str, str]) -> dict[str, str]:
    """What a job's program finds set beside PATH, HOME and LC_ALL, by a node whose environment is `own`.

    Raises:
        RemoteError: a name or value that no environment can hold.
    """
    demand_names(job)
    return {name: own[name] for name in job.inherit if name in own} | dict(job.environment)


def demand_names(job: Job) -> None:
    """Refuses names and values that no shell or environment can hold.

    Raises:
        RemoteError: there is one.
    """
    for name in (*job.inherit, *(name for name, _ in job.environment)):
        if _NAME.fullmatch(name) is None:
            raise RemoteError(f"no variable can be called so (got {name!r}, expected letters, digits and _)")
    for name, value in job.environment:
        if "\0" in value:
            raise RemoteError(f"no variable can hold this (got a NUL in {name}, expected none)")


def _begins(job: Job) -> list[str]:
    """How the command line of a job's runner begins; no other job's begins so."""
    return ["sh", str(RUNNER), str(job.folder)]


def _ended(child: int) -> bool:
    try:
        return os.waitpid(child, os.WNOHANG)[0] == child
    except ChildProcessError:  # reaped already
        return True
