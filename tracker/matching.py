"""Attaching runs as evidence to the items that they prove, in one statement over indexes.

What counts is said once, in the schema: the trigger on evidence asks the same.
"""

from __future__ import annotations

import sqlalchemy as sa

from tracker import schema
from tracker.clock import now

_MATCH = sa.text(
    "INSERT INTO evidence (item_id, run_id, proof, recorded) "  # noqa: S608  (constants; values are bound)
    "SELECT i.item_id, r.run_id, json_object('grade', i.proof_grade, 'lane', i.proof_lane, "
    "'plan', i.proof_plan, 'products', (SELECT json_group_object(p.product, p.cards) "
    "FROM item_products AS p WHERE p.item_id = i.item_id), 'system', i.proof_system), "
    ":now "
    "FROM items AS i JOIN runs AS r ON r.lane = i.proof_lane AND r.grade = i.proof_grade "
    f"WHERE i.listed = 1 AND (:run_id IS NULL OR r.run_id = :run_id) AND {schema.COUNTS} AND NOT EXISTS "
    "(SELECT 1 FROM evidence AS e WHERE e.item_id = i.item_id AND e.run_id = r.run_id) "
    "RETURNING item_id"
)


def match(connection: sa.Connection, run_id: str | None = None) -> tuple[str, ...]:
    """Attach runs, one or all, as evidence to every listed item for which they count.

    Returns:
        The items that gained evidence, sorted, each once.
    """
    gained = connection.execute(_MATCH, {"run_id": run_id, "now": now()}).scalars().all()
    return tuple(sorted(set(gained)))
