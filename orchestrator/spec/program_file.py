"""The keys of `program:` in a run file, as models: what may stand where, and of which form.

Knows each value by itself; what they mean together is said in `orchestrator.spec.program`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from orchestrator.errors import Label
from orchestrator.spec.faults import FileModel, TextLike
from orchestrator.spec.system import Title
from orchestrator.spec.units import Milliseconds, complain, describe

NONZERO = "nonzero"
SETUP_DEADLINE_MS = 600_000
_MAX_EXIT = 125  # from 126 on it is a shell or a signal that speaks


def _exit(value: Any) -> Any:
    if value == NONZERO or (type(value) is int and 1 <= value <= _MAX_EXIT):
        return value
    label = Label.VALUE_RANGE if type(value) is int else Label.VALUE_TYPE
    raise complain(label, f"(got {describe(value)}, expected {NONZERO} or 1 to {_MAX_EXIT})")


def _pattern(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        re.compile(value)
    except re.error as error:
        message = f"(got {describe(value)}, expected a regular expression: {error})"
        raise complain(Label.VALUE_FORMAT, message) from None
    return value


def _compare(value: Any) -> Any:
    """Gives the long form of `bits`: no difference at all."""
    if isinstance(value, dict):
        return value
    if value != "bits":
        message = f"(got {describe(value)}, expected bits or {{relative: 1e-9}})"
        raise complain(Label.VALUE_CHOICE, message)
    return {}


Text = Annotated[str, TextLike(r"[^\x00]*", "text without a zero byte")]
Arguments = Annotated[tuple[Text, ...], Field(min_length=1)]
VariableName = Annotated[str, TextLike(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable, such as SEED")]
UseName = Annotated[str, TextLike(r"[a-z][a-z0-9_-]*", "a lower-case name, such as data")]
Sha256 = Annotated[str, TextLike(r"[0-9a-f]{64}", "64 lower-case hexadecimal digits")]
Exit = Annotated[
    Any,
    BeforeValidator(_exit),
    WithJsonSchema({"anyOf": [{"const": NONZERO}, {"type": "integer", "minimum": 1, "maximum": _MAX_EXIT}]}),
]
Pattern = Annotated[str, BeforeValidator(_pattern)]
RefusalName = Literal["checkpoint-chunk", "checkpoint-coverage", "checkpoint-system", "data-chunk"]
Fraction = Annotated[float, Field(ge=0, lt=1)]


class UseModel(FileModel):
    """A read-only input."""

    file: str = Field(min_length=1, description="the file, beside this one unless it begins with /")
    sha256: Sha256 | None = Field(default=None, description="its SHA-256; recorded in any case")


class RefusalModel(FileModel):
    """How a refusal of a program looks."""

    exit: Exit = Field(default=NONZERO, description="nonzero, or the very exit code")
    stderr: Pattern | None = Field(default=None, description="a regular expression found on standard error")


class CompareModel(FileModel):
    """How far a word may be from the reference's: nowhere, unless it is said."""

    relative: Fraction = Field(default=0.0, description="as a fraction of the reference's word")
    absolute: Annotated[float, Field(ge=0)] = Field(default=0.0, description="as a plain amount")


_COMPARE = {
    "anyOf": [
        {"const": "bits"},
        {
            "type": "object",
            "properties": {
                "relative": {"type": "number", "minimum": 0, "description": "a fraction of the word"},
                "absolute": {"type": "number", "minimum": 0, "description": "a plain amount"},
            },
            "additionalProperties": False,
        },
    ]
}
Compare = Annotated[CompareModel, BeforeValidator(_compare), WithJsonSchema(_COMPARE)]


class ReferenceModel(FileModel):
    """An independent program for the same: one process, asked for the same updates."""

    argv: Arguments = Field(description="program and arguments, with the same placeholders")
    files: tuple[str, ...] = Field(default=(), description="its files, beside this one")
    compare: Compare = Field(
        default=CompareModel(), description="bits, or how far words may differ, such as {relative: 1e-9}"
    )


class ProgramModel(FileModel):
    """The user's own program."""

    argv: Arguments = Field(description="program and arguments; {updates}, {in}, {out} and the like stand in")
    files: tuple[str, ...] = Field(
        default=(), description="files that lie in the work folder by their last names, beside this one"
    )
    uses: Mapping[UseName, UseModel] = Field(default={}, description="read-only inputs; {uses.NAME} is one")
    environment: Mapping[VariableName, Text] = Field(
        default={}, description="all that it finds besides PATH, HOME, LC_ALL and ORCH_*"
    )
    inherit: tuple[VariableName, ...] = Field(default=(), description="variables of the node that it finds")
    setup: tuple[Arguments, ...] = Field(
        default=(), description="commands that run on each node once before; {setup} is a folder for them"
    )
    setup_deadline: Milliseconds = Field(
        default=SETUP_DEADLINE_MS, description="for each of these commands, such as 10m"
    )
    checkpoint: Literal["tensors", "files"] = Field(
        description="tensors (safetensors, compared word by word) or files (compared byte by byte)"
    )
    refuses: Mapping[RefusalName, RefusalModel] = Field(
        default={}, description="how its refusals look, by our label"
    )
    other: Arguments | None = Field(
        default=None, description="another program with the same files, whose checkpoints this one refuses"
    )
    reference: ReferenceModel | None = Field(default=None, description="what its results are held against")


class CommandPairingModel(FileModel):
    """A role of a command run."""

    target: Literal["command"] = Field(description="always command")
    device: str | None = Field(
        default=None, description="the device profile: no program of one's own is bound to a card yet"
    )


class CommandRunFile(FileModel):
    """A program of the user's own, and the roles that run it."""

    orch: Literal["run/v1"] = Field(description="the kind of this file")
    name: Title = Field(description="what people call it")
    roles: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="the roles in order; names or node sets such as worker[1-3]"
    )
    program: ProgramModel = Field(description="the program of every role")
    pairings: Mapping[str, CommandPairingModel] = Field(description="each role with target: command")
