"""`orch init`: a first system, run spec, lane and programme that work as they are."""

from __future__ import annotations

import argparse
import getpass
import os
import platform
import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from orchestrator.cli.output import complain, say
from orchestrator.errors import UsageError

_TARGETS = {"arm64": "aarch64-linux", "aarch64": "aarch64-linux"}
_IGNORE = ".gitignore"
_NEXT = """
next, in {folder}:
  orch validate lanes/first.yaml
  orch plan lanes/first.yaml
  orch run lanes/first.yaml
  tracker load programme.yaml && tracker status"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the folder."""
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="default: here")


def run(args: argparse.Namespace) -> int:
    """Write the files, or none if one of them is there already."""
    from orchestrator.spec.schema import MODELS, text

    target = _TARGETS.get(platform.machine(), "x86_64-linux")
    contents = {
        name: source.replace("@TARGET@", target).replace("@OWNER@", _owner())
        for name, source in _starter(files("orchestrator.cli") / "starter")
    }
    contents |= {f"specs/schema/{kind}.schema.json": text(kind) for kind in MODELS}
    ignored = os.path.lexists(args.folder / _IGNORE)
    if ignored:  # a repository's own is no obstacle, and stays as it is
        contents.pop(_IGNORE)
    there = sorted({taken for name in contents if (taken := _taken(args.folder, name))})
    if there:
        raise UsageError(
            f"{args.folder}: nothing was written, because this is there already: {', '.join(there)}"
        )
    try:
        for name, source in contents.items():
            path = args.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(source)
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written: {error.strerror}") from error
    for name in contents:
        say(str(args.folder / name))
    if ignored:
        complain(f"{args.folder / _IGNORE} is there already: add tracker.sqlite3* to it")
    say(_NEXT.format(folder=args.folder.resolve()))
    return 0


def _taken(folder: Path, name: str) -> str:
    """Give what stands where a file is to be: the file, a link to nowhere, or no folder for it to be in."""
    if os.path.lexists(folder / name):
        return name
    above = (str(parent) for parent in Path(name).parents)
    return next(
        (each for each in above if os.path.lexists(folder / each) and not (folder / each).is_dir()), ""
    )


def _owner() -> str:
    """Give the user's name as far as every file and every machine can write it."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container's user need have no name
        name = ""
    return re.sub(r"[^a-z0-9._-]", "-", name.lower()) or "me"


def _starter(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Give the starter's files by name; `gitignore` stands for the dotted name, which wheels leave out."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = prefix + (".gitignore" if entry.name == "gitignore" else entry.name)
        if entry.is_dir():
            yield from _starter(entry, f"{name}/")
        else:
            yield name, entry.read_text(encoding="utf-8")
