"""`ownership:` of a run: what is held by every role or split between them, and who owns which coordinates.

Knows declared ranges, which must be every coordinate once; must not know what a role does with its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from orchestrator.errors import Label, Refusal
from orchestrator.spec.document import Document
from orchestrator.spec.faults import FileModel
from orchestrator.spec.names import Names
from orchestrator.spec.places import visible
from orchestrator.spec.repeated import Repeated
from orchestrator.spec.roles import by_role, role_sets
from orchestrator.spec.units import complain, describe

Holding = Literal["replicated", "partitioned"]
PARTS = ("parameters", "optimizer_state", "gradients")
RANGES = ("ownership", "ranges")
NONE = "none"
_PATTERN = r"([0-9]{1,9})(-([0-9]{1,9}))?"
_EXPECTED = "coordinates such as 0-3 or 7 in quotes, or none"
_SHOWN_GAPS = 8


def _coordinates(value: Any) -> range:
    if not isinstance(value, str):
        raise complain(Label.VALUE_TYPE, f"(got {describe(value)}, expected {_EXPECTED})")
    if value == NONE:
        return range(0)
    match = re.fullmatch(_PATTERN, value, re.ASCII)
    if match is None or int(match[1]) > int(match[3] or match[1]):
        raise complain(Label.VALUE_FORMAT, f"(got `{visible(value)}`, expected {_EXPECTED})")
    return range(int(match[1]), int(match[3] or match[1]) + 1)


Coordinates = Annotated[
    Any,
    BeforeValidator(_coordinates),
    WithJsonSchema({"type": "string", "pattern": f"^({_PATTERN}|{NONE})$", "examples": ["0-3", "7", NONE]}),
]


class OwnershipModel(FileModel):
    """Who holds which part of the state."""

    parameters: Holding = Field(default="replicated", description="on every role, or split between them")
    optimizer_state: Holding = Field(default="replicated", description="on every role, or split between them")
    gradients: Holding = Field(default="replicated", description="on every role, or split between them")
    ranges: Mapping[str, Coordinates] = Field(
        default={}, description="the first and last coordinate that each role owns; else they are dealt out"
    )


@dataclass(frozen=True)
class Ownership:
    """Who holds parameters, optimizer state and gradients: `replicated` or `partitioned`.

    `ranges`: in role order the coordinates that each role owns of every field; empty where none are declared.
    """

    parameters: Holding
    optimizer_state: Holding
    gradients: Holding
    ranges: Sequence[range] = ()


def fits_columns(document: Document, kind: str) -> Iterator[Refusal]:
    """Refuses to replicate what owners of columns have each for themselves."""
    for key in PARTS:
        if document.get("ownership", key) == "replicated":
            message = f"owners have their coordinates alone (got replicated, expected partitioned: {kind})"
            yield document.at(Label.VALUE_CHOICE, message, ("ownership", key))


def build(document: Document, model: OwnershipModel, names: Names, *, by_columns: bool) -> Ownership:
    """Gives the typed ownership of a file that nothing is wrong with; `by_columns` partitions all of it."""
    ranges: Sequence[range] = ()
    if model.ranges:
        owned = by_role(role_sets(document, RANGES, names)[0], len(names), model.ranges)
        ranges = Repeated(tuple((own or range(0), count) for (_, own), count in owned.runs))
    if by_columns:
        return Ownership("partitioned", "partitioned", "partitioned", ranges)
    return Ownership(model.parameters, model.optimizer_state, model.gradients, ranges)


def meaning(
    document: Document, names: Names, sizes: Mapping[str, int] | None, *, by_columns: bool
) -> Iterator[Refusal]:
    """Refuses ranges that are not every coordinate once.

    Args:
        document: the file.
        names: its roles.
        sizes: words of each field that has owners; None where that cannot be said.
        by_columns: whether all is partitioned, whatever the file says.
    """
    declared = document.get(*RANGES)
    if not isinstance(declared, dict):
        return
    sets, wrong = role_sets(document, RANGES, names)
    yield from wrong
    if not by_columns and "partitioned" not in [document.get("ownership", part) for part in PARTS]:
        message = (
            "nothing is split between roles (got ranges, expected one of parameters, optimizer_state and"
        )
        yield document.at(Label.VALUE_CHOICE, f"{message} gradients to be partitioned)", RANGES, on_key=True)
    if not sizes or wrong:
        return
    if len(set(sizes.values())) > 1:
        got = " and ".join(f"{name} of {size}" for name, size in sizes.items())
        message = f"ranges are of fields of one size (got {got}, expected one size)"
        yield document.at(Label.OWNERSHIP_UNSUPPORTED, message, RANGES, on_key=True)
        return
    yield from _cover(document, sets, declared, next(iter(sizes.values())))


def _cover(
    document: Document, sets: Mapping[str, tuple[range, ...]], declared: Mapping[str, Any], size: int
) -> Iterator[Refusal]:
    claims: list[tuple[int, int, int, str]] = []  # start, stop, place in the file, key
    for place, (key, value) in enumerate(declared.items()):
        try:
            own = _coordinates(value)
        except ValueError:
            return  # its own refusal says so
        if own.stop > size:
            message = f"there is no such coordinate (got {own.stop - 1}, expected at most {size - 1})"
            yield document.at(Label.VALUE_RANGE, message, (*RANGES, key))
        if (heads := sum(map(len, sets.get(key, ())))) > 1 and own:
            message = f"{heads} roles own the same words (got {value} for each, expected one owner)"
            yield document.at(Label.OWNERSHIP_OVERLAP, message, (*RANGES, key))
        if own:
            claims.append((own.start, min(own.stop, size), place, key))
    yield from _overlaps(document, sorted(claims))
    yield from _gaps(document, sorted(claims), size)


def _overlaps(document: Document, claims: list[tuple[int, int, int, str]]) -> Iterator[Refusal]:
    """Refuses, of two ranges that share a coordinate, the one that stands later in the file."""
    end, reaches = 0, (0, "")  # how far the ranges before reach, and which of them does
    for start, stop, place, key in claims:
        if start < end:
            (_, first), (_, later) = sorted((reaches, (place, key)))
            shared = f"{start}-{min(stop, end) - 1}" if min(stop, end) - 1 > start else f"{start}"
            message = (
                f"two roles own the same words (got {shared} for `{visible(first)}` too, expected one owner)"
            )
            yield document.at(Label.OWNERSHIP_OVERLAP, message, (*RANGES, later))
        if stop > end:
            end, reaches = stop, (place, key)


def _gaps(document: Document, claims: list[tuple[int, int, int, str]], size: int) -> Iterator[Refusal]:
    gaps, end = [], 0
    for start, stop in (*((start, stop) for start, stop, _, _ in claims), (size, size)):
        if start > end:
            gaps.append(f"{end}-{start - 1}" if start - 1 > end else f"{end}")
        end = max(end, stop)
    if gaps:
        more = f" and {len(gaps) - _SHOWN_GAPS} more" if len(gaps) > _SHOWN_GAPS else ""
        got = ", ".join(gaps[:_SHOWN_GAPS]) + more
        message = f"coordinates have no owner (got none for {got}, expected every one of 0-{size - 1} once)"
        yield document.at(Label.OWNERSHIP_GAP, message, RANGES, on_key=True)
