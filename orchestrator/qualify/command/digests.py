"""One digest for all files that lie beside a program of the user's own when it starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evidence.digest import sha256_json
from orchestrator.qualify.launch import PlacedFile


def files_digest(files: Iterable[PlacedFile]) -> str:
    """Of the files as they were sent."""
    return listing_digest({file.name: file.sha256 for file in files})


def listing_digest(found: Mapping[str, str]) -> str:
    """Of the files as they were read back: name -> SHA-256."""
    return sha256_json(dict(found))
