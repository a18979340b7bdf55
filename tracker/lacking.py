"""What to do next: the open items whose needs are met, what each lacks, and how it would be had.

Reads only. Knows how `orch run` is called, and nothing of machines; where lanes lie, it is told.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tracker import query, schema
from tracker.programme import Proof
from tracker.store import Store
from tracker.text import short
from tracker.values import ItemLine

_MORE = {"physical": " --pods pods.yaml --require physical", "simulated": " --pods simulated"}
_PODS = "it needs pods: machines with these cards, named by a pods file (`orch: pods/v1`)"


@dataclass(frozen=True)
class Near:
    """The run that came nearest to being the evidence, and every reason why it is not."""

    run_id: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Open:
    """An item to work on now.

    Attributes:
        lacks: what is missing, in words.
        near: the nearest run of the lane, None where there is none or no proof is asked for.
        first: what must be there, or be done, before the command can give the evidence.
        command: what would produce the evidence; empty where nothing can yet, or no proof is asked for.
    """

    item: ItemLine
    lacks: str
    near: Near | None
    first: tuple[str, ...]
    command: str


def next_items(store: Store, lane_file: Callable[[str], Path | None]) -> tuple[Open, ...]:
    """Give the listed items that are not done while everything they need is, in the programme's order.

    Done is `verified`; for an item that asks for no proof, `implemented`.

    Args:
        store: the database.
        lane_file: gives the file of a lane by the lane's name, None where none is known.
    """
    found = query.items(store)
    done = {item.id for item in found if _is_done(item)}
    ready = (item for item in found if item.listed and item.id not in done and done.issuperset(item.needs))
    with store.read() as connection:
        return tuple(_open(connection, item, lane_file) for item in ready)


def _is_done(item: ItemLine) -> bool:
    return item.status == "verified" or (item.proof is None and item.status == "implemented")


def _open(connection: sa.Connection, item: ItemLine, lane_file: Callable[[str], Path | None]) -> Open:
    if item.proof is None:
        way = "set `status: implemented` for it in the programme's file, and `tracker load` that again"
        return Open(item, "its implementation; it asks for no proof", None, (f"when it is there, {way}",), "")
    proof = item.proof
    products = f" on {', '.join(proof.products)}" if proof.products else ""
    lacks = f"a pass of lane {proof.lane}, grade {proof.grade}{products}"
    file = lane_file(proof.lane)
    first = (_PODS,) if proof.grade == "physical" else ()
    if file is None:
        first = (f"there is no file of lane {proof.lane}: lanes/{proof.lane}.yaml is to be written", *first)
    command = f"orch run {shlex.quote(str(file))}{_MORE.get(proof.grade, '')}" if file is not None else ""
    return Open(item, lacks, _nearest(connection, proof), first, command)


def _nearest(connection: sa.Connection, proof: Proof) -> Near | None:
    table = schema.runs.c
    nearness = (
        table.state == "completed",
        table.omitted == "{}",
        table.grade == proof.grade,
        *(table[name] == pin for name, pin in (("system", proof.system), ("plan", proof.plan)) if pin),
    )
    row = connection.execute(
        sa.select(schema.runs)
        .where(table.lane == proof.lane)
        .order_by(*(sa.func.ifnull(each, 0).desc() for each in nearness), table.started.desc())
        .limit(1)
    ).first()
    return Near(row.run_id, _reasons(connection, row, proof)) if row is not None else None


def _reasons(connection: sa.Connection, row: sa.Row[Any], proof: Proof) -> tuple[str, ...]:
    found: list[str] = []
    if row.state == "running":
        found.append("still running")
    elif row.verdict != "pass":
        found.append(f"verdict {row.verdict}, needs pass")
    omitted: Mapping[str, str] = json.loads(row.omitted or "{}")
    if omitted:
        found.append(f"left out {', '.join(sorted(omitted))}, needs every step")
    if row.grade is not None and row.grade != proof.grade:
        found.append(f"grade {row.grade}, needs {proof.grade}")
    found.extend(
        f"{name} {short(has)}, needs {short(wanted)}"
        for name, has, wanted in (("system", row.system, proof.system), ("plan", row.plan, proof.plan))
        if wanted not in (None, has)
    )
    bound = Counter(
        product for product, _ in {(card.product, card.uuid) for card in query.cards(connection, row.run_id)}
    )
    missing = Counter(proof.products) - bound
    if missing:
        has = ", ".join(sorted(bound.elements())) or "no card"
        found.append(f"bound {has}, needs also {', '.join(sorted(missing.elements()))}")
    withdrawn = query.withdrawal(connection, row.run_id)
    if withdrawn is not None:
        found.append(f"withdrawn: {withdrawn}")
    return tuple(found)
