"""How evidence opens, reads and replaces single files.

Knows the operating system's rules for doing that safely: no link is followed, no fifo can block, a file
appears whole or not at all. Must not know what any file means.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO


class NotRegularError(OSError):
    """The name is a link, a directory, a fifo, a socket or a device, not a regular file."""


class TooLargeError(OSError):
    """The file is larger than any honest one of its kind."""


def open_regular(path: Path | str) -> int:
    """Open a regular file for reading, following no link in its last component; the caller closes it.

    Raises:
        NotRegularError: anything but a regular file.
        OSError: it cannot be opened.
    """
    try:
        # O_NONBLOCK: opening a fifo that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EOPNOTSUPP}:
            raise NotRegularError(error.errno, "not a regular file", str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError(errno.EINVAL, "not a regular file", str(path))
    return descriptor


def read_bounded(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes.

    Raises:
        TooLargeError: it is larger.
        OSError: as `open_regular`.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise TooLargeError(errno.EFBIG, f"larger than {limit} bytes", str(path))
    return data


def part_name(name: str) -> str:
    """Give the temporary name under which `write_whole` prepares the file `name`."""
    return f".{name}.part"


def open_new(path: Path, mode: int | None = None) -> BinaryIO:
    """Open for writing a file that is new under its name, whatever lay there before.

    What lay there may be a link that somebody planted: it goes, and what it points to stays as it is.

    Args:
        path: where.
        mode: its permissions, whatever the umask is; None leaves them to the umask.

    Raises:
        OSError: it cannot be made.
    """
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644 if mode is None else mode & 0o600)
    if mode is not None:
        os.fchmod(descriptor, mode)
    return os.fdopen(descriptor, "wb")


def write_whole(path: Path, data: bytes, mode: int | None = None) -> None:
    """Make `path` hold `data`, durably: after a crash it holds either the old content or all of the new.

    Args:
        path: where; a link that lies there is replaced, not followed.
        data: all that it is to hold.
        mode: its permissions, whatever the umask is; None leaves them to the umask.

    Raises:
        OSError: it cannot be written.
    """
    part = path.with_name(part_name(path.name))
    with open_new(part, mode) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync_folder(path.parent)


def write_many(files: Mapping[Path, bytes]) -> None:
    """Make every path hold its data, durably, all written before the first is synced.

    A crash may leave some with the old content and others with the new, none with a mixture.

    Raises:
        OSError: one of them cannot be written.
    """
    parts = {path: path.with_name(part_name(path.name)) for path in files}
    for path, data in files.items():
        with open_new(parts[path]) as file:
            file.write(data)
    for path, part in parts.items():
        descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        part.replace(path)
    for folder in {path.parent for path in files}:
        sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
