"""Content: the systems, devices, runs, data, lanes and roles that come with orch, and their one digest.

Knows where content may be and what belongs to it; must not read what the files mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evidence.digest import sha256_file, sha256_json
from orchestrator.errors import Label, Refusal, RefusedError, Where

FOLDERS = ("lanes", "roles", "specs/data", "specs/devices", "specs/runs", "specs/systems")


@dataclass(frozen=True)
class Content:
    """A content folder; `digest` is the SHA-256 of the canonical listing of its files."""

    root: Path
    digest: str


def find(explicit: Path | None = None) -> Content:
    """Finds the content: the folder given, else a checkout around this package, else the packaged copy.

    Raises:
        RefusedError: `file-missing`, if the folder given, or every place, holds none.
    """
    root = locate(explicit)
    if root is None:
        where = Where(str(explicit or _package() / "content"))
        message = "is no content folder (got no specs, roles and lanes in it, expected all three)"
        raise RefusedError([Refusal(Label.FILE_MISSING, message, where)])
    return Content(
        root, sha256_json([{"name": name, "sha256": sha256_file(root / name)} for name in names(root)])
    )


def locate(explicit: Path | None = None) -> Path | None:
    """Gives the content folder that `find` would take, without reading its files."""
    package = _package()
    places = (explicit,) if explicit is not None else (package.parent, package / "content")
    return next((place for place in places if _complete(place)), None)


def names(root: Path) -> tuple[str, ...]:
    """Gives the names of all content files, relative to the root, in byte order."""
    return tuple(sorted((name for folder in FOLDERS for name in _files(root, folder)), key=os.fsencode))


def _package() -> Path:
    return Path(__file__).resolve().parent.parent


def _complete(root: Path) -> bool:
    return all((root / folder).is_dir() for folder in ("specs", "roles", "lanes"))


def _files(root: Path, folder: str) -> Iterator[str]:
    for at, folders, files in os.walk(root / folder):
        # what Python, editors and systems leave behind is not content
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        for name in files:
            path = Path(at, name)
            if (
                not name.startswith(".")
                and not name.endswith(("~", ".pyc"))
                and path.is_file()
                and not path.is_symlink()
            ):
                yield path.relative_to(root).as_posix()
