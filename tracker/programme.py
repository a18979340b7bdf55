"""The programme as values: milestones, work items, what each needs and what would prove it.

Knows nothing of files or databases: readers build these values, the tracker loads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

GRADES = ("host", "emulated", "simulated", "physical")
DECLARED = ("planned", "in-progress", "implemented")


@dataclass(frozen=True)
class Proof:
    """The acceptance evidence that an item asks for.

    Attributes:
        lane: name of the lane whose pass proves the item.
        grade: one of `GRADES`; the run's grade must be this very one.
        products: the cards that must have been bound, one entry a card; a product named twice asks for two
            distinct cards.
        system, plan: SHA-256, lower hexadecimal, that the run must have; None accepts any. Without them the
            lane's name alone says what is proven.
    """

    lane: str
    grade: str
    products: tuple[str, ...] = ()
    system: str | None = None
    plan: str | None = None


@dataclass(frozen=True)
class Item:
    """A work item. `status` is what its authors declare; `verified` cannot be declared, only proven."""

    id: str
    title: str
    milestone: str
    needs: tuple[str, ...] = ()
    proof: Proof | None = None
    status: str = "planned"


@dataclass(frozen=True)
class Programme:
    """Milestones by identifier with their titles, and the items in the order of their file."""

    milestones: Mapping[str, str]
    items: tuple[Item, ...]


def problems(programme: Programme) -> tuple[str, ...]:
    """Give every contradiction in a programme, in the order of its items; empty if there is none."""
    found: list[str] = []
    names = {item.id for item in programme.items}
    seen: set[str] = set()
    for item in programme.items:
        if item.id in seen:
            found.append(f"item {item.id}: declared twice (got a second one, expected one)")
        seen.add(item.id)
        found.extend(_item_problems(item, programme.milestones, names))
    return (*found, *_cycle(programme))


def _item_problems(item: Item, milestones: Mapping[str, str], names: set[str]) -> list[str]:
    found: list[str] = []
    if item.milestone not in milestones:
        found.append(
            f"item {item.id}: unknown milestone (got {item.milestone!r}, expected {_one_of(milestones)})"
        )
    found.extend(
        f"item {item.id}: needs an unknown item (got {need!r}, expected one of the programme's items)"
        for need in item.needs
        if need not in names
    )
    if item.status not in DECLARED:
        found.append(f"item {item.id}: status (got {item.status!r}, expected {_one_of(DECLARED)})")
    if item.proof is not None and item.proof.grade not in GRADES:
        found.append(f"item {item.id}: grade (got {item.proof.grade!r}, expected {_one_of(GRADES)})")
    if item.proof is not None:
        from evidence.digest import is_sha256

        found.extend(
            f"item {item.id}: {name} (got {value!r}, expected 64 lower-case hexadecimal digits)"
            for name, value in (("system", item.proof.system), ("plan", item.proof.plan))
            if value is not None and not is_sha256(value)
        )
    return found


def _cycle(programme: Programme) -> tuple[str, ...]:
    try:
        TopologicalSorter({item.id: item.needs for item in programme.items}).prepare()
    except CycleError as error:
        ring = " -> ".join(reversed(error.args[1]))
        return (
            f"item {error.args[1][-1]}: dependency-cycle: (got {ring}, expected an order without a ring)",
        )
    return ()


def _one_of(choices: object) -> str:
    names = tuple(str(choice) for choice in choices) if hasattr(choices, "__iter__") else ()
    return f"one of {', '.join(names)}" if names else "one that is declared"
