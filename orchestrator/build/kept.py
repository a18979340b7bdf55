"""Programs that were built before, kept in a folder by what they were built from.

Knows how an entry lies there and which one is to be believed; must not know what a program is. A folder that
cannot be used is no folder: everything in it can be built again.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from evidence.files import open_new, open_regular

FOLDER = "programs"
_DIGEST = hashlib.sha256().digest_size


def recall(cache: Path, key: str) -> bytes | None:
    """What was kept under this key; None unless it is whole and was kept under this very key."""
    try:
        with os.fdopen(open_regular(cache / FOLDER / key), "rb") as file:
            stored = file.read()
    except OSError:
        return None
    digest, data = stored[:_DIGEST], stored[_DIGEST:]
    return data if _digest(key, data) == digest else None


def keep(cache: Path, key: str, data: bytes) -> None:
    """Keeps data under a key, or does not where the folder refuses."""
    part = cache / FOLDER / f".{key}.{os.getpid()}.part"
    with suppress(OSError):
        part.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open_new(part, 0o644) as file:
                file.write(_digest(key, data) + data)
            part.replace(part.with_name(key))
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def _digest(key: str, data: bytes) -> bytes:
    """Covers the key too: an entry under another name is not that one's."""
    return hashlib.sha256(bytes.fromhex(key) + data).digest()
