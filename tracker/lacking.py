"""What to do next: the open items whose needs are met, what each lacks, and the command that would give it.

Reads only. Knows how `orch run` is called, and nothing of machines.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from tracker import query, schema
from tracker.programme import Proof
from tracker.store import Store
from tracker.values import ItemLine

_MORE = {"physical": " --pods pods.yaml --require physical", "simulated": " --pods simulated"}


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
        command: what would produce the evidence, empty where no proof is asked for.
    """

    item: ItemLine
    lacks: str
    near: Near | None
    command: str


def next_items(store: Store) -> tuple[Open, ...]:
    """Give the listed items that are not done while everything they need is, in the programme's order.

    Done is `verified`; for an item that asks for no proof, `implemented`.
    """
    found = query.items(store)
    done = {item.id for item in found if _is_done(item)}
    ready = (item for item in found if item.listed and item.id not in done and done.issuperset(item.needs))
    with store.read() as connection:
        return tuple(_open(connection, item) for item in ready)


def _is_done(item: ItemLine) -> bool:
    return item.status == "verified" or (item.proof is None and item.status == "implemented")


def _open(connection: sa.Connection, item: ItemLine) -> Open:
    if item.proof is None:
        return Open(item, "its implementation; it asks for no proof", None, "")
    proof = item.proof
    products = f" on {', '.join(proof.products)}" if proof.products else ""
    lacks = f"a pass of lane {proof.lane}, grade {proof.grade}{products}"
    command = f"orch run {shlex.quote(f'lanes/{proof.lane}.yaml')}{_MORE.get(proof.grade, '')}"
    return Open(item, lacks, _nearest(connection, proof), command)


def _nearest(connection: sa.Connection, proof: Proof) -> Near | None:
    table = schema.runs.c
    nearness = (table.state == "completed", table.omitted == "{}", table.grade == proof.grade)
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
