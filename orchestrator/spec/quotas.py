"""What roles ask to use at most: `memory` of their node, `video_memory` of their card.

Knows which roles may ask for what; must not know what anything takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestrator.errors import Label, Refusal
from orchestrator.spec.document import Document
from orchestrator.spec.names import Names
from orchestrator.spec.roles import missing, role_sets

QUOTAS = ("memory", "video_memory")
"""Sections of a run file that need not name every role."""


def without_cards(
    document: Document, sets: Mapping[str, tuple[range, ...]], names: Names
) -> Iterator[Refusal]:
    """Refuses video memory for roles that have no card."""
    paired, _ = role_sets(document, ("pairings",), names)
    cards = {key: some for key, some in paired.items() if document.get("pairings", key, "device")}
    gaps = tuple(missing(cards, len(names)))
    for key, ranges in sets.items():
        found = (range(max(a.start, b.start), min(a.stop, b.stop)) for a in ranges for b in gaps)
        without = next((each for each in found if each), None)
        if without:
            message = (
                f"{names.text(without.start, without.stop)} has no card"
                " (got video memory, expected a `device` in the pairing)"
            )
            yield document.at(Label.VALUE_CHOICE, message, ("video_memory", key), on_key=True)
