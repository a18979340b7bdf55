"""What a job's runner noted of it, read on the machine where both ran.

Knows the files under `job/` and how a process is told from a later one with its number; starts and signals
nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePath

from evidence.files import read_bounded
from orchestrator.remote import proc
from orchestrator.remote.base import JobState

_PROCESS = re.compile(r"([0-9]{1,10}) ([0-9]{1,19}) ([0-9a-z-]{1,64})", re.ASCII)
_CODE = re.compile(r"[0-9]{1,3}", re.ASCII)
_MOST_OF_A_NOTE = 1024
_SHOWN = 80


class NotesError(Exception):
    """A note that no runner writes; the message names file and content."""


@dataclass(frozen=True)
class Identity:
    """A process as the runner noted it: pids are used again, start times in one boot are not."""

    pid: int
    start_ticks: int
    boot_id: str

    @property
    def alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        return self.boot_id == proc.boot_id() and proc.start_ticks(self.pid) == self.start_ticks


def identity(folder: Path) -> Identity | None:
    """Which process the program is; None before the runner noted it.

    Raises:
        NotesError: the note names none.
        OSError: it cannot be read.
    """
    return read_identity(_read(folder / "pid"), folder)


def read_identity(text: str | None, folder: PurePath) -> Identity | None:
    """Reads what the runner noted of the program; None before it did.

    Raises:
        NotesError: it names none.
    """
    if text is None:
        return None
    found = _PROCESS.fullmatch(text)
    if found is None:
        raise NotesError(f"{folder}/pid names no process (got {text[:_SHOWN]!r})")
    return Identity(int(found[1]), int(found[2]), found[3])


def exited(folder: Path) -> JobState | None:
    """The state of a job that has left its exit code; None while there is none.

    Raises:
        NotesError: the note is no exit code.
        OSError: it cannot be read.
    """
    code = read_exit(_read(folder / "exit"), folder)
    return None if code is None else state_of("exited", code, identity(folder))


def read_exit(text: str | None, folder: PurePath) -> int | None:
    """Reads the exit code; None while there is none.

    Raises:
        NotesError: it is none.
    """
    if text is not None and _CODE.fullmatch(text) is None:
        raise NotesError(f"{folder}/exit holds no exit code (got {text[:_SHOWN]!r})")
    return None if text is None else int(text)


def state_of(status: str, code: int | None, known: Identity | None) -> JobState:
    """A state of a job, with the identity that is noted."""
    if known is None:
        return JobState(status, code)
    return JobState(status, code, known.pid, known.start_ticks, known.boot_id)


def _read(path: Path) -> str | None:
    try:
        # the program that runs beside them may have put anything there
        return read_bounded(path, _MOST_OF_A_NOTE).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
