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


def is_within(folder: Path, path: Path) -> bool:
    """Says whether a path leads to something in a folder by its plain text: not by `..`, and by no link.

    What is there, if anything is, is not opened.
    """
    plain, root = Path(os.path.normpath(path)), Path(os.path.normpath(folder))
    try:
        return plain.is_relative_to(root) and Path(os.path.realpath(plain)) == (
            Path(os.path.realpath(root.parent)) / root.name / plain.relative_to(root)
        )
    except (OSError, ValueError):  # a name that no file can have
        return False


def profiles(path: Path, *, content: bool = True) -> dict[str, Path]:
    """Gives device profiles by name: of the content, if wanted, and of `../devices` of the file itself."""
    root = locate() if content else None
    folders = (*((root / "specs" / "devices",) if root else ()), beside(path, "../devices"))
    return {
        file.stem: file
        for folder in folders
        if folder.is_dir()
        for file in sorted(folder.iterdir())
        if file.suffix in (".yaml", ".toml")
    }
