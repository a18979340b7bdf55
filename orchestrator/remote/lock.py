"""The lock of a base folder: what it says, when it counts no more, how it is taken.

Knows the lock's text and its rules, all by the node's own clock, which begins anew with each boot. How the
file is read and written on a node is that node's.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Protocol

from orchestrator.errors import Label
from orchestrator.remote.base import RemoteError

LOCK_NAME = ".orch-lock"
LEFT_BEHIND = "left behind"
"""How what is said of a lock begins that counts no more."""
LOCK_GRACE_S = 300
"""A holder whose process on the node is gone may come back for so long: its connection may just be cut."""
LOCK_LONGEST_S = 3600
"""A holder whose process is there says in this time that it works, or it hangs."""

_KIND = "orch-lock/v1"
_LINES = 5
_LOOKS = 10
_LOOK_S = 0.05


@dataclass(frozen=True)
class Holder:
    """Who has a lock: a run, and the process on the node that stands for its controller."""

    run_id: str
    owner: str
    pid: int
    start_ticks: int
    boot_id: str
    beat_s: float

    def text(self) -> str:
        """What the lock's file holds."""
        process = f"{self.pid} {self.start_ticks} {self.boot_id}"
        return f"{_KIND}\n{self.run_id}\n{self.owner}\n{process}\n{self.beat_s:.2f}\n"


@dataclass(frozen=True)
class LockLook:
    """One look at a lock.

    Attributes:
        text: what its file holds; None if there is none.
        alive: whether the process that it names is still that process.
        uptime_s: the node's, now.
        boot_id: the node's.
        pid: of the process that stands for this controller there.
        start_ticks: its start time.
    """

    text: str | None
    alive: bool
    uptime_s: float
    boot_id: str
    pid: int
    start_ticks: int


class LockFile(Protocol):
    """The lock's file in a base folder on a node."""

    def look(self) -> LockLook:
        """Gives what it holds, with the node's clock."""
        ...

    def make(self, text: str) -> bool:
        """Makes it, base folder too; False if it is there."""
        ...

    def replace(self, text: str) -> None:
        """Puts another text in its place, at once."""
        ...

    def free(self, text: str) -> None:
        """Takes it away if this is what it holds."""
        ...

    def relieve(self, holder: Holder) -> None:
        """Ends what stands there for an earlier controller of this run, if it does still."""
        ...


def take(file: LockFile, base: PurePosixPath, run_id: str, owner: str) -> str:
    """Takes the lock, as `Remote.lock` says."""
    owner = _plain(owner)
    for attempt in range(_LOOKS):
        look = file.look()
        ours = Holder(run_id, owner, look.pid, look.start_ticks, look.boot_id, look.uptime_s).text()
        if look.text is None:
            if file.make(ours):
                return ""
            continue
        holder = parse(look.text)
        if holder is None and attempt < _LOOKS // 2:  # it is being written, or never was to its end
            time.sleep(_LOOK_S)
        elif holder is None:
            file.free(look.text)
        elif holder.run_id == run_id:
            file.replace(ours)
            file.relieve(holder)
            return ""
        elif _stale(holder, look):
            file.free(look.text)
        else:
            return _described(holder, look)
    return f"somebody who takes it again and again in {base}"


def described(file: LockFile) -> str:
    """Says who has the lock, as `Remote.lock_holder` says."""
    look = file.look()
    if look.text is None:
        return ""
    holder = parse(look.text)
    return f"{LEFT_BEHIND}: a lock that is not whole" if holder is None else _described(holder, look)


def beat(file: LockFile, base: PurePosixPath, run_id: str) -> None:
    """Notes that the holder works.

    Raises:
        RemoteError: the lock is another's by now.
    """
    look = file.look()
    holder = None if look.text is None else parse(look.text)
    if holder is None or holder.run_id != run_id:
        got = "no lock" if holder is None else _described(holder, look)
        raise RemoteError(
            f"the lock of {base} is not ours any more (got {got}, expected {run_id})", Label.RUN_LOCKED
        )
    now = replace(
        holder,
        pid=look.pid,
        start_ticks=look.start_ticks,
        boot_id=look.boot_id,
        beat_s=look.uptime_s,
    )
    file.replace(now.text())


def give_back(file: LockFile, run_id: str) -> None:
    """Frees the lock if this run has it."""
    look = file.look()
    holder = None if look.text is None else parse(look.text)
    if look.text is not None and holder is not None and holder.run_id == run_id:
        file.free(look.text)


def parse(text: str) -> Holder | None:
    """Reads a lock; None if it is not whole."""
    lines = text.split("\n")
    if len(lines) != _LINES + 1 or lines[0] != _KIND or lines[-1]:
        return None
    try:
        pid, ticks, boot = lines[3].split(" ")
        return Holder(lines[1], lines[2], int(pid), int(ticks), boot, float(lines[4]))
    except ValueError:
        return None


def _stale(holder: Holder, look: LockLook) -> str:
    """Says why a lock counts no more; nothing if it does."""
    age = look.uptime_s - holder.beat_s
    if holder.boot_id != look.boot_id:
        return "the node was booted anew since"
    if not look.alive and age > LOCK_GRACE_S:
        return f"its process is gone and it was silent for {age:.0f} s"
    if age > LOCK_LONGEST_S:
        return f"it was silent for {age:.0f} s"
    return ""


def _described(holder: Holder, look: LockLook) -> str:
    why = _stale(holder, look)
    if holder.boot_id != look.boot_id:
        age = "of an earlier boot"
    else:
        age = f"last heard {max(0.0, look.uptime_s - holder.beat_s):.0f} s ago"
    of = f" of {_plain(holder.owner)}" if holder.owner else ""
    state = f"{LEFT_BEHIND} ({why}): " if why else ""
    return f"{state}run {_plain(holder.run_id)}{of}, {age}"


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def is_left_behind(described: str) -> bool:
    """Says whether a lock, as `Remote.lock_holder` says it, counts no more."""
    return described.startswith(LEFT_BEHIND)


def is_held_for(described: str, run_id: str) -> bool:
    """Says whether a lock, as `Remote.lock_holder` says it, is this run's."""
    return described.partition("run ")[2].startswith((f"{run_id} ", f"{run_id},"))
