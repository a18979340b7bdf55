"""`matrix:` of a lane: one lane over every system, shape and ownership; each combination is a cell.

Knows the axes as declared; must not know the files of a cell (`orchestrator.spec.cells`), which cells a plan
admits, nor what is done with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import cycle, islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from orchestrator.errors import Label, Refusal
from orchestrator.spec.document import Document
from orchestrator.spec.faults import FileModel, TextLike
from orchestrator.spec.lane import (
    Limits,
    NativeTarget,
    QualificationFile,
    limits,
    split_refusals,
    swap_fits,
    swapped_devices,
)
from orchestrator.spec.nodesets import NAME
from orchestrator.spec.owners import OwnershipModel
from orchestrator.spec.run import TopologyForm
from orchestrator.spec.system import BY_ROWS, SHAPELESS, SystemSpec

if TYPE_CHECKING:
    from orchestrator.spec.device import DeviceSpec

SECTION = "matrix"
DEFAULT_TARGETS: tuple[NativeTarget, ...] = ("x86_64-linux",)
HOST = "host"
"""Among a shape's devices: no card."""

CellName = Annotated[str, TextLike(r"[a-z0-9]+(-[a-z0-9]+)*", "lower-case letters and digits joined by -")]
RoleName = Annotated[str, TextLike(NAME, "lower-case letters, digits, - and _, beginning with a letter")]


class ShapeModel(FileModel):
    """Which roles take part, how they are joined, and what each has of the samples."""

    topology: TopologyForm = Field(description="pair, star or {kind: hierarchy, fan_out: N}")
    shares: Annotated[
        Mapping[RoleName, Annotated[int, Field(ge=0, le=1 << 20)]], Field(min_length=1, max_length=64)
    ] = Field(description="the roles in order, the root first, each with its share of the rows; 0 for none")
    targets: Annotated[tuple[NativeTarget, ...], Field(min_length=1)] = Field(
        default=DEFAULT_TARGETS, description="what the roles' programs are made for, in turn"
    )
    devices: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)] = Field(
        default=(HOST,), description="the device profiles of the roles' cards, in turn; host for no card"
    )

    @property
    def made_for(self) -> tuple[tuple[str, str | None], ...]:
        """Target, and name of the card's profile or None, for a role each, in role order."""
        turns = islice(zip(cycle(self.targets), cycle(self.devices), strict=False), len(self.shares))
        return tuple((target, None if device == HOST else device) for target, device in turns)

    @property
    def has_devices(self) -> bool:
        """Whether any role has a card."""
        return any(device for _, device in self.made_for)


class MatrixModel(FileModel):
    """The axes; every combination of their entries is a cell."""

    systems: Annotated[Mapping[CellName, Annotated[str, Field(min_length=1)]], Field(min_length=1)] = Field(
        description="name to the system's file, beside this one unless it begins with /"
    )
    shapes: Annotated[Mapping[CellName, ShapeModel], Field(min_length=1)] = Field(
        description="name to roles and topology"
    )
    ownership: Annotated[Mapping[CellName, OwnershipModel], Field(min_length=1)] = Field(
        description="name to who holds what; with the first, all is replicated: the others must be its equal"
    )


class MatrixFile(QualificationFile):
    """One lane over every combination of systems, shapes and ownership."""

    matrix: MatrixModel = Field(description="the axes: systems, shapes, ownership")
    swap: Mapping[str, str] = Field(
        default={},
        description="target, or device profile, to that of its roles when the split run is resumed",
    )


@dataclass(frozen=True)
class Cell:
    """One combination."""

    system: str
    shape: str
    ownership: str

    @property
    def name(self) -> str:
        """As people, events and folders name it: `adam/star/all`."""
        return f"{self.system}/{self.shape}/{self.ownership}"


