"""A command line as a person types it, as the run spec and the lane of it: what `orch init --command` writes.

Knows which of its words are files here. Nothing is started, and no word passes a shell.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from orchestrator.errors import UsageError
from orchestrator.spec.program import RESERVED

NEEDED = ("{updates}", "{in}", "{out}")
RUNS = "specs/runs"
_SHELL = ("|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1")
_SCRIPTS = (".py", ".sh", ".pl", ".rb", ".js", ".jl", ".lua", ".R")


@dataclass(frozen=True)
class OwnCommand:
    """What a command line says.

    Attributes:
        name: of lane and run, after its script.
        argv: its words, with files by the names that they have in a work folder.
        files: the program's own, as they lie here.
        uses: its inputs: name -> where it lies here.
        absent: words that are named like scripts and are no files here.
    """

    name: str
    argv: tuple[str, ...]
    files: tuple[Path, ...]
    uses: dict[str, Path]
    absent: tuple[Path, ...]


def read_command(text: str, here: Path) -> OwnCommand:
    """Take a command line apart.

    Args:
        text: as a person types it.
        here: the folder in which its files are named.

    Raises:
        UsageError: it cannot be a command without a shell, or does not say what stands where.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the command does not read as one: {error}") from error
    if shell := [word for word in words if word in _SHELL or "$(" in word or "`" in word]:
        raise UsageError(
            f"no shell reads the command (got `{shell[0]}`, expected a program and its arguments);"
            " a script of yours can do what a shell would"
        )
    if missing := [needed for needed in NEEDED if not any(needed in word for word in words)]:
        raise UsageError(
            f"the command does not say what stands where (got no {', '.join(missing)}, expected all of"
            f" {', '.join(NEEDED)}: updates to reach, checkpoint to go on from, checkpoint to publish)"
        )
    command = _taken_apart(words, here)
    taken = [path.name for path in command.files if path.name in RESERVED]
    if taken:
        raise UsageError(f"{taken[0]}: a work folder has a file of that name already; rename yours")
    return command


def _taken_apart(words: list[str], here: Path) -> OwnCommand:
    """Tell the program's files and its inputs from its other words, and name it after its script."""
    argv: list[str] = []
    programs: list[Path] = []
    absent: list[Path] = []
    uses: dict[str, Path] = {}
    for place, word in enumerate(words):
        path = here / word
        if not path.is_file() or (place == 0 and "/" not in word):
            argv.append(word)
            if path.suffix in _SCRIPTS and "{" not in word and not path.exists():
                absent.append(Path(word))
        elif place == 0 or path.suffix in _SCRIPTS:
            programs.append(path)
            argv.append(f"./{path.name}" if place == 0 else path.name)
        else:
            name = _use_name(path, uses)
            uses[name] = path
            argv.append(f"{{uses.{name}}}")
    script = next((path.stem for path in (*programs, *absent)), Path(words[0]).name)
    name = re.sub(r"[^a-z0-9._-]", "-", script.lower())
    return OwnCommand(name.strip("._-")[:64] or "own", tuple(argv), tuple(programs), uses, tuple(absent))


def _use_name(path: Path, taken: dict[str, Path]) -> str:
    name = re.sub(r"[^a-z0-9_-]", "-", path.stem.lower()).strip("-_0123456789") or "input"
    numbers = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return name if name not in taken else next(each for each in numbers if each not in taken)


def write_command(command: OwnCommand, folder: Path) -> dict[str, str]:
    """Give the lane and the run spec of a command, by name below a project's folder."""
    starter = files("orchestrator.cli") / "starter_command"

    def beside(path: Path) -> str:
        return os.path.relpath(path.resolve(), (folder / RUNS).resolve())

    said = {
        "@NAME@": command.name,
        "@ARGV@": json.dumps(command.argv, ensure_ascii=False),
        "@FILES@": json.dumps([beside(path) for path in command.files], ensure_ascii=False),
        "@USES@": json.dumps(
            {name: {"file": beside(path)} for name, path in command.uses.items()}, ensure_ascii=False
        ),
    }
    written = {}
    for source, target in (("lane", f"lanes/{command.name}.yaml"), ("run", f"{RUNS}/{command.name}.yaml")):
        text = (starter / f"{source}.yaml").read_text(encoding="utf-8")
        for mark, value in said.items():
            text = text.replace(mark, value)
        written[target] = text
    return written
