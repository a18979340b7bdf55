"""`orch: system/v1`: a learner with no device, host or address in it.

Knows the fields and where the arithmetic stands; must not know what the arithmetic means: statements stay
text here, with their places, and the plan parses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema

from orchestrator.errors import Label, Refusal, Where
from orchestrator.spec.data import MAX_WIDTH
from orchestrator.spec.document import Document
from orchestrator.spec.faults import FileModel, TextLike
from orchestrator.spec.numerics import ORDERED, Bound, Numerics, contract
from orchestrator.spec.repeated import Repeated, repeated
from orchestrator.spec.units import complain, describe

MAX_WORDS = 8 << 20  # of one field and of the whole state
PROGRAMS = {
    "data-parallel": ("contribution", "update"),
    "coordinate-owned": ("forward", "contribution", "update"),
    "independent": ("local",),
}
"""Kind -> the programs that make it, besides `evaluate`."""
BY_ROWS = frozenset({"data-parallel"})
"""Kinds whose samples are dealt out by rows; of the others every role has every row, in its own columns."""
SHAPELESS = frozenset({"independent"})
"""Kinds whose states are the same whoever owns what, and however owners are joined."""
RESERVED = frozenset({"rate", "i", "dot", "sum", "sqrt", "loss"})

Title = Annotated[str, TextLike(r"[a-z0-9][a-z0-9._-]{0,63}", "lower-case letters, digits, -, _ and .")]
"""The name of a thing that has a file of its own."""

Identifier = Annotated[str, TextLike(r"[A-Za-z][A-Za-z0-9_]{0,62}", "a letter, then letters, digits and _")]
"""A name inside a system's arithmetic."""

Words = Annotated[int, Field(ge=1, le=MAX_WORDS)]
Columns = Annotated[int, Field(ge=1, le=MAX_WIDTH)]


def _initial(value: Any) -> Any:
    numbers = value if isinstance(value, tuple) else (value,)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | float):
            expected = "a number, or a list of one for each word"
            raise complain(Label.VALUE_TYPE, f"(got {describe(number)}, expected {expected})")
    return tuple(float(number) for number in numbers) if isinstance(value, tuple) else float(value)


def _initial_size(value: float | tuple[float, ...], info: ValidationInfo) -> float | tuple[float, ...]:
    size = info.data.get("size")
    if isinstance(value, tuple) and size is not None and len(value) != size:
        raise complain(Label.VALUE_RANGE, f"(got {len(value)} numbers, expected {size}, one for each word)")
    return value


_NUMBERS = {"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]}


class FieldModel(FileModel):
    """Words of the learner's state under one name."""

    size: Words = Field(description="how many words it holds")
    initial: Annotated[
        Any, BeforeValidator(_initial), AfterValidator(_initial_size), WithJsonSchema(_NUMBERS)
    ] = Field(description="what every word is at first: one number for all, or one for each")
    shared: bool = Field(
        default=False,
        description="every role computes it alike: its update reads no mean and no word of one owner",
    )


class SamplesFile(FileModel):
    """Where the samples are."""

    file: str = Field(min_length=1, description="a CSV file, beside this one unless it begins with /")


class SystemFile(FileModel):
    """A learner, declared with no device, host or address."""

    orch: Literal["system/v1"] = Field(description="the kind of this file")
    name: Title = Field(description="what people call it")
    kind: Literal["data-parallel", "coordinate-owned", "independent"] = Field(
        description="who has which samples, and what is combined: see docs/systems.md"
    )
    parameters: Annotated[Mapping[Identifier, FieldModel], Field(min_length=1)] = Field(
        description="what contributions read and the update changes"
    )
    state: Mapping[Identifier, FieldModel] = Field(default={}, description="what only the update reads")
    sample: Annotated[Mapping[Identifier, Columns], Field(min_length=1)] = Field(
        description="the columns of one sample, in the order of the file: name and how many"
    )
    forward: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        default=None, description="of coordinate-owned: sums over coordinates that all owners make together"
    )
    contribution: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        default=None, description="what one sample adds: assignments that read parameters and one sample"
    )
    update: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        default=None,
        description="how the state changes: assignments that read it, the means `mean_X` and `rate`",
    )
    local: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        default=None, description="of independent: how one sample changes each coordinate by itself"
    )
    evaluate: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="assignments for one sample that yield `loss`, summed in sample order"
    )
    rate: float = Field(gt=0, description="the constant that `update` reads as `rate`")
    samples: SamplesFile = Field(description="where the samples are")
    numerics: Numerics = Field(
        default=ORDERED[0],  # type: ignore[assignment]  # a short name stays as it stands; see `contract`
        description="which arithmetic, in which order; or how near to that is enough",
    )


@dataclass(frozen=True)
class Statement:
    """One assignment as the user wrote it.

    Attributes:
        text: the assignment.
        where: where the text, with its quotes, begins.
        inner: where its first character stands; None where offsets into it have no one place in the file.
        key: its key path, dotted.
    """

    text: str
    where: Where
    inner: Where | None
    key: str

    def at(self, offset: int) -> Where:
        """Gives the place of a character of the text; the statement's own where it has none."""
        if self.inner is None:
            return self.where
        return Where(self.inner.path, self.inner.line, self.inner.column + offset)


@dataclass(frozen=True)
class FieldSpec:
    """A named run of words: `size` of them, `initial` at first (one float for each word, by runs).

    `shared` says that every role computes them for itself.
    """

    name: str
    size: int
    initial: Repeated[float]
    shared: bool
    where: Where


