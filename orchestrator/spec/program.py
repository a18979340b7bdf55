"""`program:` of a run: the user's own program, how it is started, what it is given and how its refusals look.

Knows placeholders and what a declaration of a foreign program must say; must not know how such a program is
started or judged. Its files are hashed where they lie; what is in them is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from orchestrator.errors import Label, Refusal, Where
from orchestrator.spec.document import Document
from orchestrator.spec.faults import one_of, suggest
from orchestrator.spec.names import Names
from orchestrator.spec.nodesets import MAX_NAMES
from orchestrator.spec.roles import declared_roles, missing, role_sets

if TYPE_CHECKING:
    from orchestrator.spec.program_file import CommandRunFile

COMMAND = "command"
PLACEHOLDERS = ("updates", "in", "out", "progress", "role", "deadline_ms", "device", "setup", "work")
PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_-]*)?)\}", re.ASCII)
RESERVED = ("checkpoint", "job", "progress", "restore", "uses")  # names in a work folder that are taken


@dataclass(frozen=True)
class SourceFile:
    """A file that a program is given: its name there, where it lies here, and what it held when it was read.

    Attributes:
        name: the last part of its path; of an input, what the declaration calls it.
        path: where it lies.
        sha256: of its bytes.
        size: in bytes.
    """

    name: str
    path: Path
    sha256: str
    size: int


@dataclass(frozen=True)
class Looks:
    """How a refusal looks: `exit` is None for any but zero; `stderr` a regular expression, or None."""

    exit: int | None = None
    stderr: str | None = None


@dataclass(frozen=True)
class ReferenceSpec:
    """The declared reference; with both tolerances 0 it is compared bit by bit."""

    argv: tuple[str, ...]
    files: tuple[SourceFile, ...]
    relative: float
    absolute: float


@dataclass(frozen=True)
class ProgramSpec:
    """A program as declared; placeholders stand in `argv`, `setup` and the values of `environment`."""

    argv: tuple[str, ...]
    files: tuple[SourceFile, ...]
    uses: tuple[SourceFile, ...]
    environment: tuple[tuple[str, str], ...]
    inherit: tuple[str, ...]
    setup: tuple[tuple[str, ...], ...]
    setup_deadline_ms: int
    checkpoint: Literal["tensors", "files"]
    refuses: Mapping[str, Looks]
    other: tuple[str, ...] | None
    reference: ReferenceSpec | None


@dataclass(frozen=True)
class CommandRunSpec:
    """A command run as declared."""

    path: Path
    document: Document = field(repr=False, compare=False)
    name: str
    program: ProgramSpec
    roles: tuple[str, ...]

    def where(self, *key_path: str | int, key: bool = False) -> Where:
        """Gives the place of a key path in the file."""
        return self.document.where(key_path, key=key)


def is_command_run(document: Document) -> bool:
    """Says whether a run file declares a program of the user's own."""
    return isinstance(document.value, dict) and "program" in document.value


def file_keys(document: Document) -> Iterator[tuple[str | int, ...]]:
    """Gives the key paths that name files, in the order in which they are read."""
    for key in (("program", "files"), ("program", "reference", "files")):
        listed = document.get(*key)
        yield from ((*key, index) for index in range(len(listed) if isinstance(listed, list) else 0))
    uses = document.get("program", "uses")
    yield from (("program", "uses", name, "file") for name in (uses if isinstance(uses, dict) else ()))


def meaning(document: Document) -> tuple[Refusal, ...]:
    """Refuses what no single value shows: roles, placeholders that stand for nothing, names twice."""
    names, refusals = declared_roles(document, MAX_NAMES)
    found = list(refusals)
    found.extend(_pairings(document, names) if names and not refusals else ())
    found.extend(_placeholders(document))
    found.extend(_base_names(document, ("program", "files")))
    found.extend(_base_names(document, ("program", "reference", "files")))
    found.extend(_variables(document))
    refuses = document.get("program", "refuses")
    if isinstance(refuses, dict) and "checkpoint-system" in refuses and not document.get("program", "other"):
        message = "nothing makes a checkpoint to refuse (got checkpoint-system, expected `other:` beside it)"
        key = ("program", "refuses", "checkpoint-system")
        found.append(document.at(Label.FIELD_MISSING, message, key, on_key=True))
    return tuple(found)


