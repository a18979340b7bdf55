"""The numerical contract as declared: by a short name, or in the long form that bounds an approximation.

Knows what a contract may say; must not know how words are computed or compared in files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, ValidatorFunctionWrapHandler, WithJsonSchema, WrapValidator

from orchestrator.errors import Label
from orchestrator.spec.faults import FileModel, suggest
from orchestrator.spec.units import complain, describe

ORDERED = ("binary64-ordered", "binary32-ordered")
"""Contracts of exact words, by their short names."""

Fraction = Annotated[float, Field(gt=0, lt=1)]


@dataclass(frozen=True)
class Bound:
    """How far a word may be from the reference's: `absolute` and `relative` times the reference's, together.

    Attributes:
        relative: as a fraction of the reference's word.
        absolute: as a plain amount; 0 if none was declared.
    """

    relative: float
    absolute: float = 0.0

    def holds(self, expected: float, got: float) -> bool:
        """Whether a word is near enough; one that is not finite never is."""
        return abs(got - expected) <= self.absolute + self.relative * abs(expected)

    def __str__(self) -> str:
        """As verdicts and checks say it: `relative 1e-09`."""
        return f"relative {self.relative!r}" + (f", absolute {self.absolute!r}" if self.absolute else "")


class ApproximateModel(FileModel):
    """A contract that is kept within a bound, whatever the order of additions."""

    kind: Literal["approximate"] = Field(description="approximate")
    word: Literal["binary64", "binary32"] = Field(description="what states and samples are made of")
    relative: Fraction = Field(description="how far a word may be from the reference's, as a fraction of it")
    absolute: Fraction | None = Field(default=None, description="and as a plain amount besides")


def _numerics(value: Any, approximate: ValidatorFunctionWrapHandler) -> Any:
    """Lets the short names be, and has the long form checked."""
    if isinstance(value, dict):
        return approximate(value)
    if value not in ORDERED:
        expected = f"{' or '.join(ORDERED)} or {{kind: approximate, word: binary64, relative: 1e-9}}"
        label = Label.VALUE_CHOICE if isinstance(value, str) else Label.VALUE_TYPE
        hint = suggest(value, ORDERED) if isinstance(value, str) else ""
        raise complain(label, f"(got {describe(value)}, expected {expected})", hint)
    return value


_BOUND = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_SCHEMA = {
    "anyOf": [
        {"enum": list(ORDERED)},
        {
            "type": "object",
            "properties": {
                "kind": {"const": "approximate", "description": "words within a bound"},
                "word": {
                    "enum": ["binary64", "binary32"],
                    "description": "what states and samples are made of",
                },
                "relative": {**_BOUND, "description": "a fraction of the reference's word"},
                "absolute": {**_BOUND, "description": "a plain amount besides"},
            },
            "required": ["kind", "word", "relative"],
            "additionalProperties": False,
        },
    ]
}
Numerics = Annotated[ApproximateModel, WrapValidator(_numerics), WithJsonSchema(_SCHEMA)]
"""What a file says of it: the long form's model, or the short name as it stands."""


def contract(declared: ApproximateModel | str) -> tuple[str, Bound | None]:
    """Gives the contract's name, `binary64-approximate` for one, and its bound; None for exact words."""
    if isinstance(declared, str):
        return declared, None
    return f"{declared.word}-approximate", Bound(declared.relative, declared.absolute or 0.0)