class Column(NamedTuple):
    """The words of one sample that go by one name."""

    name: str
    size: int


@dataclass(frozen=True)
class SystemSpec:
    """A system as declared; `data` is the resolved path of its samples, `rows` how many it has.

    `bound` is how near to the reference its words must be; None if they must be the same.
    """

    path: Path
    document: Document = field(repr=False, compare=False)
    name: str
    kind: str
    parameters: tuple[FieldSpec, ...]
    state: tuple[FieldSpec, ...]
    sample: tuple[Column, ...]
    forward: tuple[Statement, ...]
    contribution: tuple[Statement, ...]
    update: tuple[Statement, ...]
    local: tuple[Statement, ...]
    evaluate: tuple[Statement, ...]
    rate: float
    data: Path
    rows: int
    numerics: str
    bound: Bound | None = None

    @property
    def width(self) -> int:
        """Words of one sample."""
        return sum(column.size for column in self.sample)

    def where(self, *key_path: str | int, key: bool = False) -> Where:
        """Gives the place of a key path in the file."""
        return self.document.where(key_path, key=key)


def header(sample: Mapping[str, int]) -> tuple[str, ...]:
    """Gives the column names of a data file's header: `y`, or `x0`, `x1`... if it has more words."""
    return tuple(
        name if size == 1 else f"{name}{index}" for name, size in sample.items() for index in range(size)
    )


def meaning(document: Document) -> tuple[Refusal, ...]:
    """Refuses what no single value shows: names that stand for two things."""
    refusals: list[Refusal] = []
    seen: dict[str, str] = {}
    for section in ("parameters", "state", "sample"):
        names = document.get(section)
        for name in names if isinstance(names, dict) else ():
            taken = "the arithmetic's own" if name in RESERVED or name.startswith("mean_") else seen.get(name)
            if taken:
                message = f"`{name}` is taken (got a name of {taken}, expected another)"
                refusals.append(document.at(Label.NAME_DUPLICATE, message, (section, name), on_key=True))
            seen.setdefault(name, section)
    refusals.extend(_programs_of_the_kind(document))
    refusals.extend(_too_many_words(document, "the state", MAX_WORDS, "parameters", "state"))
    refusals.extend(_too_many_words(document, "a sample", MAX_WIDTH, "sample"))
    return tuple(refusals)


def _programs_of_the_kind(document: Document) -> Iterator[Refusal]:
    """Refuses programs that the system's kind lacks, or has no use for."""
    kind = document.get("kind")
    needed = PROGRAMS.get(kind) if isinstance(kind, str) else None
    for name in dict.fromkeys(each for programs in PROGRAMS.values() for each in programs) if needed else ():
        is_there = document.get(name) is not None
        if needed and name in needed and not is_there:
            message = f"`{name}` is missing (got nothing, expected it in a system that is {kind})"
            yield document.at(Label.FIELD_MISSING, message, (name,))
        if needed and name not in needed and is_there:
            message = f"`{name}` is no program of this kind (got it in a system that is {kind},"
            message += f" expected {', '.join(needed)})"
            yield document.at(Label.KEY_UNKNOWN, message, (name,), on_key=True)


def _too_many_words(document: Document, what: str, most: int, *sections: str) -> Iterator[Refusal]:
    """Refuses the name with which a state or a sample becomes too large; each alone has its own bound."""
    total = 0
    for section in sections:
        names = document.get(section)
        for name in names if isinstance(names, dict) else ():
            path = (section, name) if section == "sample" else (section, name, "size")
            size = document.get(*path)
            total += size if type(size) is int and 1 <= size <= most else 0
            if total > most:
                message = f"{what} has too many words (got {total} up to here, expected at most {most})"
                yield document.at(Label.VALUE_RANGE, message, path)
                return


def build(document: Document, model: SystemFile, data: Path, rows: int) -> SystemSpec:
    """Gives the typed system of a file that nothing is wrong with."""
    numerics, bound = contract(model.numerics)
    return SystemSpec(
        path=document.path,
        document=document,
        name=model.name,
        kind=model.kind,
        parameters=_fields(document, "parameters", model.parameters),
        state=_fields(document, "state", model.state),
        sample=tuple(Column(name, size) for name, size in model.sample.items()),
        forward=_statements(document, "forward", model.forward or ()),
        contribution=_statements(document, "contribution", model.contribution or ()),
        update=_statements(document, "update", model.update or ()),
        local=_statements(document, "local", model.local or ()),
        evaluate=_statements(document, "evaluate", model.evaluate),
        rate=model.rate,
        data=data,
        rows=rows,
        numerics=numerics,
        bound=bound,
    )


def _fields(document: Document, section: str, fields: Mapping[str, FieldModel]) -> tuple[FieldSpec, ...]:
    return tuple(
        FieldSpec(
            name,
            field.size,
            _words(field),
            field.shared,
            document.where((section, name), key=True),
        )
        for name, field in fields.items()
    )


def _words(field: FieldModel) -> Repeated[float]:
    if isinstance(field.initial, tuple):
        return repeated(((word, 1) for word in field.initial), float.hex)
    return Repeated(((field.initial, field.size),))


def _statements(document: Document, section: str, texts: tuple[str, ...]) -> tuple[Statement, ...]:
    return tuple(
        Statement(
            text, document.where((section, index)), document.inner((section, index)), f"{section}[{index}]"
        )
        for index, text in enumerate(texts)
    )