def _pairings(document: Document, names: Names) -> Iterator[Refusal]:
    sets, wrong = role_sets(document, ("pairings",), names)
    yield from wrong
    if not isinstance(document.get("pairings"), dict):
        return
    for key in sets:
        if document.get("pairings", key, "device"):
            message = "a program of one's own is bound to no card (got a device, expected none)"
            hint = "which card it uses is the program's own to say, and no evidence"
            yield document.at(Label.TARGET_UNSUPPORTED, message, ("pairings", key, "device"), hint=hint)
    for name in (names[index] for gap in missing(sets, len(names)) for index in gap):
        message = f"role `{name}` has no pairing (got nothing, expected `{name}` in `pairings`)"
        yield document.at(Label.PAIRING_MISSING, message, ("pairings", name))


def _placeholders(document: Document) -> Iterator[Refusal]:
    """A name in braces that stands for nothing is a slip of the pen, not a text."""
    uses = document.get("program", "uses")
    known = [*PLACEHOLDERS, *(f"uses.{name}" for name in (uses if isinstance(uses, dict) else ()))]
    in_setup = [name for name in known if name in ("setup", "work", "device")]
    for key, allowed in (
        (("program", "argv"), known),
        (("program", "other"), known),
        (("program", "reference", "argv"), known),
        *((("program", "setup", index), in_setup) for index in _indices(document, "program", "setup")),
    ):
        for index in _indices(document, *key):
            yield from _unknown(document, (*key, index), allowed)
    environment = document.get("program", "environment")
    for name in environment if isinstance(environment, dict) else ():
        yield from _unknown(document, ("program", "environment", name), known)


def _indices(document: Document, *key: str | int) -> range:
    listed = document.get(*key)
    return range(len(listed) if isinstance(listed, list) else 0)


def _unknown(document: Document, key: tuple[str | int, ...], known: list[str]) -> Iterator[Refusal]:
    value = document.get(*key)
    for name in PLACEHOLDER.findall(value) if isinstance(value, str) else ():
        if name not in known:
            message = f"there is no such placeholder (got {{{name}}}, expected {one_of(known)})"
            yield document.at(Label.NAME_UNKNOWN, message, key, hint=suggest(name, known))


def _base_names(document: Document, key: tuple[str, ...]) -> Iterator[Refusal]:
    """Files lie beside each other in one folder, so their last names differ."""
    seen: set[str] = set()
    for index in _indices(document, *key):
        named = document.get(*key, index)
        name = Path(named).name if isinstance(named, str) else ""
        if name in seen or name in RESERVED:
            why = "is taken" if name in RESERVED else "stands twice"
            message = f"`{name}` {why} in the work folder (got it again, expected every name once)"
            yield document.at(Label.NAME_DUPLICATE, message, (*key, index))
        seen.add(name)


def _variables(document: Document) -> Iterator[Refusal]:
    environment = document.get("program", "environment")
    for name in environment if isinstance(environment, dict) else ():
        if isinstance(name, str) and name.startswith("ORCH_"):
            message = f"`{name}` is set by orch (got it, expected a name that does not begin with ORCH_)"
            yield document.at(Label.VALUE_CHOICE, message, ("program", "environment", name), on_key=True)


def build(
    document: Document, model: CommandRunFile, files: Mapping[tuple[str | int, ...], SourceFile]
) -> CommandRunSpec:
    """Gives the typed run of a file that nothing is wrong with.

    Args:
        document: the file.
        model: what it says.
        files: every key path of `file_keys` -> the file that it names.
    """
    names, _ = declared_roles(document, MAX_NAMES)
    said = model.program
    reference = said.reference
    return CommandRunSpec(
        path=document.path,
        document=document,
        name=model.name,
        program=ProgramSpec(
            argv=said.argv,
            files=tuple(files["program", "files", index] for index in range(len(said.files))),
            uses=tuple(files["program", "uses", name, "file"] for name in said.uses),
            environment=tuple(said.environment.items()),
            inherit=said.inherit,
            setup=said.setup,
            setup_deadline_ms=said.setup_deadline,
            checkpoint=said.checkpoint,
            other=said.other,
            refuses={label: Looks(_code(how.exit), how.stderr) for label, how in said.refuses.items()},
            reference=None
            if reference is None
            else ReferenceSpec(
                reference.argv,
                tuple(files["program", "reference", "files", index] for index in range(len(reference.files))),
                reference.compare.relative,
                reference.compare.absolute,
            ),
        ),
        roles=tuple(names),
    )


def _code(said: Any) -> int | None:
    return said if isinstance(said, int) else None  # `nonzero`
