"""`orch: run/v1`: which roles take part in a system, who holds what, and what each role is made for.

Knows roles, row counts, topology and pairings as declared; must not know whether a plan for them exists:
a declaration may ask for more than is built yet, and the plan says so by its own labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from orchestrator.errors import Label, Refusal, Where
from orchestrator.spec import owners
from orchestrator.spec.document import Document
from orchestrator.spec.faults import MANY, FileModel, one_of, suggest
from orchestrator.spec.names import Names
from orchestrator.spec.owners import Ownership, OwnershipModel
from orchestrator.spec.quotas import QUOTAS, without_cards
from orchestrator.spec.repeated import Repeated, repeated
from orchestrator.spec.roles import by_role, declared_roles, missing, role_sets
from orchestrator.spec.system import BY_ROWS, SystemSpec, Title
from orchestrator.spec.units import Size, complain, describe

if TYPE_CHECKING:
    from orchestrator.spec.device import DeviceSpec

Target = Literal["x86_64-linux", "aarch64-linux", "command"]
REST = "rest"
TOPOLOGIES = ("pair", "star", "hierarchy")


def _topology(value: Any) -> Any:
    """Gives the long form of a topology's short one."""
    if not isinstance(value, str):
        return value
    if value == "hierarchy":
        raise complain(
            Label.VALUE_CHOICE,
            "(got hierarchy without a fan-out, expected {kind: hierarchy, fan_out: N})",
        )
    if value not in TOPOLOGIES:
        expected = "pair, star or {kind: hierarchy, fan_out: N}"
        message = f"(got {describe(value)}, expected {expected})"
        raise complain(Label.VALUE_CHOICE, message, suggest(value, TOPOLOGIES))
    return {"kind": value}


def _fan_out(value: Any) -> Any:
    if isinstance(value, dict) and value.get("kind") == "hierarchy" and "fan_out" not in value:
        raise complain(Label.FIELD_MISSING, "(got a hierarchy without fan_out, expected fan_out: N)")
    if isinstance(value, dict) and value.get("kind") in ("pair", "star") and "fan_out" in value:
        raise complain(
            Label.VALUE_CHOICE, f"(got a fan_out for a {value['kind']}, expected one for a hierarchy only)"
        )
    return value


def _count(value: Any) -> Any:
    if value == REST:
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise complain(Label.VALUE_TYPE, f"(got {describe(value)}, expected a row count or {REST})")
    if value < 0:
        raise complain(Label.VALUE_RANGE, f"(got {value}, expected at least 0)")
    return value


class TopologyModel(FileModel):
    """How contributions come together."""

    kind: Literal["pair", "star", "hierarchy"] = Field(description="the shape")
    fan_out: Annotated[int, Field(ge=2, le=4096)] | None = Field(
        default=None, description="how many children a node has, in a hierarchy"
    )


class PairingModel(FileModel):
    """What a role's program is made for."""

    target: Target = Field(description="what the role program is made for")
    device: str | None = Field(default=None, description="the device profile, for a device role")


_ROW_COUNT = {"anyOf": [{"type": "integer", "minimum": 0}, {"const": REST}]}
RowCount = Annotated[Any, BeforeValidator(_count), WithJsonSchema(_ROW_COUNT)]
_TOPOLOGY_FORMS = {
    "anyOf": [
        {"enum": ["pair", "star"]},
        {
            "type": "object",
            "properties": {
                "kind": {"enum": list(TOPOLOGIES), "description": "the shape"},
                "fan_out": {
                    "type": "integer",
                    "minimum": 2,
                    "description": "children of a node, in a hierarchy",
                },
            },
            "required": ["kind"],
            "additionalProperties": False,
        },
    ]
}
TopologyForm = Annotated[
    TopologyModel, BeforeValidator(_fan_out), BeforeValidator(_topology), WithJsonSchema(_TOPOLOGY_FORMS)
]


class RunFile(FileModel):
    """A system, the roles that take part, and what each role is made for."""

    orch: Literal["run/v1"] = Field(description="the kind of this file")
    name: Title = Field(description="what people call it")
    system: str = Field(
        min_length=1, description="the system's file, beside this one unless it begins with /"
    )
    topology: TopologyForm = Field(description="pair, star or {kind: hierarchy, fan_out: N}")
    roles: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="the roles in order, the root first; names or node sets such as worker[1-3]"
    )
    samples: Mapping[str, RowCount] = Field(
        default={},
        description="of a data-parallel system: how many rows each role has, in role order; one may say rest",
    )
    ownership: OwnershipModel = Field(default=OwnershipModel(), description="who holds what")
    pairings: Mapping[str, PairingModel] = Field(description="what each role's program is made for")
    memory: Mapping[str, Size] = Field(default={}, description="how much memory a role asks for")
    video_memory: Mapping[str, Size] = Field(
        default={}, description="how much of its card's memory a device role may use"
    )


