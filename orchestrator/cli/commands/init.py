"""`orch init`: a first system, run spec, lane and programme that work, or a lane for a command."""

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
from typing import TYPE_CHECKING

from orchestrator.cli.output import complain, say
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.cli.own_command import OwnCommand

_TARGETS = {"arm64": "aarch64-linux", "aarch64": "aarch64-linux"}
_IGNORE = ".gitignore"
_SHARED = (_IGNORE, "orch.toml", "runs/.gitignore")  # of a project, whatever its lanes are
_NEXT_COMMAND = """
next, in {folder}:
  orch plan lanes/{name}.yaml             what will be done, and what it must show
  edit specs/runs/{name}.yaml             how it refuses, what it needs, what it is held against
  orch run lanes/{name}.yaml"""
_NEXT = """
next, in {folder}:
  orch validate lanes/first.yaml
  orch plan lanes/first.yaml
  orch run lanes/first.yaml
  tracker load programme.yaml && tracker status"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the folder and the command."""
    parser.add_argument(
        "--command",
        metavar="CMD",
        help="write a lane around a program of your own: '... {updates} ... {in} ... {out}'",
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="default: here")


def run(args: argparse.Namespace) -> int:
    """Write the files, or none if one of them is there already."""
    from orchestrator.spec.schema import MODELS, text

    schemas = {f"specs/schema/{kind}.schema.json": text(kind) for kind in MODELS}
    if args.command is not None:
        return _command(args, schemas)
    target = _TARGETS.get(platform.machine(), "x86_64-linux")
    contents = {
        name: source.replace("@TARGET@", target).replace("@OWNER@", _owner())
        for name, source in _starter(files("orchestrator.cli") / "starter")
    }
    contents |= schemas
    ignored = os.path.lexists(args.folder / _IGNORE)
    if ignored:  # a repository's own is no obstacle, and stays as it is
        contents.pop(_IGNORE)
    _write(args.folder, contents)
    if ignored:
        complain(f"{args.folder / _IGNORE} is there already: add tracker.sqlite3* and pods*.yaml to it")
    say(_NEXT.format(folder=args.folder.resolve()))
    return 0


def _command(args: argparse.Namespace, schemas: dict[str, str]) -> int:
    """Write a lane around a command; a project that is there already stays as it is."""
    from orchestrator.cli.own_command import read_command, write_command

    command = read_command(args.command, Path())
    project = dict(_starter(files("orchestrator.cli") / "starter"))
    shared = {name: project[name].replace("@OWNER@", _owner()) for name in _SHARED} | schemas
    shared = {name: source for name, source in shared.items() if not os.path.lexists(args.folder / name)}
    _write(args.folder, {**write_command(command, args.folder), **shared})
    for what, path in ((what, path) for what, paths in _found(command) for path in paths):
        complain(f"{path} is {what}")
    say(_NEXT_COMMAND.format(folder=args.folder.resolve(), name=command.name))
    return 0


def _found(command: OwnCommand) -> Iterator[tuple[str, tuple[Path, ...]]]:
    """Give what was taken for what, for a person to correct."""
    yield "taken for a file of the program: it lies in every work folder", command.files
    yield "not here: where it is a file of the program, write it and name it under `files`", command.absent
    yield "taken for an input: it is read only, and told by {uses.NAME}", tuple(command.uses.values())


def _write(folder: Path, contents: dict[str, str]) -> None:
    """Write all of the files, or none if one of them is there already."""
    there = sorted({taken for name in contents if (taken := _taken(folder, name))})
    if there:
        raise UsageError(f"{folder}: nothing was written, because this is there already: {', '.join(there)}")
    try:
        for name, source in contents.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(source)
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written: {error.strerror}") from error
    for name in contents:
        say(str(folder / name))


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
