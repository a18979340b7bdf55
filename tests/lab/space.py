"""Namespaces of a node's own: mounts, process ids and, where asked for, network.

They hang on one process and are gone with it, whatever ends the tests: no name of theirs outlives them.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PATIENCE_S = 60
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# the first process waits, and takes what its children leave behind
FIRST = "echo ready; while :; do sleep 3600 & wait $!; done"
PRIVATE = ("--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private")
# what a test's own process starts ends with it
BOUND = ("setpriv", "--pdeathsig", "KILL")


@functools.cache
def missing() -> str:
    """Why no namespaces can be made here; empty where they can."""
    if os.geteuid() != 0:
        return "namespaces need root"
    for tool in ("unshare", "nsenter", "setpriv", "ip"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    tried = subprocess.run(
        ["unshare", "--net", *PRIVATE, "true"], capture_output=True, text=True, check=False
    )
    return f"namespaces cannot be made here: {tried.stderr.strip()}" if tried.returncode else ""


def need_spaces() -> None:
    """Skips the test where no namespaces can be made."""
    if why := missing():
        pytest.skip(why)


@dataclass(frozen=True)
class Space:
    """A set of namespaces; `init` is the pid, outside, of the first process in it."""

    init: int
    holder: subprocess.Popen[str] = field(repr=False)

    def inside(self, *argv: str) -> tuple[str, ...]:
        """The command that runs `argv` in here."""
        return (*BOUND, "nsenter", "-t", str(self.init), "-m", "-p", "-n", "--", *argv)

    def seen(self, path: Path | str) -> Path:
        """A path in here, as seen from outside."""
        return Path(f"/proc/{self.init}/root") / str(path).lstrip("/")

    def pids(self) -> tuple[int, ...]:
        """Every process in here but the first and what it waits on."""
        mine = Path(f"/proc/{self.init}/ns/pid").readlink()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "ns/pid").readlink() == mine and not self._waits(process):
                    found.append(int(process.name))
            except OSError:  # it is gone already
                continue
        return tuple(sorted(found))

    def _waits(self, process: Path) -> bool:
        parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
        command = (process / "cmdline").read_bytes().split(b"\0")
        return int(process.name) == self.init or (
            int(parent) == self.init and command[:2] == [b"sleep", b"3600"]
        )


@contextmanager
def space(commands: Sequence[Sequence[str]] = (), *, network: bool = False) -> Iterator[Space]:
    """Makes namespaces, runs `commands` in them first, and ends all that is in there afterwards."""
    script = "\n".join(["set -e", *(shlex.join(command) for command in commands), "set +e", FIRST])
    own = ("--net",) if network else ()
    holder = subprocess.Popen(
        [*BOUND, "unshare", *own, *PRIVATE, "/bin/sh", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
        # as providers do: a pod's variables go to its first process, and no login sees them
        env={"PATH": SYSTEM_PATH, "LC_ALL": "C", "POD_ID": "of the first  process"},
        start_new_session=True,
    )
    assert holder.stdout is not None
    assert holder.stderr is not None
    init = None
    try:
        ready = holder.stdout.readline()
        assert ready == "ready\n", holder.stderr.read()
        init = int(Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text())
        yield Space(init, holder)
    finally:
        # the first process takes all others with it, and unshare waits for it
        os.kill(init or holder.pid, signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
        holder.stderr.close()


def until(condition: object, what: str) -> None:
    """Waits for what must come; the limit only ends a test that has failed."""
    assert callable(condition)
    limit = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < limit, f"it never came: {what}"
        time.sleep(0.02)
