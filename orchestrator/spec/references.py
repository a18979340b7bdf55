"""What a file means by the names of other files.

Knows folders; must not read what it finds.
"""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator.spec.content import locate


def beside(path: Path, named: str) -> Path:
    """Gives the path that a file means by a name: beside itself unless it begins with /; without `..`."""
    joined = path.parent / named
    plain = Path(os.path.normpath(joined))
    try:
        # behind a link, `..` is another folder than the text says
        return plain if not joined.exists() or (plain.exists() and plain.samefile(joined)) else joined
    except (OSError, ValueError):
        return plain


def profiles(path: Path) -> dict[str, Path]:
    """Gives device profiles by name: those of the content, and those in `../devices` of the file itself."""
    root = locate()
    folders = (*((root / "specs" / "devices",) if root else ()), beside(path, "../devices"))
    return {
        file.stem: file
        for folder in folders
        if folder.is_dir()
        for file in sorted(folder.iterdir())
        if file.suffix in (".yaml", ".toml")
    }
