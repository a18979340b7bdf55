"""Folders that are a run's own: made so that nobody else can put anything into them.

Knows who may write to a folder, or put another in its place, and the mark that says whose and which run's it
is; how folders are reached on a node is handed in. Must not know what lies in them.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from evidence.files import part_name, read_bounded, write_whole

OWNER_MARK = ".orch-owner"
MOST_OF_A_MARK = 4096


@dataclass(frozen=True)
class Standing:
    """What lies under a name, links not followed: whether it is a folder, whose, and its permissions."""

    is_folder: bool
    uid: int
    mode: int


class Folders(Protocol):
    """Folders of a node, as its user sees them."""

    def user(self) -> int:
        """This user's number."""
        ...

    def make(self, *folders: PurePosixPath) -> None:
        """Makes each, mode 0700, where nothing is."""
        ...

    def look(self, *folders: PurePosixPath) -> tuple[Standing, ...]:
        """What lies there."""
        ...

    def resolve(self, folder: PurePosixPath) -> PurePosixPath:
        """Where a folder truly lies."""
        ...

    def names(self, folder: PurePosixPath) -> frozenset[str]:
        """What is in it."""
        ...

    def read(self, path: PurePosixPath) -> bytes | None:
        """A small file; None if there is none."""
        ...

    def write(self, path: PurePosixPath, data: bytes) -> None:
        """Writes a small file at once."""
        ...


class LocalFolders:
    """Folders of this machine. Its methods raise OSError."""

    def user(self) -> int:
        """This process's."""
        return os.getuid()

    def make(self, *folders: PurePosixPath) -> None:
        """Of some folders that are there, systems say that they cannot be made: those are not tried."""
        for folder in folders:
            if not os.path.lexists(folder):
                with suppress(FileExistsError):
                    Path(folder).mkdir(mode=0o700)

    def look(self, *folders: PurePosixPath) -> tuple[Standing, ...]:
        """From lstat."""
        found = [Path(folder).lstat() for folder in folders]
        return tuple(Standing(stat.S_ISDIR(s.st_mode), s.st_uid, stat.S_IMODE(s.st_mode)) for s in found)

    def resolve(self, folder: PurePosixPath) -> PurePosixPath:
        """Through every link."""
        return PurePosixPath(Path(folder).resolve())

    def names(self, folder: PurePosixPath) -> frozenset[str]:
        """All of them."""
        return frozenset(entry.name for entry in Path(folder).iterdir())

    def read(self, path: PurePosixPath) -> bytes | None:
        """Bounded; no link is followed."""
        try:
            return read_bounded(Path(path), MOST_OF_A_MARK)
        except FileNotFoundError:
            return None

    def write(self, path: PurePosixPath, data: bytes) -> None:
        """Durably."""
        write_whole(Path(path), data)


def own_root() -> Path:
    """Gives the folder in which every run of this user on this machine has its root."""
    return Path(tempfile.gettempdir()) / f"orch-{os.getuid()}"


def mark_of(owner: str, run_id: str) -> bytes:
    """Gives what the mark of a run's root holds."""
    return f"{owner}\n{run_id}\n".encode()


def make(folders: Folders, root: PurePosixPath, owner: str) -> str | None:
    """Makes a root and the folder that it is in, mode 0700, or finds them so; marks it if nothing is in it.

    Returns:
        Why it is no root of this owner's for the run that it is named after; None if it is one.

    Raises:
        OSError, RemoteError: the system refuses.
    """
    if fault := make_base(folders, root.parent) or _make_own(folders, root):
        return fault
    mark = mark_of(owner, root.name)
    if folders.names(root) <= {part_name(OWNER_MARK)}:
        folders.write(root / OWNER_MARK, mark)
        return None
    found = folders.read(root / OWNER_MARK)
    if found != mark:
        got = "none" if found is None else repr(found.decode("utf-8", "backslashreplace"))
        return f"{root} was made for another run (got mark {got}, expected {mark.decode()!r})"
    return None


def make_base(folders: Folders, base: PurePosixPath) -> str | None:
    """Makes the folder that roots are in, mode 0700, or finds it so.

    Returns:
        Why it is not safe there from others; None if it is.

    Raises:
        OSError, RemoteError: the system refuses.
    """
    folders.make(*reversed(base.parents))
    above = folders.resolve(base.parent)
    passage = (above, *above.parents)
    for folder, found in zip(passage, folders.look(*passage), strict=True):
        if found.mode & stat.S_IWOTH and not found.mode & stat.S_ISVTX:
            fault = f"got mode {found.mode:04o} of {folder}, expected no writing for others"
            return f"others can put another folder in place of {base} ({fault})"
    return _make_own(folders, base)


def _make_own(folders: Folders, folder: PurePosixPath) -> str | None:
    folders.make(folder)
    (found,) = folders.look(folder)
    fault = _fault(found, folders.user())
    return f"{folder} is not a folder of this user's alone ({fault})" if fault else None


def _fault(found: Standing, user: int) -> str | None:
    """Says how somebody else could write into a folder."""
    if not found.is_folder:
        return "got a link or file, expected a folder"
    if found.uid != user:
        return f"got uid {found.uid}, expected {user}"
    if found.mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"got mode {found.mode:04o}, expected one in which only its owner can write"
    return None


def is_marked(folder: Path) -> bool:
    """Says whether a folder of this machine bears a mark of this user's, for whichever run."""
    try:
        status = (folder / OWNER_MARK).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()


def run_of(root: Path) -> str | None:
    """Gives the run that a root of this machine was made for; None where it is no root of this user's."""
    folders = LocalFolders()
    try:
        (found,) = folders.look(PurePosixPath(root))
        is_ours = is_marked(root) and not _fault(found, folders.user())
        mark = folders.read(PurePosixPath(root) / OWNER_MARK) if is_ours else None
    except OSError:
        return None
    return mark.decode("utf-8", "replace").rstrip("\n").rpartition("\n")[2] if mark else None
