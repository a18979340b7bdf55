"""`orch inventory`: the cards of this machine, of a rental's nodes, or of kept texts, and who uses them."""

from __future__ import annotations

import argparse

from orchestrator.cli.arguments import add_json
from orchestrator.cli.cards import add_where, cards_table, inventory_json, look_around, remarks, worst
from orchestrator.cli.nodes import said_of
from orchestrator.cli.output import complain, plain, print_json, say
from orchestrator.errors import OrchError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where to look."""
    add_where(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show all cards; 1 if a list is refused, 4 if one cannot be had now."""
    seen = look_around(args)
    if args.json:
        print_json({"nodes": {name: inventory_json(answer) for name, answer in seen.items()}})
        return worst(seen)
    if any(not isinstance(answer, OrchError) and answer.cards for answer in seen.values()):
        say(cards_table(seen))
    for name, answer in seen.items():
        if isinstance(answer, OrchError):
            complain(said_of(name, answer))
            continue
        if answer.driver.known is not None:
            simulated = ", simulated" if answer.is_simulated else ""
            say(f"{name}: driver {answer.driver}, cards by the word of {answer.assurance}{simulated}")
        for remark in remarks(answer):
            say(f"{name}: {remark}")
        for fault in answer.faults:
            source = f"{fault.source}: " if fault.source else ""
            complain(plain(f"{name}: {source}{fault}"))
    return worst(seen)
