"""SHA-256, as lower-case hexadecimal, of bytes, of files and of values.

Knows hashing and how files are read for it. Must not know what is hashed.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any, Final

from evidence.canonical import dumps
from evidence.files import open_regular

_PIECE_BYTES: Final = 1 << 20
_FORM: Final = re.compile(r"[0-9a-f]{64}")


def sha256_bytes(data: bytes) -> str:
    """Give the digest of bytes."""
    return hashlib.sha256(data).hexdigest()


def sha256_json(value: Any) -> str:
    """Give the digest of a value's canonical JSON.

    Raises:
        CanonicalError: it has none.
    """
    return sha256_bytes(dumps(value))


def sha256_file(path: Path) -> str:
    """Give the digest of a regular file, read in pieces of 1 MiB; links are not followed.

    Raises:
        NotRegularError: anything but a regular file.
        OSError: it cannot be read.
    """
    return measure_file(path)[0]


def measure_file(path: Path | str) -> tuple[str, int]:
    """Give a regular file's digest and the number of bytes that went into it.

    Raises:
        NotRegularError: anything but a regular file.
        OSError: it cannot be read.
    """
    descriptor = open_regular(path)
    try:
        state = hashlib.sha256()
        total = 0
        # One buffer for the whole file, and a small one for a small file.
        buffer = memoryview(bytearray(min(max(os.fstat(descriptor).st_size, 1), _PIECE_BYTES)))
        while count := os.readv(descriptor, [buffer]):
            state.update(buffer[:count])
            total += count
        return state.hexdigest(), total
    finally:
        os.close(descriptor)


def is_sha256(value: object) -> bool:
    """Say whether a value is a digest as written here: a string of 64 lower-case hexadecimal digits."""
    return isinstance(value, str) and _FORM.fullmatch(value) is not None
