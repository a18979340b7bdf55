"""What a look at cards shows: which card each device role is bound to, and whether it may be used. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.errors import Label, Refusal, Where
from orchestrator.probe import Card, Inventory, Row, Wanted, checks
from orchestrator.qualify import devices, looks
from orchestrator.qualify.cards import BoundCard
from orchestrator.qualify.checks import Check, Verdict, equal
from orchestrator.qualify.launch import OWN, SWAPPED
from orchestrator.qualify.traces import stand_in_traces
from orchestrator.qualify.view import View
from orchestrator.spec.device import DeviceSpec
from orchestrator.spec.lane import LaneSpec

IDENTITY = ("inventory", "uuids-differ", "minor", "uuid", "product")
"""Rows that say whether a card is the one pinned; the others say whether it is fit, and nobody else's."""
_OF_MACHINE = ("inventory", "uuids-differ", "preloaded-libraries")
NOT_SEEN = "not seen"


def minors(inventory: Inventory) -> list[int]:
    """The minors of all cards of a node, sorted."""
    return sorted(card.minor.known for card in inventory.cards if card.minor.known is not None)


def bound(view: View, seen: Mapping[str, Inventory], which: str = OWN) -> dict[str, dict[str, Any]]:
    """Device role -> what `binding.json` says of its card.

    Args:
        view: the bundle.
        seen: node -> what it said of its cards.
        which: of its programs; `swapped` ones have cards of their own.
    """
    profiles = devices.profiles(view, which)
    return {
        role: _bound(view, card, profiles[role], seen.get(card.node, Inventory()))
        for role, card in devices.cards(view, which).items()
    }


def _bound(view: View, card: BoundCard, profile: DeviceSpec, seen: Inventory) -> dict[str, Any]:
    found = next((each for each in seen.cards if each.minor.known == card.minor), Card())
    return {
        "minor": card.minor,
        "uuid": found.uuid.known,
        "product": found.product.known or NOT_SEEN,
        "profile": profile.name,
        "driver": seen.driver.known,
        "bus": found.bus.known,
        "inventory": "proc" if any("proc" in each.sources for each in seen.cards) else "nvml",
        "simulated": devices.is_simulated(view),
    }


def judge(view: View, folder: str) -> tuple[Check, ...]:
    """A whole look: every card that a role is bound to is the one pinned, fit, and nobody else's.

    Args:
        view: the bundle.
        folder: of the attempt that looked, as the manifest names it.
    """
    seen = looks.inventories(view, folder)
    checks = [
        Check(f"{node}-cards", Verdict.UNKNOWN, (folder,), "what the node says of its cards", "nothing")
        for node in looks.nodes(view)
        if node not in seen
    ]
    for name, node, row in _rows(view, seen):
        got = f"{row.got}; {row.warning}" if row.warning else row.got
        said = f"{row.label}: {got}" if row.verdict == "fail" else got
        inputs = looks.inputs(folder, node)
        checks.append(Check(name, Verdict(row.verdict), inputs, row.expected, said))
    return tuple(checks)


def _rows(view: View, seen: Mapping[str, Inventory]) -> Iterator[tuple[str, str, Row]]:
    """Name of the check, node, row: those of a machine once, those of a card for each role bound to it."""
    told = set()
    for which in (OWN, SWAPPED):
        profiles = devices.profiles(view, which)
        for role, card in devices.cards(view, which).items():
            for row in (
                checks(seen[card.node], wanted(view.lane, card, profiles[role])) if card.node in seen else ()
            ):
                name = f"{card.node if row.name in _OF_MACHINE else role}-{row.name}"
                if (name, card) not in told and (name, None) not in told:
                    told.add((name, None if row.name in _OF_MACHINE else card))
                    yield name if which == OWN else f"{name}-swapped", card.node, row


def wanted(lane: LaneSpec, card: BoundCard, profile: DeviceSpec) -> Wanted:
    """The card that a role is bound to, as `orchestrator.probe` looks for one."""
    established = profile.facts["memory_total"].value
    return Wanted(
        product=profile.product,
        capability=devices.capability(profile),
        uuid=card.uuid,
        minor=card.minor,
        drivers=tuple(established) if isinstance(established, Mapping) else (),
        needs_driver=lane.driver == "established",
    )


def identity(view: View, folder: str) -> tuple[tuple[str, str, Row], ...]:
    """A brief look: rows that say whether each card is the one pinned."""
    seen = looks.inventories(view, folder, brief=True)
    return tuple(each for each in _rows(view, seen) if each[2].name in IDENTITY)


def refusals(view: View, folder: str) -> tuple[Refusal, ...]:
    """Cards that are not the ones pinned, by label."""
    return tuple(
        Refusal(row.label, f"{name} (got {row.got}, expected {row.expected})", Where(node), hint=row.hint)
        for name, node, row in identity(view, folder)
        if row.verdict == "fail"
    )


def one_sort(view: View) -> tuple[Check, ...]:
    """Cards are stand-ins everywhere or nowhere; nothing where no role has one."""
    if not devices.profiles(view):
        return ()
    traces, inputs = tuple(stand_in_traces(view)), ("stream.jsonl", "binding.json")
    if devices.is_simulated(view):
        pinned = view.pinned_cards
        files = pinned.files if pinned is not None else {}
        fine = "the stand-ins that the run was begun with"
        differing = [name for name, sha256 in files.items() if view.digest(name) != sha256]
        got = f"{', '.join(differing)} is another" if differing else fine if files else "no stand-ins"
        return (equal("simulated", (*inputs, *files), fine, got),)
    fine = "no trace of a stand-in"
    got = f"{Label.DEVICE_SIMULATED}: {'; '.join(traces[:3])}" if traces else fine
    return (equal("not-simulated", inputs, fine, got),)
