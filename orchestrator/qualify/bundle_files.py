"""The files of a bundle, of a run or of a matrix, and its journal as it stands: read, and never written."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from evidence.canonical import loads
from evidence.digest import sha256_file, sha256_json
from evidence.event import Event
from evidence.files import open_regular
from evidence.names import fault
from evidence.stream import Growing

SPECS = "specs"
INDEX = "specs/index.json"


class BundleFiles:
    """Read-only look at a bundle's files."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle
        self._journal = Growing(bundle / "stream.jsonl")

    @property
    def lane_copy(self) -> Path:
        """The bundle's copy of the lane that was declared.

        Raises:
            ValueError: the bundle names none.
        """
        name = str(self.json(INDEX)["lane"])
        if fault(name) is not None:
            raise ValueError(f"{INDEX} names no lane of the bundle (got {name!r})")
        return self.bundle / SPECS / name

    def events(self) -> tuple[Event, ...]:
        """The journal as it stands; of what was read before nothing is read again.

        Raises:
            StreamError: it is not whole.
            OSError: it cannot be read.
        """
        return self._journal.events()

    @property
    def run_id(self) -> str:
        """UUIDv7 of the run."""
        return self.events()[0].source

    def bytes(self, name: str) -> bytes | None:
        """A file of the bundle; None if there is no regular file of that name in it."""
        if fault(name) is not None:
            return None
        try:
            with os.fdopen(open_regular(self.bundle / name), "rb") as file:
                return file.read()
        except OSError:
            return None

    def json(self, name: str) -> Any:
        """A JSON file of the bundle; None if it is not there."""
        data = self.bytes(name)
        return None if data is None else loads(data)

    def digest(self, name: str) -> str:
        """SHA-256 of a file of the bundle; of nothing if it is not there."""
        return hashlib.sha256(self.bytes(name) or b"").hexdigest()


def specs_sha256(bundle: Path) -> str:
    """Digest of a bundle's copies of all that was declared: every file by name."""
    folder = bundle / SPECS
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sha256_json([[name, sha256_file(folder / name)] for name in names])
