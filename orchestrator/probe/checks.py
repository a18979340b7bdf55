"""What forbids to use a card: one row for each thing looked at, decided by an inventory alone.

Pure. A row that cannot be decided is unknown, never a pass. Knows cards; must not know a lane.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from orchestrator.errors import Label
from orchestrator.probe.card_checks import card_rows
from orchestrator.probe.inventory import PROC, Card, Fault, Inventory
from orchestrator.probe.rows import Row, Verdict, Wanted, equal

_MOST_SHOWN: Final = 3
_HARMLESS: Final = re.compile(r"jemalloc|tcmalloc|mimalloc|libgomp|libiomp|libstdc\+\+")
_SHIM: Final = re.compile(r"nv|cuda|gpu", re.IGNORECASE)


def checks(inventory: Inventory, wanted: Wanted) -> tuple[Row, ...]:
    """Judge the card that is wanted; with none that it could be, the rows of the machine and of the search.

    Args:
        inventory: of the machine.
        wanted: names it by UUID, by minor, or by both.
    """
    cards = _candidates(inventory, wanted)
    rows = (*_machine_rows(inventory), *_search_rows(inventory, wanted, cards))
    return (*rows, *card_rows(inventory, wanted, cards[0])) if len(cards) == 1 else rows


def _candidates(inventory: Inventory, wanted: Wanted) -> tuple[Card, ...]:
    if wanted.minor is not None:
        return tuple(card for card in inventory.cards if card.minor.known == wanted.minor)
    return tuple(card for card in inventory.cards if wanted.uuid and card.uuid.known == wanted.uuid)


def _machine_rows(inventory: Inventory) -> Iterator[Row]:
    inputs = tuple(reading.source for reading in inventory.readings)
    fault = inventory.faults[0] if inventory.faults else None
    may_pass = all(each.is_undecided for each in inventory.faults)
    yield Row(
        "inventory",
        "pass" if fault is None else "unknown" if may_pass else "fail",
        inputs,
        "a whole list of cards",
        "; ".join(each.message for each in inventory.faults[:_MOST_SHOWN]) or f"{len(inventory.cards)} cards",
        _worst_label(inventory.faults),
        hint=fault.hint if fault else "",
    )
    uuids = [card.uuid.known for card in inventory.cards if card.uuid.known]
    twice = sorted({uuid for uuid in uuids if uuids.count(uuid) > 1})
    untold = [str(card) for card in inventory.cards if card.uuid.known is None]
    yield Row(
        "uuids-differ",
        "fail" if twice else "unknown" if untold else "pass",
        inputs,
        "each card its own",
        ", ".join(twice) or (f"none of {', '.join(untold)}" if untold else f"{len(uuids)} that differ"),
        Label.DEVICE_UUID,
    )
    yield _preload_row(inventory)


def _worst_label(faults: tuple[Fault, ...]) -> Label:
    labels = [fault.label for fault in faults]
    return next((label for label in labels if label != Label.DEVICE_INVENTORY), Label.DEVICE_INVENTORY)


def _preload_row(inventory: Inventory) -> Row:
    """A library that is loaded before all others can put its own words into every tool's mouth."""
    names = inventory.preload
    verdict: Verdict = "pass"
    odd = [name for name in names or () if not _HARMLESS.search(name)]
    if any(_SHIM.search(name) for name in odd):
        verdict = "fail"
    elif names is None or odd:
        verdict = "unknown"
    got = "not looked at" if names is None else ", ".join(names) or "none"
    hint = "a shim can show cards that are not there: rent a machine without it"
    expected = "none that could speak for the driver"
    return Row("preloaded-libraries", verdict, (PROC,), expected, got, Label.DEVICE_FORGED, hint=hint)


def _search_rows(inventory: Inventory, wanted: Wanted, cards: tuple[Card, ...]) -> Iterator[Row]:
    inputs = tuple(dict.fromkeys(source for card in inventory.cards for source in card.sources))
    minors = ", ".join(str(card.minor) for card in inventory.cards) or "no card"
    if wanted.minor is not None:
        label = Label.DEVICE_MINOR_TWICE if len(cards) > 1 else Label.DEVICE_MINOR
        got = f"{len(cards)} among {minors}"
        expected = f"one card with minor {wanted.minor}"
        hint = "" if cards else "`orch inventory` shows the minors that are there"
        yield Row("minor", "pass" if len(cards) == 1 else "fail", inputs, expected, got, label, hint=hint)
    elif len(cards) != 1:
        got = f"{len(cards)} among {len(inventory.cards)} cards"
        hint = "" if cards else "`orch pods pin NAME` accepts the cards as they are now"
        yield Row("uuid", "fail", inputs, str(wanted.uuid), got, Label.DEVICE_UUID, hint=hint)
        return
    else:
        verdict: Verdict = "pass" if cards[0].minor.state == "known" else "fail"
        hint = "a guest of WSL or of a vGPU has no minor: take a machine that has"
        yield Row("minor", verdict, inputs, "a minor", str(cards[0].minor), Label.DEVICE_MINOR, hint=hint)
    if wanted.uuid is not None and len(cards) == 1:
        yield equal("uuid", cards[0], cards[0].uuid, wanted.uuid, Label.DEVICE_UUID)
