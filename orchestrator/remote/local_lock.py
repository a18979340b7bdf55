"""The lock's file on this machine. Knows files and this process; the rules are `lock.py`'s."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path, PurePosixPath

from evidence.files import open_new, read_bounded
from orchestrator.remote import proc
from orchestrator.remote import root as own
from orchestrator.remote.lock import LOCK_NAME, Holder, LockLook, parse

_MOST_OF_A_LOCK = 4096


class LocalLock:
    """The lock of one base folder. Its methods raise OSError."""

    def __init__(self, base: Path) -> None:
        self._path = base / LOCK_NAME

    def look(self) -> LockLook:
        """Reads it."""
        text = _text(self._path)
        holder = None if text is None else parse(text)
        return LockLook(
            text=text,
            alive=holder is not None and proc.start_ticks(holder.pid) == holder.start_ticks,
            uptime_s=proc.uptime_s(),
            boot_id=proc.boot_id(),
            pid=os.getpid(),
            start_ticks=proc.start_ticks(os.getpid()) or 0,
        )

    def make(self, text: str) -> bool:
        """Makes it with its base folder; False if it is there."""
        if fault := own.make_base(own.LocalFolders(), PurePosixPath(self._path.parent)):
            raise OSError(fault)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(self._path, flags, 0o600)
        except FileExistsError:
            return False
        try:
            os.write(descriptor, text.encode())
        except OSError:
            self._path.unlink()
            raise
        finally:
            os.close(descriptor)
        return True

    def replace(self, text: str) -> None:
        """Renames another into its place."""
        part = self._aside()
        with open_new(part, 0o600) as file:
            file.write(text.encode())
        part.replace(self._path)

    def free(self, text: str) -> None:
        """Puts it aside, and back if it turns out to be another by now."""
        aside = self._aside()
        with suppress(FileNotFoundError):
            self._path.rename(aside)
            if _text(aside) != text:
                with suppress(FileExistsError):
                    self._path.hardlink_to(aside)
            aside.unlink()

    def relieve(self, holder: Holder) -> None:
        """Ends nothing: here a controller stands for itself, and whoever is gone left no process."""

    def _aside(self) -> Path:
        return self._path.with_name(f"{LOCK_NAME}.{os.getpid()}")


def _text(path: Path) -> str | None:
    try:
        return read_bounded(path, _MOST_OF_A_LOCK).decode("utf-8", "backslashreplace")
    except FileNotFoundError:
        return None
