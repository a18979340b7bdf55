"""This machine's own cards, chosen for the device roles of a lane before it begins.

Asks the machine what it has; a card that is not what a role needs is never taken for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.plan.derive import Planned
from orchestrator.probe import Inventory
from orchestrator.qualify import devices, looks
from orchestrator.qualify.cards import BoundCard, PinnedCards, Wish, choose
from orchestrator.qualify.launch import OWN, SWAPPED
from orchestrator.qualify.view import LOCAL, SIMULATED
from orchestrator.remote.local import Local
from orchestrator.spec.faults import one_of
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.nodesets import fold

_WAYS = f"`--pods FILE` names machines that have cards; `--pods {SIMULATED}` runs on stand-ins"


def cards_here(planned: Planned, lane: LaneSpec) -> PinnedCards | None:
    """A card for every device role; None where there is no such role.

    Raises:
        RefusedError: `device-absent`: there is no card, or too few of a product; or what this machine's tools
            say instead of a list of cards, by its label.
    """
    own, swapped = (devices.of_planned(planned, lane, which) for which in (OWN, SWAPPED))
    if not own:
        return None
    inventory = looks.of_machine(Local(LOCAL))
    _refuse(inventory)
    pool = [
        (BoundCard(LOCAL, card.minor.known, card.uuid.known), card.product.known or "")
        for card in inventory.cards
        if card.minor.known is not None
    ]
    found: list[dict[str, BoundCard]] = []
    for made in (own, swapped):
        wishes = {role: Wish(LOCAL, device.product) for role, device in made.items()}
        chosen = choose(wishes, pool, found[0] if found else None)
        lacking = {role: wish.product for role, wish in wishes.items() if role not in chosen}
        if lacking:
            raise RefusedError(_refusals(lacking, sorted({name for _, name in pool})))
        found.append(chosen)
    return PinnedCards(is_simulated=False, own=found[0], swapped=found[1] if lane.swap else {})


def _refusals(lacking: Mapping[str, str], products: Sequence[str]) -> Iterator[Refusal]:
    """One for each product of which there are too few cards; all roles that it leaves without are named."""
    there = one_of(products) if products else "no card"
    for product in dict.fromkeys(lacking.values()):
        roles = fold(role for role, wanted in lacking.items() if wanted == product)
        message = f"no card is left for {roles} on this machine (got {there}, expected {product})"
        yield Refusal(Label.DEVICE_ABSENT, message, Where(LOCAL), hint=_WAYS)


def _refuse(inventory: Inventory) -> None:
    """Refuses a machine without a card, by the reason that its tools give; and stand-ins, which are none."""
    if inventory.is_simulated:
        message = "this machine's tools are a stand-in's (got simulated cards, expected real ones)"
        raise RefusedError([Refusal(Label.DEVICE_SIMULATED, message, Where(LOCAL), hint=_WAYS)])
    if inventory.cards:
        return
    told = next((fault for fault in inventory.faults if fault.label != Label.DEVICE_ABSENT), None)
    if told is not None:
        raise RefusedError([Refusal(told.label, told.message, Where(LOCAL), hint=told.hint or _WAYS)])