@dataclass(frozen=True)
class MatrixSpec:
    """A matrix as declared; a lane of `updates` updates in every cell, split after `split`.

    `profiles`: by name, of the cards that shapes and `swap` name.
    """

    path: Path
    document: Document = field(repr=False, compare=False)
    name: str
    systems: Mapping[str, SystemSpec]
    shapes: Mapping[str, ShapeModel]
    ownership: Mapping[str, OwnershipModel]
    updates: int
    split: int
    swap: Mapping[str, str]
    profiles: Mapping[str, DeviceSpec]
    limits: Limits

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell; those of one system and shape together, the replicated one first."""
        return tuple(Cell(*each) for each in product(self.systems, self.shapes, self.ownership))

    def reference(self, cell: Cell) -> Cell:
        """The cell that this one must be the equal of; itself if the oracle alone says what it computes.

        With rows dealt out it is the same system and shape with all replicated. Owners of coordinates
        replicate nothing: it is the first shape where states depend on no owner; else each has its own order.
        """
        kind = self.systems[cell.system].kind
        if kind in BY_ROWS:
            return Cell(cell.system, cell.shape, next(iter(self.ownership)))
        return Cell(cell.system, next(iter(self.shapes)), cell.ownership) if kind in SHAPELESS else cell

    def roles(self, cell: Cell) -> int:
        """How many roles take part."""
        return len(self.shapes[cell.shape].shares)

    def swap_of(self, cell: Cell) -> dict[str, str]:
        """What its own lane swaps: of the whole, what some role of its shape is made for."""
        used = {each for pair in self.shapes[cell.shape].made_for for each in pair}
        return {before: after for before, after in self.swap.items() if before in used}

    def profiles_of(self, cell: Cell) -> tuple[DeviceSpec, ...]:
        """The profiles that its own run and lane name, each once."""
        named = dict.fromkeys(device for _, device in self.shapes[cell.shape].made_for)
        named |= dict.fromkeys(self.swap_of(cell).values())
        return tuple(self.profiles[name] for name in named if name and name in self.profiles)


def meaning(document: Document) -> Iterator[Refusal]:
    """Refuses what no single value shows: nobody with samples, nothing to compare with, a split outside."""
    yield from split_refusals(document)
    shapes = document.get(SECTION, "shapes")
    yield from swap_fits(document, _made_for(shapes))
    for name, shape in shapes.items() if isinstance(shapes, dict) else ():
        shares = shape.get("shares") if isinstance(shape, dict) else None
        if isinstance(shares, dict) and shares and not any(shares.values()):
            message = "nobody has any samples (got shares of 0 alone, expected one above 0)"
            yield document.at(Label.VALUE_RANGE, message, (SECTION, "shapes", name, "shares"))
    ownership = document.get(SECTION, "ownership")
    if isinstance(ownership, dict) and ownership:
        name, first = next(iter(ownership.items()))
        if isinstance(first, dict) and "partitioned" in first.values():
            message = (
                "the others would have nothing to be compared with (got a first one that is partitioned,"
                " expected one with all replicated)"
            )
            yield document.at(Label.VALUE_CHOICE, message, (SECTION, "ownership", name))


def _made_for(shapes: Any) -> Iterator[str]:
    """Yields every target and device profile that shapes name, wrong ones too."""
    for shape in shapes.values() if isinstance(shapes, dict) else ():
        for key, default in (("targets", DEFAULT_TARGETS), ("devices", ())):
            named = shape.get(key, default) if isinstance(shape, dict) else ()
            if isinstance(named, list | tuple):
                yield from (each for each in named if isinstance(each, str) and each != HOST)


def device_keys(document: Document) -> Iterator[tuple[str | int, ...]]:
    """Yields where the file names device profiles: in shapes, and in a swap of what they name."""
    shapes = document.get(SECTION, "shapes")
    for name, shape in shapes.items() if isinstance(shapes, dict) else ():
        devices = shape.get("devices") if isinstance(shape, dict) else None
        for index, device in enumerate(devices) if isinstance(devices, list) else ():
            if device != HOST:
                yield SECTION, "shapes", name, "devices", index
    used = set(_made_for(shapes))
    yield from (("swap", each) for each in swapped_devices(document) if each in used)


def systems_fit(document: Document, systems: Mapping[str, SystemSpec]) -> Iterator[Refusal]:
    """Refuses systems whose cells could not be one another's equals to the bit."""
    for name, system in systems.items():
        if system.bound is not None:
            message = f"cells are compared to the bit (got {system.numerics}, expected ordered numerics)"
            yield document.at(Label.VALUE_CHOICE, message, (SECTION, "systems", name))


def build(
    document: Document,
    model: MatrixFile,
    systems: Mapping[str, SystemSpec],
    profiles: Mapping[str, DeviceSpec],
) -> MatrixSpec:
    """Gives the typed matrix of a file that nothing is wrong with."""
    return MatrixSpec(
        path=document.path,
        document=document,
        name=model.name,
        systems={name: systems[name] for name in model.matrix.systems},
        shapes=dict(model.matrix.shapes),
        ownership=dict(model.matrix.ownership),
        updates=model.updates,
        split=model.split,
        swap=dict(model.swap),
        profiles=profiles,
        limits=limits(model.limits),
    )
