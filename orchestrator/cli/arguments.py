"""Arguments that several verbs share, and the content that they name."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.output import complain
from orchestrator.cli.project import Project, find_project
from orchestrator.errors import Label, Refusal, RefusedError, Where

if TYPE_CHECKING:
    from orchestrator.spec.content import Content


def add_json(parser: argparse.ArgumentParser) -> None:
    """Declare `--json`."""
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def add_bundle(parser: argparse.ArgumentParser) -> None:
    """Declare the bundle that a verb is about."""
    parser.add_argument("bundle", metavar="BUNDLE", help="its folder, its name, or `last`: the newest one")


def content_of(explicit: Path | None) -> Content:
    """Give the content that role programs are made of.

    Args:
        explicit: `--content DIR`; else what `orch.toml` names, else what came with orch.
    """
    from orchestrator.spec import content

    if explicit is not None:
        return content.find(explicit)
    project = find_project(quiet=True)
    if project.content is not None and content.locate(project.content) is None:
        raise _no_content(project)
    return content.find(project.content)


def _no_content(project: Project) -> RefusedError:
    """Give the refusal at the place in `orch.toml` that names the folder."""
    from orchestrator.spec.document import load

    path = project.file or project.root
    message = f"is no content folder (got {project.content}, expected specs, roles and lanes in it)"
    document, _ = load(path)
    where = document.where(("content",)) if document else Where(str(path))
    return RefusedError([Refusal(Label.FILE_MISSING, message, where, "content")])


def find_spec(path: Path, content: Content) -> Path:
    """Give the file that a command line names: here, else of the content, and say so."""
    shipped = content.root / path
    if path.exists() or path.is_absolute() or ".." in path.parts or not shipped.is_file():
        return path
    complain(f"{path} is not here: taking the one that came with orch, {shipped}")
    return shipped


def cache_folder() -> Path | None:
    """Give the user's folder for compiled programs (`XDG_CACHE_HOME`), or None where there can be none."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    folder = base / "orch"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None
