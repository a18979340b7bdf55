"""`orch profile`: write down what a card is known to hold, as it was seen."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.arguments import add_json
from orchestrator.cli.cards import add_where, look_around
from orchestrator.cli.output import print_json, say
from orchestrator.errors import OrchError, Refusal, RefusedError, UndecidedError, UsageError, Where

if TYPE_CHECKING:
    from orchestrator.probe import Card, Inventory


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `capture`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="capture")
    capture = actions.add_parser("capture", help="write the profile of a card as it is seen now")
    add_where(capture)
    capture.add_argument("--node", metavar="NAME", help="the node, where the pods file has several")
    capture.add_argument(
        "--card",
        metavar="UUID|MINOR",
        help="the card, where there are several products: GPU-..., or its minor",
    )
    capture.add_argument("--output", type=Path, metavar="FILE", help="a new file, instead of standard output")
    add_json(capture)


def run(args: argparse.Namespace) -> int:
    """Write the profile."""
    from orchestrator.probe.profile import cannot_tell, profile_name, profile_text

    name, inventory = _one(look_around(args), args.node)
    if not inventory.cards:
        raise _refused(name, inventory, None)
    card = _chosen(inventory, args.card)
    if cannot_tell(inventory, card):
        raise _refused(name, inventory, card)
    text = profile_text(inventory, card, datetime.now(UTC).date().isoformat())
    if args.output is not None:
        _write(args.output, text)
    if args.json:
        said = {"name": profile_name(card.product.known or ""), "product": card.product.known, "text": text}
        print_json({**said, "path": str(args.output) if args.output else None})
    elif args.output is None:
        say(text.removesuffix("\n"))
    else:
        say(f"{args.output}: {card.product}, driver {inventory.driver}")
    return 0


def _one(seen: Mapping[str, Inventory | OrchError], name: str | None) -> tuple[str, Inventory]:
    if name is not None and name not in seen:
        raise UsageError(f"--node: there is no `{name}`, but {', '.join(seen)}")
    if name is None and len(seen) > 1:
        raise UsageError(f"--node NAME is needed: one of {', '.join(seen)}")
    name = name or next(iter(seen))
    answer = seen[name]
    if isinstance(answer, OrchError):
        raise answer
    return name, answer


def _chosen(inventory: Inventory, which: str | None) -> Card:
    """Give the card that is named; any one, where all are of one product."""
    cards = inventory.cards
    if which is None:
        products = sorted({str(card.product) for card in cards})
        if len(products) > 1:
            raise UsageError(f"--card is needed: there are {', '.join(products)}")
        return cards[0]
    found = [card for card in cards if which in (card.uuid.known, str(card.minor.known))]
    if len(found) != 1:
        there = ", ".join(f"{card.uuid} (minor {card.minor})" for card in cards)
        raise UsageError(f"--card: {len(found)} cards are `{which}`; there are {there}")
    return found[0]


def _refused(name: str, inventory: Inventory, card: Card | None) -> OrchError:
    from orchestrator.probe.profile import cannot_tell

    faults = inventory.faults if card is None else cannot_tell(inventory, card)
    if all(fault.is_undecided for fault in faults):
        return UndecidedError("; ".join(str(fault) for fault in faults))
    return RefusedError(Refusal(each.label, each.message, Where(name), hint=each.hint) for each in faults)


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} is there already: name a new file, or remove it") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
