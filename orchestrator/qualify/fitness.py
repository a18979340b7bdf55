"""What a node says of itself before anything is put there: all that would make a lane fail, in a few looks.

Changes nothing on the node. Preflight asks the same when a lane begins; `orch doctor` and `orch pods` ask it
at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from orchestrator.errors import Label
from orchestrator.probe import Inventory
from orchestrator.remote.base import Clock, NodeFacts, Remote, RemoteError, Room
from orchestrator.remote.lock import is_left_behind

DEADLINE_S: Final = 30.0
LEAST_BYTES: Final = 64 << 20
"""Room that programs, outputs and checkpoints of the shipped lanes need many times over."""
LEAST_INODES: Final = 1000
"""In what a node says of a lock that counts no more."""
# the nearest folder that is there, whether it may be written, and all mounts
_PLACE: Final = """\
d=$1
while [ ! -d "$d" ] && [ ! -L "$d" ] && [ ! -e "$d" ]; do d=${d%/*}; [ -n "$d" ] || d=/; done
cd "$d" 2>/dev/null || { printf 'no folder\\n%s\\n' "$d"; exit 0; }
if [ -w . ] && [ -x . ]; then echo yes; else echo no; fi
pwd -P
cat /proc/self/mounts 2>/dev/null || :
"""


@dataclass(frozen=True)
class Place:
    """The folder that a run's own would be made in.

    Attributes:
        folder: the nearest one that is there, links seen through.
        fault: why nothing can be made or executed in it; empty if nothing says so.
    """

    folder: PurePosixPath
    fault: str = ""


@dataclass(frozen=True)
class Examined:
    """A node as it is now.

    Attributes:
        facts: what it says of itself.
        root: the folder for everything of ours there.
        place: the nearest folder above it that is there, or itself.
        room: what is free there.
        clock: its wall clock against this machine's.
        missing: tools that are needed and not there.
        lock: who works there, and since when; empty if nobody does.
        emulators: target -> the first line that its declared emulator answers with; empty if it does not.
        cards: what it says of its cards; None if it was not asked.
    """

    facts: NodeFacts
    root: PurePosixPath
    place: Place
    room: Room
    clock: Clock
    missing: tuple[str, ...]
    lock: str
    emulators: Mapping[str, str]
    cards: Inventory | None = None


@dataclass(frozen=True)
class Fault:
    """One thing that would make a lane fail on a node."""

    label: Label
    message: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.label}: {self.message}{hint}"


def examine(node: Remote, remote_root: str, emulators: Mapping[str, str]) -> Examined:
    """Looks at a node.

    Args:
        node: it is reached.
        remote_root: as declared; a relative one is under the home folder there.
        emulators: target -> command, as declared.

    Raises:
        RemoteError: it refuses, by label, or cannot be reached.
    """
    root = node.resolve(PurePosixPath(remote_root))
    missing = node.missing_tools()
    # without its tools a node runs no command: what it has to be asked by one is asked when they are there
    place = Place(root) if missing else _place(node, root)
    asked = {} if missing else emulators
    return Examined(
        facts=node.facts(),
        root=root,
        place=place,
        room=node.room(root),
        clock=node.clock(),
        missing=missing,
        lock="" if place.fault else node.lock_holder(root),
        emulators={target: _answer(node, command) for target, command in asked.items()},
    )


def faults(seen: Examined) -> Iterator[Fault]:
    """What would make any lane fail on a node."""
    if seen.missing:
        message = f"tools are missing (got no {', '.join(seen.missing)}, expected all that jobs need)"
        yield Fault(
            Label.TOOL_MISSING, message, "install them there: coreutils, util-linux or busybox has them"
        )
    if seen.place.fault:
        message = (
            f"{seen.root} cannot be used (got {seen.place.fault}, expected a folder to write and execute in)"
        )
        yield Fault(Label.REMOTE_ROOT, message, "name another `remote_root` in the pods file")
    for free, least, what in (
        (seen.room.free_bytes, LEAST_BYTES, "bytes"),
        (seen.room.free_inodes, LEAST_INODES, "inodes"),
    ):
        if free is not None and free < least:
            message = f"no room in {seen.place.folder} (got {free} free {what}, expected {least})"
            yield Fault(
                Label.DISK_SPACE, message, "free some, or name another `remote_root` in the pods file"
            )
    for target, answer in seen.emulators.items():
        if not answer:
            message = f"the emulator for {target} does not answer (got nothing, expected its version)"
            yield Fault(Label.EMULATOR_MISSING, message, "install Debian's package qemu-user-static there")
    if seen.lock and not is_left_behind(seen.lock):
        yield Fault(
            Label.RUN_LOCKED,
            f"another run has this node (got {seen.lock}, expected none)",
            "wait, or `orch stop`",
        )


def _answer(node: Remote, command: str) -> str:
    said = node.run([command, "--version"], deadline_s=DEADLINE_S)
    return said.stdout.decode("utf-8", "replace").partition("\n")[0] if said.exit == 0 else ""


def _place(node: Remote, root: PurePosixPath) -> Place:
    said = node.run(["sh", "-c", _PLACE, "sh", str(root)], deadline_s=DEADLINE_S)
    lines = said.stdout.decode("utf-8", "replace").splitlines()
    if said.exit != 0 or len(lines) < 2:  # noqa: PLR2004 - whether, where
        raise RemoteError(f"{node.name}: cannot look at {root}: exit {said.exit}")
    folder = PurePosixPath(lines[1])
    if lines[0] == "no folder":
        return Place(folder, f"{folder}, which is no folder that can be entered")
    options = _options(folder, lines[2:])
    if "ro" in options:
        return Place(folder, f"a read-only file system at {folder}")
    if lines[0] == "no":
        return Place(folder, f"{folder}, which this user may not write")
    return Place(folder, f"a noexec mount at {folder}" if "noexec" in options else "")


def _options(folder: PurePosixPath, mounts: list[str]) -> frozenset[str]:
    """Options of the mount that a folder is on: the last of those with the longest name."""
    found: tuple[int, frozenset[str]] = (-1, frozenset())
    for line in mounts:
        fields = line.split(" ")
        if len(fields) < 4:  # noqa: PLR2004 - device, place, type, options
            continue
        place = PurePosixPath(fields[1].replace("\\040", " "))
        if folder.is_relative_to(place) and len(place.parts) >= found[0]:
            found = (len(place.parts), frozenset(fields[3].split(",")))
    return found[1]
