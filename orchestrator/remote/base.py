"""What the engine may ask of a node, whatever the way to it.

A *job* is one role program started under `runner.sh`, detached from the controller: it outlives it, writes
its exit code to a file, and is known by pid, start time and boot id. Starting is idempotent by job folder.
Knows no lane and no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from orchestrator.errors import Label, OrchError


class RemoteError(OrchError):
    """An operation on a node failed for a reason of the node's; the message names node, path and cause.

    Attributes:
        label: the refusal's name, where it has one; `str()` begins with it.
        cause: the message alone, for another one that tells what it led to.
    """

    def __init__(self, message: str, label: Label | None = None, *, hint: str = "") -> None:
        self.label = label
        self.cause = message
        told = f"{message}; {hint}" if hint else message
        super().__init__(told if label is None else f"{label}: {told}")


class UnreachableError(RemoteError):
    """There is no way to the node now. That may pass, and every operation may then be tried again."""

    exit_code = 4

    def __init__(self, message: str, label: Label = Label.UNREACHABLE, *, hint: str = "") -> None:
        super().__init__(message, label, hint=hint)


class NotPlainError(RemoteError):
    """What lies under a name is no regular file, or a larger one than was asked for."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Label.NOT_PLAIN)


class NodeLostError(RemoteError):
    """A node was unreachable for longer than its grace. What runs on it is not known."""

    exit_code = 4

    def __init__(self, message: str, label: Label = Label.NODE_LOST) -> None:
        super().__init__(message, label)


MOST_BYTES = 4 << 30
"""No file is read that is larger: all of it is held in memory."""
MOST_COUNTED = 2**53 - 1
"""Some file systems and control groups call without a bound what is larger; no JSON number holds it."""


def counted(said: int | None) -> int | None:
    """A number of bytes or names as far as it can be written down."""
    return None if said is None else min(said, MOST_COUNTED)


@dataclass(frozen=True)
class Completed:
    """A command that ran to its end on a node.

    Attributes:
        exit: its exit code; 128 + N when signal N ended it, 126 or 127 when it could not be started, None if
            no status came back or the deadline ended it.
        stdout: all that it wrote, up to its end.
        stderr: likewise.
    """

    exit: int | None
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True)
class NodeFacts:
    """What a node says of itself; None where it does not say.

    Attributes:
        machine: `uname -m`.
        kernel: `uname -r`.
        hostname: as the node calls itself.
        boot_id: changes with every boot.
        cpus: usable processors.
        memory_bytes: physical memory.
        quota_bytes: what this user's processes may use together: the smallest of the control groups' limits
            and physical memory.
    """

    machine: str
    kernel: str
    hostname: str
    boot_id: str
    cpus: int
    memory_bytes: int | None
    quota_bytes: int | None


@dataclass(frozen=True)
class Room:
    """What is left of a file system for this user; None where it does not say or has no such bound."""

    free_bytes: int | None
    free_inodes: int | None


@dataclass(frozen=True)
class Clock:
    """A node's wall clock against the controller's.

    Attributes:
        offset_ns: what the node's clock shows more.
        error_ns: by how much the offset may be wrong, either way.
    """

    offset_ns: int
    error_ns: int


@dataclass(frozen=True)
class Job:
    """One role program to run.

    It begins with no other environment than the node's PATH and HOME, `LC_ALL=C`, and what is named here;
    the later wins.

    Attributes:
        folder: work folder on the node; the job's own files are under `job/` in it.
        argv: program and arguments.
        deadline_s: after this the runner ends it, whoever else is gone.
        grace_s: seconds between TERM and KILL.
        environment: names and values.
        inherit: names whose values are the node's own; one that the node does not have is left out.
    """

    folder: PurePosixPath
    argv: tuple[str, ...]
    deadline_s: int
    grace_s: int = 2
    environment: tuple[tuple[str, str], ...] = ()
    inherit: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobState:
    """Where a job stands.

    Attributes:
        status: `absent` (never started), `running`, `exited` (its exit code is known), or `lost` (it is gone
            and left no exit code: the runner was killed, or the node was booted anew).
        exit: exit code; 128 + N when signal N ended it.
        pid: process id of the program, None if not known.
        start_ticks: its start time in clock ticks since boot, as /proc says.
        boot_id: of the boot in which it was started.
    """

    status: str
    exit: int | None = None
    pid: int | None = None
    start_ticks: int | None = None
    boot_id: str = ""


class Tunnel(Protocol):
    """A way from a port on one node's 127.0.0.1 to a port on another's."""

    port: int

    @property
    def died(self) -> str:
        """Why it carries nothing any more; empty while it does, and after it was closed."""
        ...

    @property
    def stall_s(self) -> float:
        """The longest time, up to now, in which an end of it gave no sign of life.

        A deadline of a role that is not longer may have passed because of the tunnel.
        """
        ...

    def is_alive(self) -> bool:
        """Whether it still carries connections; once it does not, `died` says why."""
        ...

    def close(self) -> None:
        """Takes it down, with every connection through it. A second call does nothing."""
        ...