@dataclass(frozen=True)
class Hierarchy:
    """A tree in which a node has at most `fan_out` children."""

    fan_out: int


@dataclass(frozen=True)
class Pairing:
    """What a role's program is made for: a target and, for a device role, a device profile."""

    target: str
    device: DeviceSpec | None
    where: Where


@dataclass(frozen=True)
class RunSpec:
    """A run as declared, by role in the order of `roles`; `memory` and `video_memory` in bytes, or None.

    Where samples are not dealt out by rows every role has every row, and `samples` is 0 for each.
    """

    path: Path
    document: Document = field(repr=False, compare=False)
    name: str
    system: SystemSpec
    topology: Literal["pair", "star"] | Hierarchy
    roles: Names
    samples: Repeated[int]
    ownership: Ownership
    pairings: Repeated[Pairing]
    memory: Repeated[int | None]
    video_memory: Repeated[int | None]

    @property
    def targets(self) -> Repeated[str]:
        """What each role's program is made for."""
        return Repeated(tuple((pairing.target, roles) for pairing, roles in self.pairings.runs))

    @property
    def devices(self) -> Repeated[DeviceSpec | None]:
        """The profile of each role's card; None of a host role."""
        return Repeated(tuple((pairing.device, roles) for pairing, roles in self.pairings.runs))

    @property
    def has_devices(self) -> bool:
        """Whether any role has a card."""
        return any(device for device, _ in self.devices.runs)

    @property
    def made_for(self) -> Repeated[tuple[str, str | None]]:
        """What each role's program is made for: target, and name of the card's profile or None."""
        return Repeated(
            tuple(
                ((each.target, each.device.name if each.device else None), roles)
                for each, roles in self.pairings.runs
            )
        )

    def where(self, *key_path: str | int, key: bool = False) -> Where:
        """Gives the place of a key path in the file."""
        return self.document.where(key_path, key=key)


def meaning(document: Document, system: SystemSpec | None) -> tuple[Refusal, ...]:
    """Refuses what no single value shows: roles that do not fit together, counts that do not total.

    Args:
        document: the file.
        system: the system that it names; None where that cannot be said.
    """
    names, refusals = declared_roles(document)
    if not names or refusals:
        return refusals
    found = list(_topology_fits(document, len(names)))
    if system is not None:
        found.extend(_fits_the_kind(document, system.kind))
    for section in ("samples", "pairings", *QUOTAS):
        sets, wrong = role_sets(document, (section,), names)
        found.extend(wrong)
        found.extend(_coverage(document, section, sets, names))
        if section == "video_memory":
            found.extend(without_cards(document, sets, names))
        if section == "samples" and not wrong and document.get(section) and _is_by_rows(system):
            found.extend(_total(document, sets, names, system.rows if system else None))
    sizes = _owned(system) if system else None
    found.extend(owners.meaning(document, names, sizes, by_columns=not _is_by_rows(system)))
    return tuple(found)


def _is_by_rows(system: SystemSpec | None) -> bool:
    return system is None or system.kind in BY_ROWS


def _fits_the_kind(document: Document, kind: str) -> Iterator[Refusal]:
    """Refuses row counts where there are none to give, and their lack where there are."""
    is_there = document.get("samples") is not None
    if kind in BY_ROWS:
        if not is_there:
            message = f"`samples` is missing (got nothing, expected row counts: the system is {kind})"
            yield document.at(Label.FIELD_MISSING, message, ("samples",))
        return
    if is_there:
        message = f"every role has every row (got row counts, expected none: the system is {kind})"
        yield document.at(Label.SAMPLES_COUNT, message, ("samples",), on_key=True)
    yield from owners.fits_columns(document, kind)


def _owned(system: SystemSpec) -> dict[str, int]:
    """Gives the words of every field whose coordinates have owners."""
    return {each.name: each.size for each in system.parameters + system.state if not each.shared}


