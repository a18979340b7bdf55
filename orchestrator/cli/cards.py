"""Cards as verbs look at them: of this machine, of a rental's nodes, or of texts that somebody kept.

Knows how to ask and how cards are shown; `orchestrator.probe` knows what the answers mean.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrator.cli.nodes import each_node, read_rental
from orchestrator.cli.output import plain, table
from orchestrator.errors import OrchError, RefusedError, UndecidedError, UsageError

if TYPE_CHECKING:
    from orchestrator.probe import Card, Inventory, Row

LOCAL: Final = "local"
_MOST_BYTES: Final = 16 << 20
_HEADERS: Final = ("node", "minor", "product", "cc", "memory", "in use", "UUID", "state")


def add_where(parser: argparse.ArgumentParser) -> None:
    """Declare where to look: at this machine if nothing is said."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--pods", type=Path, metavar="FILE", help="the nodes of this file; `local`: this machine"
    )
    where.add_argument(
        "--from",
        dest="texts",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="what nvidia-smi printed on one machine, and somebody kept: -q, -q -x, CSV, -L, /proc",
    )


def look_around(args: argparse.Namespace) -> Mapping[str, Inventory | OrchError]:
    """Give what each machine says of its cards, or why it says nothing.

    Raises:
        RefusedError: the pods file is wrong.
        UsageError: a text cannot be read, or is none of a tool's.
    """
    if args.texts:
        return {"kept": _of_texts(args.texts)}
    from orchestrator.qualify.looks import of_machine

    if args.pods == Path("simulated"):
        raise UsageError("--pods simulated: stand-ins belong to a run, whose bundle shows them")
    if args.pods not in (None, Path(LOCAL)):
        return each_node(read_rental(args.pods).nodes, lambda _, remote: of_machine(remote))
    from orchestrator.probe.nvml import read_nvml
    from orchestrator.remote.local import Local

    return {LOCAL: of_machine(Local(LOCAL), read_nvml())}


def _of_texts(paths: list[Path]) -> Inventory:
    from evidence.files import read_bounded
    from orchestrator.probe import read
    from orchestrator.probe.recognise import recognise
    from orchestrator.remote.base import Completed

    answers: dict[str, Completed] = {}
    for path in paths:
        try:
            data = read_bounded(path, _MOST_BYTES)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
        kind = recognise(data.decode("utf-8", "replace"))
        if kind is None:
            raise UsageError(f"{path} is nothing that nvidia-smi prints of cards: its options are in --help")
        if kind in answers:
            raise UsageError(f"{path} tells the same as another file: --from takes what one machine said")
        answers[kind] = Completed(0, data, b"")
    return read(answers)


def worst(seen: Mapping[str, Inventory | OrchError]) -> int:
    """Give the exit code of several looks: refused goes before undecided."""
    return min((code for each in seen.values() if (code := _exit(each))), default=0)


def _exit(answer: Inventory | OrchError) -> int:
    if isinstance(answer, OrchError):
        return answer.exit_code
    if not answer.faults:
        return 0
    undecided = all(fault.is_undecided for fault in answer.faults)
    return UndecidedError.exit_code if undecided else RefusedError.exit_code


def state_of(inventory: Inventory, card: Card) -> tuple[str, tuple[Row, ...]]:
    """Give one word for a card, and the rows that are not plain passes."""
    from orchestrator.probe import state_rows

    rows = tuple(state_rows(inventory, card))
    odd = tuple(row for row in rows if row.verdict in ("fail", "unknown") or row.warning)
    failing = next((str(row.label) for row in odd if row.verdict == "fail"), None)
    unknown = next((f"unknown: {row.name}" for row in odd if row.verdict == "unknown"), None)
    return failing or unknown or "idle", odd


def cards_table(seen: Mapping[str, Inventory | OrchError]) -> str:
    """Lay out the cards of all machines that told of any."""
    rows = [
        _row(name, inventory, card)
        for name, inventory in seen.items()
        if not isinstance(inventory, OrchError)
        for card in inventory.cards
    ]
    return table(_HEADERS, rows)


def _row(name: str, inventory: Inventory, card: Card) -> tuple[str, ...]:
    told = (card.minor, card.product, card.capability)
    memory = tuple(
        f"{value} MiB" if value.known is not None else str(value) for value in (card.total_mib, card.used_mib)
    )
    state, _ = state_of(inventory, card)
    return (name, *map(str, told), *memory, str(card.uuid), state)


def inventory_json(answer: Inventory | OrchError) -> dict[str, Any]:
    """Give a look as the object that `--json` prints."""
    if isinstance(answer, OrchError):
        return {"error": str(answer)}
    said = answer.as_json()
    said["cards"] = [{**card.as_json(), "state": _state_json(answer, card)} for card in answer.cards]
    return said


def _state_json(inventory: Inventory, card: Card) -> dict[str, Any]:
    state, odd = state_of(inventory, card)
    rows = [
        {
            "name": row.name,
            "verdict": row.verdict,
            "label": str(row.label),
            "got": row.got,
            "warning": row.warning,
        }
        for row in odd
    ]
    return {"is": state, "rows": rows}


def remarks(inventory: Inventory) -> tuple[str, ...]:
    """Give what is said below the table: of cards that are not idle, and facts of the machine."""
    found = []
    for card in inventory.cards:
        for row in state_of(inventory, card)[1]:
            said = row.warning or f"{row.label}: {row.name} (got {row.got}, expected {row.expected})"
            found.append(plain(f"minor {card.minor}: {said}"))
    return (*found, *map(plain, inventory.notes))