class Remote(Protocol):
    """A node. Every method raises RemoteError where the node refuses, UnreachableError where none answers."""

    name: str

    def facts(self) -> NodeFacts:
        """What the node says of itself."""
        ...

    def run(self, argv: Sequence[str], *, deadline_s: float) -> Completed:
        """Runs a short command to its end, with standard input empty and `LC_ALL=C`.

        What it left in its process group ends with it. When the deadline is over, all of it does.
        """
        ...

    def make_root(self, root: PurePosixPath, owner: str) -> None:
        """Makes the owned folder under which everything of this run lives; marks it with owner and run id.

        Its last name is the run id. It, and the folder that it is in, are made with mode 0700, or found to be
        this user's alone: no link, no other user's, writable for nobody else, nor to be renamed by others.
        One that holds anything already has to bear this very mark.
        """
        ...

    def put(self, data: bytes, path: PurePosixPath, *, executable: bool = False) -> str:
        """Writes a file (temporary name, then rename); returns the SHA-256 of what lies there now.

        Refuses a path that does not truly lie under a folder that bears our owner's mark: a root that was
        removed is not made anew by the way.
        """
        ...

    def get(self, path: PurePosixPath, *, most: int = MOST_BYTES) -> bytes | None:
        """A regular file's bytes; None if there is no such file. A link is refused, not followed.

        Raises:
            NotPlainError: it is no regular file, or has more than `most` bytes.
        """
        ...

    def tail(self, path: PurePosixPath, size: int) -> bytes:
        """The last `size` bytes of a file, fewer if it is shorter; nothing if there is no such file.

        Raises:
            NotPlainError: it is no regular file.
        """
        ...

    def list(self, folder: PurePosixPath) -> tuple[str, ...]:
        """Names in a folder, sorted; empty if there is no such folder."""
        ...

    def start(self, job: Job) -> None:
        """Starts a job, once: a second call for the same folder changes nothing.

        When it returns, the job has begun or ended: `absent` from then on means that its folder is gone.
        Refuses a folder where `put` would.
        """
        ...

    def prevent(self, job: Job) -> None:
        """Makes sure that a job which has not begun never does: a start still on its way finds it taken."""
        ...

    def inspect(self, job: Job) -> JobState:
        """Where the job stands now.

        A program that is gone under a runner that somebody stopped is `lost`: no exit code is coming.
        """
        ...

    def signal(self, job: Job, number: int) -> None:
        """Sends a signal to the job's own process group, if it is still the process that was started."""
        ...

    def end(self, folder: PurePosixPath) -> None:
        """Sends KILL to what works under a folder, runners too, until nothing is left or 2 s are over.

        Whoever has a terminal is a person who looks on, and is left alone: no job has one. Refuses a folder
        that is there and that `remove` would refuse.
        """
        ...

    def processes_under(self, folder: PurePosixPath) -> tuple[int, ...]:
        """Process ids whose working folder is this folder or lies in it, by whatever name it is reached."""
        ...

    def used_ports(self) -> frozenset[int]:
        """TCP ports that some socket on the node is bound to."""
        ...

    def ephemeral_ports(self) -> range:
        """Ports that the kernel hands to outgoing connections."""
        ...

    def remove(self, folder: PurePosixPath) -> None:
        """Removes a folder with all that is in it, links as links; one that is not there is removed already.

        Refuses a folder that neither bears our owner's mark nor truly lies under one that does.
        """
        ...

    def resolve(self, root: PurePosixPath) -> PurePosixPath:
        """Where a folder is meant: a relative one is under the home folder of the node's user."""
        ...

    def room(self, path: PurePosixPath) -> Room:
        """What is free on the file system of a folder, or of the nearest folder above it that is there."""
        ...

    def clock(self) -> Clock:
        """How far the node's wall clock is from the controller's."""
        ...

    def missing_tools(self) -> tuple[str, ...]:
        """What the node lacks of the tools that jobs, files and looks need; said as a person would."""
        ...

    def lock(self, base: PurePosixPath, run_id: str, owner: str) -> str:
        """Takes the one lock of a base folder, that no two runs work there at once.

        Whoever holds it may take it again, from another controller too. One that was left behind is taken
        over; `lock_holder` says beforehand that it was.

        Returns:
            Nothing if it is ours now, else who has it and since when, for people.
        """
        ...

    def lock_holder(self, base: PurePosixPath) -> str:
        """Who has the lock, since when, and why it counts no more if so; nothing if nobody has it."""
        ...

    def beat(self, base: PurePosixPath, run_id: str) -> None:
        """Says that the holder of the lock still works. Raises RemoteError where it is another's by now."""
        ...

    def unlock(self, base: PurePosixPath, run_id: str) -> None:
        """Gives the lock back, if this run has it."""
        ...

    def tunnel(self, to: Remote, port: int) -> Tunnel:
        """Opens a fresh port on this node's 127.0.0.1 that leads to `port` on the 127.0.0.1 of `to`."""
        ...

    def close(self) -> None:
        """Lets go of the way to the node. What runs there goes on."""
        ...