def _topology_fits(document: Document, roles: int) -> Iterator[Refusal]:
    topology = document.get("topology")
    kind = topology.get("kind") if isinstance(topology, dict) else topology
    if kind == "pair" and roles != 2:  # noqa: PLR2004 - a pair is two
        yield document.at(Label.TOPOLOGY, f"a pair is two roles (got {roles}, expected 2)", ("topology",))
    if kind == "hierarchy" and roles < 2:  # noqa: PLR2004 - a root and another
        message = (
            f"a hierarchy is a root and at least one more role (got {roles}, expected 2 or more, or star)"
        )
        yield document.at(Label.TOPOLOGY, message, ("topology",))


def _coverage(
    document: Document, section: str, sets: Mapping[str, tuple[range, ...]], names: Names
) -> Iterator[Refusal]:
    """Refuses roles that a mapping leaves out, by name while they are few; one of quotas may."""
    if section in QUOTAS or not isinstance(document.get(section), dict):
        return
    label, what = (
        (Label.SAMPLES_COUNT, "row count") if section == "samples" else (Label.PAIRING_MISSING, "pairing")
    )
    gaps = tuple(missing(sets, len(names)))
    left_out = [names.text(gap.start, gap.stop) for gap in gaps]
    if sum(map(len, gaps)) <= MANY:
        left_out = [names[index] for gap in gaps for index in gap]
    for name in left_out:
        message = f"role `{name}` has no {what} (got nothing, expected `{name}` in `{section}`)"
        yield document.at(label, message, (section, name))


def _total(
    document: Document, sets: Mapping[str, tuple[range, ...]], names: Names, rows: int | None
) -> Iterator[Refusal]:
    counts = document.get("samples")
    heads = {key: sum(map(len, ranges)) for key, ranges in sets.items()}
    if not all(counts[key] == REST or (type(counts[key]) is int and counts[key] >= 0) for key in heads):
        return
    resting = [key for key in heads for _ in range(min(heads[key], 2)) if counts[key] == REST]
    rests = sum(heads[key] for key in set(resting))
    if rests > 1:
        message = f"one role alone can have the rest (got {rests} in {one_of(resting)}, expected one)"
        yield document.at(Label.SAMPLES_COUNT, message, ("samples", resting[1]))
        return
    total = sum(counts[key] * heads[key] for key in heads if counts[key] != REST)
    if rows is None or sum(heads.values()) != len(names):
        return
    if total > rows or (total < rows and not rests):
        expected = f"at most {rows}" if rests else f"{rows}"
        message = f"the row counts do not total the data file's rows (got {total}, expected {expected})"
        yield document.at(Label.SAMPLES_COUNT, message, ("samples",))


def build(
    document: Document, model: RunFile, system: SystemSpec, devices: Mapping[str, DeviceSpec]
) -> RunSpec:
    """Gives the typed run of a file that nothing is wrong with."""
    names, _ = declared_roles(document)

    def stated(section: str, values: Mapping[str, Any]) -> tuple[tuple[tuple[str, Any], int], ...]:
        return by_role(role_sets(document, (section,), names)[0], len(names), values).runs

    is_by_rows = system.kind in BY_ROWS
    counts = [(count, roles) for (_, count), roles in stated("samples", model.samples)] if is_by_rows else []
    rest = system.rows - sum(count * roles for count, roles in counts if count != REST)
    pairings = {key: _pairing(document, key, pairing, devices) for key, pairing in model.pairings.items()}
    topology: Any = model.topology.kind
    return RunSpec(
        path=document.path,
        document=document,
        name=model.name,
        system=system,
        topology=Hierarchy(model.topology.fan_out) if model.topology.fan_out is not None else topology,
        roles=names,
        samples=(
            repeated(((rest if count == REST else count, roles) for count, roles in counts), int)
            if is_by_rows
            else Repeated(((0, len(names)),))
        ),
        ownership=owners.build(document, model.ownership, names, by_columns=not is_by_rows),
        pairings=Repeated(tuple((pairing, roles) for (_, pairing), roles in stated("pairings", pairings))),
        memory=Repeated(tuple((asked, roles) for (_, asked), roles in stated("memory", model.memory))),
        video_memory=Repeated(
            tuple((asked, roles) for (_, asked), roles in stated("video_memory", model.video_memory))
        ),
    )


def _pairing(
    document: Document, key: str, pairing: PairingModel, devices: Mapping[str, DeviceSpec]
) -> Pairing:
    device = devices[pairing.device] if pairing.device is not None else None
    return Pairing(pairing.target, device, document.where(("pairings", key, "target")))
