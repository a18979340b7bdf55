"""`orch: programme/v1`: milestones and work items, and what would prove each.

Knows the file; the tracker's own values come out, and only the tracker knows which item is proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal

from pydantic import Field

from orchestrator.errors import Label, Refusal
from orchestrator.spec.document import Document
from orchestrator.spec.faults import FileModel, TextLike, one_of, suggest
from orchestrator.spec.places import visible
from orchestrator.spec.system import Title
from tracker.programme import Item, Programme, Proof

Identifier = Annotated[
    str, TextLike(r"[A-Za-z][A-Za-z0-9._-]{0,31}", "a letter, then letters, digits, ., - and _")
]
Digest = Annotated[str, TextLike(r"[0-9a-f]{64}", "64 lower-case hexadecimal digits")]
Text = Annotated[str, Field(min_length=1)]


class ProofModel(FileModel):
    """Which bundle would prove an item."""

    lane: Title = Field(description="the lane's name")
    grade: Literal["host", "emulated", "simulated", "physical"] = Field(description="what it is evidence of")
    products: tuple[Text, ...] = Field(default=(), description="the cards' exact product strings")
    system: Digest | None = Field(default=None, description="the system's digest, as `orch plan` gives it")
    plan: Digest | None = Field(default=None, description="the plan's digest, as `orch plan` gives it")


class ItemModel(FileModel):
    """A piece of work."""

    title: Text = Field(description="what it is")
    milestone: str = Field(description="the milestone that it belongs to")
    needs: tuple[str, ...] = Field(default=(), description="the items that come before it")
    proof: ProofModel | None = Field(default=None, description="which bundle would prove it")
    status: Literal["planned", "in-progress", "implemented"] = Field(
        default="planned", description="how far its code is; what is proven is not said here"
    )


class ProgrammeFile(FileModel):
    """What is planned, and what would prove it."""

    orch: Literal["programme/v1"] = Field(description="the kind of this file")
    milestones: Annotated[Mapping[Identifier, Text], Field(min_length=1)] = Field(
        description="milestones by name, with their titles"
    )
    items: Mapping[Identifier, ItemModel] = Field(description="items by name")


def meaning(document: Document) -> tuple[Refusal, ...]:
    """Refuses what no single value shows: milestones and items that are not there, rings of needs."""
    items, milestones = document.get("items"), document.get("milestones")
    items = (
        {name: item for name, item in items.items() if isinstance(item, dict)}
        if isinstance(items, dict)
        else {}
    )
    milestones = milestones if isinstance(milestones, dict) else {}
    return (*_names(document, items, milestones), *_ring(document, items), *_proofs(document, items))


def _names(document: Document, items: Mapping[str, Any], milestones: Mapping[str, Any]) -> Iterator[Refusal]:
    for name, item in items.items():
        milestone = item.get("milestone")
        if isinstance(milestone, str) and milestone not in milestones:
            message = (
                f"there is no such milestone (got `{visible(milestone)}`, expected {one_of(milestones)})"
            )
            hint = suggest(milestone, milestones)
            yield document.at(Label.NAME_UNKNOWN, message, ("items", name, "milestone"), hint=hint)
        needs = _needs(item)
        for index, need in enumerate(needs):
            path = ("items", name, "needs", index)
            if need not in items:
                message = f"there is no such item (got `{visible(need)}`, expected one of the items)"
                yield document.at(Label.NAME_UNKNOWN, message, path, hint=suggest(need, items))
            elif need in needs[:index]:
                message = f"an item is needed once (got `{visible(need)}` again, expected it once)"
                yield document.at(Label.NAME_DUPLICATE, message, path)


def _needs(item: Mapping[str, Any]) -> list[str]:
    needs = item.get("needs")
    return needs if isinstance(needs, list) and all(isinstance(need, str) for need in needs) else []


def _ring(document: Document, items: Mapping[str, Any]) -> Iterator[Refusal]:
    try:
        TopologicalSorter({name: _needs(item) for name, item in items.items()}).prepare()
    except CycleError as error:
        ring = list(reversed(error.args[1]))
        first = min(ring, key=lambda name: list(items).index(name))
        message = f"items need each other (got {' -> '.join(ring)}, expected an order without a ring)"
        yield document.at(Label.DEPENDENCY_CYCLE, message, ("items", first, "needs"))


def _proofs(document: Document, items: Mapping[str, Any]) -> Iterator[Refusal]:
    for name, item in items.items():
        proof = item.get("proof")
        if isinstance(proof, dict) and proof.get("products") and proof.get("grade") in ("host", "emulated"):
            message = f"no card is bound at this grade (got products for {proof['grade']}, expected none)"
            yield document.at(Label.VALUE_CHOICE, message, ("items", name, "proof", "products"))


def build(model: ProgrammeFile) -> Programme:
    """Gives the programme of a file that nothing is wrong with."""
    return Programme(
        milestones=dict(model.milestones),
        items=tuple(
            Item(
                id=name,
                title=item.title,
                milestone=item.milestone,
                needs=item.needs,
                proof=_proof(item.proof) if item.proof else None,
                status=item.status,
            )
            for name, item in model.items.items()
        ),
    )


def _proof(model: ProofModel) -> Proof:
    return Proof(model.lane, model.grade, model.products, model.system, model.plan)
