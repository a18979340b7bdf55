"""Whether every card holds what its role allocates, under the driver that was found there. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.admit.device import FoundCard, Part, admit_cards
from orchestrator.probe import Inventory
from orchestrator.qualify import devices, looks
from orchestrator.qualify.checks import Check, equal
from orchestrator.qualify.launch import OWN, SWAPPED
from orchestrator.qualify.view import View
from orchestrator.spec.run import RunSpec


def card_memory(view: View, folder: str) -> tuple[Check, ...]:
    """A check for every device role; nothing where there is none.

    Args:
        view: the bundle.
        folder: of the attempt that looked at the cards, as the manifest names it.
    """
    run, lane, cards = view.lane.run, view.lane, devices.cards(view)
    if not isinstance(run, RunSpec) or not cards:
        return ()
    seen = looks.inventories(view, folder)
    parts = [Part(view.planned, _found(view, OWN, seen))]
    if lane.swap:
        parts.append(Part(view.planned.swapped(lane), _found(view, SWAPPED, seen)))
    said: dict[str, list[str]] = {role: [] for role in cards}
    for refusal in admit_cards(run, parts):
        role = refusal.key.removeprefix("video_memory.")
        for each in (role,) if role in said else said:  # what is wrong with all of it is so for everyone
            said[each].append(f"{refusal.label}: {refusal.message}")
    fine = "all that it allocates, and the driver's context, within the card's memory"
    return tuple(
        equal(
            f"{role}-video-memory",
            looks.inputs(folder, cards[role].node),
            fine,
            "; ".join(refused) or fine,
        )
        for role, refused in said.items()
    )


def _found(view: View, which: str, seen: Mapping[str, Inventory]) -> dict[str, FoundCard]:
    return {
        role: FoundCard(
            card.node, card.uuid or f"minor {card.minor}", seen.get(card.node, Inventory()).driver.known
        )
        for role, card in devices.cards(view, which).items()
    }
