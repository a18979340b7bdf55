"""Loading a programme: what is planned is replaced, what is proven stays.

Knows the tables of the programme. Never touches runs, and only adds evidence.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import sqlalchemy as sa

from tracker import schema
from tracker.errors import ProgrammeError
from tracker.matching import match
from tracker.programme import Item, Programme, problems
from tracker.store import Store


@dataclass(frozen=True)
class Loaded:
    """What a load did.

    Attributes:
        milestones, items: how many the programme has.
        unlisted: items known from before that the programme has no more; they and their evidence are kept.
        verified: items that recorded runs prove and that were not verified before.
        reopened: items that were verified and whose new proof their evidence does not meet.
    """

    milestones: int
    items: int
    unlisted: tuple[str, ...]
    verified: tuple[str, ...]
    reopened: tuple[str, ...]


def load(store: Store, programme: Programme) -> Loaded:
    """Make a programme the one that the database keeps, in one transaction, and match recorded runs with it.

    Raises:
        ProgrammeError: the programme contradicts itself; nothing is changed.
    """
    found = problems(programme)
    if found:
        raise ProgrammeError(found)
    with store.write() as connection:
        before = _verified(connection)
        for table in (schema.milestones, schema.items):
            connection.execute(table.update().values(listed=0))
        connection.execute(schema.dependencies.delete())
        for position, (name, title) in enumerate(programme.milestones.items()):
            values: dict[str, object] = {"title": title, "position": position, "listed": 1}
            _put(connection, schema.milestones, {"milestone": name}, values)
        for position, item in enumerate(programme.items):
            _put_item(connection, position, item)
        edges = [
            {"item_id": item.id, "need": need}
            for item in programme.items
            for need in dict.fromkeys(item.needs)
        ]
        if edges:
            connection.execute(schema.dependencies.insert(), edges)
        match(connection)
        after = _verified(connection)
        items = schema.items.c
        unlisted = connection.execute(
            sa.select(items.item_id).where(items.listed == 0).order_by(items.item_id)
        )
        return Loaded(
            milestones=len(programme.milestones),
            items=len(programme.items),
            unlisted=tuple(unlisted.scalars()),
            verified=tuple(sorted(after - before)),
            reopened=tuple(sorted(before - after)),
        )


def _put_item(connection: sa.Connection, position: int, item: Item) -> None:
    values: dict[str, object] = {
        "title": item.title,
        "milestone": item.milestone,
        "declared": item.status,
        "proof_lane": item.proof.lane if item.proof else None,
        "proof_grade": item.proof.grade if item.proof else None,
        "proof_system": item.proof.system if item.proof else None,
        "proof_plan": item.proof.plan if item.proof else None,
        "position": position,
        "listed": 1,
    }
    _put(connection, schema.items, {"item_id": item.id}, values)
    products = schema.item_products
    connection.execute(products.delete().where(products.c.item_id == item.id))
    counted = Counter(item.proof.products if item.proof else ())
    if counted:
        rows = [{"item_id": item.id, "product": name, "cards": cards} for name, cards in counted.items()]
        connection.execute(products.insert(), rows)


def _put(connection: sa.Connection, table: sa.Table, key: dict[str, str], values: dict[str, object]) -> None:
    same = (table.c[name] == value for name, value in key.items())
    if connection.execute(table.update().where(*same).values(**values)).rowcount == 0:
        connection.execute(table.insert().values(**key, **values))


def _verified(connection: sa.Connection) -> set[str]:
    view = schema.item_status
    return set(connection.execute(sa.select(view.c.item_id).where(view.c.status == "verified")).scalars())
