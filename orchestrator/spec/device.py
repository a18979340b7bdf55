"""`orch: device/v1`: what one product of card is known to hold.

Knows how a fact is told: *established* with a reference, or *absent* with a reason. Must not know what is
done with it: admission decides, and refuses on absent facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from orchestrator.errors import Label, Refusal
from orchestrator.spec.document import Document
from orchestrator.spec.faults import FileModel, TextLike
from orchestrator.spec.system import Title
from orchestrator.spec.units import Size

ComputeCapability = Annotated[
    str, TextLike(r"[0-9]{1,2}\.[0-9]", 'a compute capability in quotes, such as "8.6"')
]
Driver = Annotated[str, TextLike(r"[0-9]+(\.[0-9]+)+", 'a driver version in quotes, such as "550.54"')]
Text = Annotated[str, Field(min_length=1)]


class _Fact(FileModel):
    reference: Text | None = Field(default=None, description="where an established fact was read")
    absent: Text | None = Field(default=None, description="why the fact is not known")


class CapabilityFact(_Fact):
    """The compute capability."""

    established: ComputeCapability | None = Field(default=None, description="the fact")


class MemoryFact(_Fact):
    """Memory by driver version: the same card reports another size under another driver."""

    established: Annotated[Mapping[Driver, Size], Field(min_length=1)] | None = Field(
        default=None, description="driver version to size"
    )


class NumberFact(_Fact):
    """A whole number."""

    established: Annotated[int, Field(ge=1, le=64)] | None = Field(default=None, description="the fact")


class SupportFact(_Fact):
    """Whether the card does something itself."""

    established: Literal["native", "none"] | None = Field(default=None, description="the fact")


class FactsModel(FileModel):
    """What is known of the product; every fact is told, if only as absent."""

    compute_capability: CapabilityFact = Field(description="which instructions the card has")
    memory_total: MemoryFact = Field(description="all memory that the driver reports")
    memory_reserved: MemoryFact = Field(description="the part that the driver keeps")
    pcie_generation: NumberFact = Field(description="the link's generation at most")
    pcie_width: NumberFact = Field(description="the link's lanes at most")
    float16: SupportFact = Field(description="arithmetic in binary16")
    bfloat16: SupportFact = Field(description="arithmetic in bfloat16")
    copy_engines: NumberFact = Field(description="copies that can be under way at once")


class DeviceFile(FileModel):
    """What one product of card is known to hold."""

    orch: Literal["device/v1"] = Field(description="the kind of this file")
    name: Title = Field(description="what pairings call it")
    vendor: Literal["nvidia", "amd"] = Field(description="who makes it")
    product: Text = Field(description="the exact product string that the driver reports")
    facts: FactsModel = Field(description="each fact, established with a reference or absent with a reason")


@dataclass(frozen=True)
class Fact:
    """One fact: `value` with its `reference`, or None with the `reason` why it is not known."""

    value: str | int | Mapping[str, int] | None
    reference: str | None
    reason: str | None


@dataclass(frozen=True)
class DeviceSpec:
    """A device profile; `facts` by name (sizes in bytes by driver version)."""

    path: Path
    document: Document = field(repr=False, compare=False)
    name: str
    vendor: str
    product: str
    facts: Mapping[str, Fact]


def meaning(document: Document) -> tuple[Refusal, ...]:
    """Refuses facts that are neither established with a reference nor absent with a reason, or both."""
    refusals: list[Refusal] = []
    facts = document.get("facts")
    for name, fact in facts.items() if isinstance(facts, dict) else ():
        if not isinstance(fact, dict) or name not in FactsModel.model_fields:
            continue
        path = ("facts", name)
        told = {key for key, value in fact.items() if value is not None}
        if "absent" in told and told & {"established", "reference"}:
            message = f"`{name}` is told both ways (got absent with the rest, expected established or absent)"
            refusals.append(document.at(Label.VALUE_CHOICE, message, (*path, "absent"), on_key=True))
        elif not told & {"absent", "established"}:
            message = f"`{name}` is not told (got nothing, expected established with a reference, or absent)"
            refusals.append(document.at(Label.FIELD_MISSING, message, path, on_key=True))
        elif "established" in told and "reference" not in told:
            message = f"`{name}` has no reference (got nothing, expected where the fact was read)"
            refusals.append(document.at(Label.FIELD_MISSING, message, (*path, "reference")))
    return tuple(refusals)


def build(document: Document, model: DeviceFile) -> DeviceSpec:
    """Gives the typed profile of a file that nothing is wrong with."""
    told = {name: getattr(model.facts, name) for name in FactsModel.model_fields}
    return DeviceSpec(
        path=document.path,
        document=document,
        name=model.name,
        vendor=model.vendor,
        product=model.product,
        facts={name: Fact(fact.established, fact.reference, fact.absent) for name, fact in told.items()},
    )


def release_for(driver: str, established: Iterable[str]) -> str | None:
    """Gives of releases that facts were established for the one that a driver is of; None if it is of none.

    A driver such as 550.54.14 is of 550.54, whose parts it begins with; of several, of the longest.
    """
    parts = driver.split(".")
    return max(
        (each for each in established if parts[: len(each.split("."))] == each.split(".")),
        key=lambda each: len(each.split(".")),
        default=None,
    )
