"""A declaration's numbers as words of its numerical contract: rounded once more, none of them to infinity.

Files are read as binary64. Where words are narrower, initial words, the rate and samples are rounded here;
constants in statements where these are typed.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.plan.model import Field
from orchestrator.plan.words import WORD_TYPES, WordType
from orchestrator.spec.repeated import repeated
from orchestrator.spec.system import FieldSpec, SystemSpec


def rounding_refusals(spec: SystemSpec) -> Iterator[Refusal]:
    """What a system declares that is no finite word, or of a rate nothing at all."""
    word = WORD_TYPES[spec.numerics]
    if not 0 < word.rounded(spec.rate) < math.inf:
        message = f"rate is no such word (got {spec.rate!r}, expected a positive {word.dtype} number)"
        yield Refusal(Label.VALUE_RANGE, message, spec.where("rate"), "rate")
    for section, fields in (("parameters", spec.parameters), ("state", spec.state)):
        for field in fields:
            wrong = [value for value, _ in field.initial.runs if math.isinf(word.rounded(value))]
            if wrong:
                message = f"is no such word (got {wrong[0]!r}, expected a finite {word.dtype} number)"
                where = spec.where(section, field.name, "initial")
                yield Refusal(Label.VALUE_RANGE, message, where, f"{section}.{field.name}.initial")


def state_fields(specs: Iterable[FieldSpec], word: WordType) -> tuple[Field, ...]:
    """Fields with their initial words."""
    return tuple(
        Field(
            spec.name,
            spec.size,
            repeated(((word.rounded(value), count) for value, count in spec.initial.runs), float.hex),
            spec.shared,
        )
        for spec in specs
    )


def sample_words(numbers: array[float], word: WordType, path: Path) -> array[float]:
    """Samples as words.

    Raises:
        RefusedError: `data-format` for a number that is no finite word.
    """
    words = array(word.typecode, numbers)
    for number, rounded in zip(numbers, words, strict=True):
        if math.isinf(rounded):
            message = f"is no sample word (got {number!r}, expected a finite {word.dtype} number)"
            raise RefusedError([Refusal(Label.DATA_FORMAT, message, Where(str(path)))])
    return words
