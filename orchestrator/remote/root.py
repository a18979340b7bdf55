"""Folders on this machine that are a run's own: made so that nobody else can put anything into them.

Knows who may write to a folder, or put another in its place, and the mark that says whose and which run's it
is. Must not know what lies in them.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from evidence.files import part_name, read_bounded, write_whole

OWNER_MARK = ".orch-owner"
_MOST_OF_A_MARK = 4096


def own_root() -> Path:
    """Gives the folder in which every run of this user on this machine has its root."""
    return Path(tempfile.gettempdir()) / f"orch-{os.getuid()}"


def make(root: Path, owner: str) -> str | None:
    """Makes a root and the folder that it is in, mode 0700, or finds them so; marks it if nothing is in it.

    Returns:
        Why it is no root of this owner's for the run that it is named after; None if it is one.

    Raises:
        OSError: the system refuses.
    """
    if fault := make_base(root.parent) or _make_own(root):
        return fault
    mark = f"{owner}\n{root.name}\n".encode()
    if {entry.name for entry in root.iterdir()} <= {part_name(OWNER_MARK)}:
        write_whole(root / OWNER_MARK, mark)
        return None
    found = _mark(root)
    if found != mark:
        got = "none" if found is None else repr(found.decode("utf-8", "backslashreplace"))
        return f"{root} was made for another run (got mark {got}, expected {mark.decode()!r})"
    return None


def make_base(base: Path) -> str | None:
    """Makes the folder that roots are in, mode 0700, or finds it so.

    Returns:
        Why it is not safe there from others; None if it is.

    Raises:
        OSError: the system refuses.
    """
    for folder in reversed(base.parents):
        _make(folder)
    if fault := _passage_fault(base.parent.resolve()):
        return f"others can put another folder in place of {base} ({fault})"
    return _make_own(base)


def _make_own(folder: Path) -> str | None:
    _make(folder)
    fault = _fault(folder)
    return f"{folder} is not a folder of this user's alone ({fault})" if fault else None


def _make(folder: Path) -> None:
    if not os.path.lexists(folder):  # of some folders that are there, systems say that they cannot be made
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)


def is_marked(folder: Path) -> bool:
    """Says whether a folder bears a mark of this user's, for whichever run."""
    try:
        status = (folder / OWNER_MARK).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()


def run_of(root: Path) -> str | None:
    """Gives the run that a root was made for; None where it is no root of this user's."""
    try:
        mark = _mark(root) if is_marked(root) and not _fault(root) else None
    except OSError:
        return None
    return mark.decode("utf-8", "replace").rstrip("\n").rpartition("\n")[2] if mark else None


def _mark(root: Path) -> bytes | None:
    try:
        return read_bounded(root / OWNER_MARK, _MOST_OF_A_MARK)
    except FileNotFoundError:
        return None


def _fault(folder: Path) -> str | None:
    """Says how somebody else could write into a folder."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return "got a link or file, expected a folder"
    if status.st_uid != os.getuid():
        return f"got uid {status.st_uid}, expected {os.getuid()}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"got mode {stat.S_IMODE(status.st_mode):04o}, expected one in which only its owner can write"
    return None


def _passage_fault(folder: Path) -> str | None:
    """Says in which folder, this one or one above, anybody can rename what is not theirs."""
    for each in (folder, *folder.parents):
        mode = each.lstat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"got mode {stat.S_IMODE(mode):04o} of {each}, expected no writing for others"
    return None
