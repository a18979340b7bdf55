"""The cards that a run's device roles are bound to: pinned when the run begins, and the same to its end.

Knows minors and UUIDs by role, and how cards are chosen for roles; must not know how a card is asked for what
it is. `cards.json` has them where no pods file does: of stand-ins, and of this machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

FILE = "cards.json"
SCHEMA = "orch-cards/v1"


@dataclass(frozen=True)
class BoundCard:
    """One card as a role is bound to it.

    Attributes:
        node: where it is.
        minor: its Linux minor number.
        uuid: `GPU-...`; None where a pods file binds by the minor alone.
    """

    node: str
    minor: int
    uuid: str | None


@dataclass(frozen=True)
class Wish:
    """What a device role needs: a card of this product, on this node."""

    node: str
    product: str


def choose(
    wishes: Mapping[str, Wish],
    pool: Iterable[tuple[BoundCard, str]],
    before: Mapping[str, BoundCard] | None = None,
) -> dict[str, BoundCard]:
    """Role -> a card of its own; roles for which none is left are not among them.

    Args:
        wishes: role -> what it needs, in the roles' order.
        pool: cards, each with its product.
        before: cards that roles keep where they suffice: those of the same roles' programs for other
            profiles.
    """
    products = dict(pool)
    kept = {
        role: card
        for role, card in (before or {}).items()
        if role in wishes and Wish(card.node, products.get(card, "")) == wishes[role]
    }
    free = [card for card in products if card not in kept.values()]
    found: dict[str, BoundCard] = {}
    for role, wish in wishes.items():
        fitting = (card for card in free if Wish(card.node, products[card]) == wish)
        card = kept.get(role) or next(fitting, None)
        if card is not None:
            found[role] = card
            free = [each for each in free if each != card]
    return found


@dataclass(frozen=True)
class PinnedCards:
    """`cards.json`.

    Attributes:
        is_simulated: whether they are stand-ins.
        own: role -> the card of its own program.
        swapped: role -> that of its program for another profile, where the lane swaps profiles.
        files: of stand-ins, what the bundle holds of them: name -> SHA-256.
    """

    is_simulated: bool
    own: Mapping[str, BoundCard]
    swapped: Mapping[str, BoundCard]
    files: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As in the bundle."""
        return {
            "schema": SCHEMA,
            "simulated": self.is_simulated,
            "own": {role: asdict(card) for role, card in self.own.items()},
            "swapped": {role: asdict(card) for role, card in self.swapped.items()},
            "files": dict(self.files),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PinnedCards:
        """The inverse of `as_json`.

        Raises:
            ValueError, LookupError, TypeError: it is not of that form.
        """
        if value["schema"] != SCHEMA or type(value["simulated"]) is not bool:
            raise ValueError(f"no cards of a bundle (got {value['schema']!r}, expected {SCHEMA!r})")
        own, swapped = (
            {role: BoundCard(**card) for role, card in value[key].items()} for key in ("own", "swapped")
        )
        return cls(value["simulated"], own, swapped, value["files"])
