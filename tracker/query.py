"""What the database says: status, what to do next, items, runs, evidence. Reads only, as frozen values.

Every list is one or few statements over indexes, never an object for each row of the database.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import sqlalchemy as sa

from tracker import schema
from tracker.names import run_id
from tracker.programme import Proof
from tracker.store import Store
from tracker.values import (
    Card,
    EvidenceLine,
    ItemLine,
    Measurement,
    Milestone,
    Note,
    RunCount,
    RunDetail,
    RunLine,
    SeveralPlans,
    Status,
)

_RUN_COLUMNS = ("run_id", "lane", "state", "verdict", "grade", "started", "ended", "omitted", "seal")


def status(store: Store, last: int = 10) -> Status:
    """Count items per milestone and runs per state, and give the last runs."""
    with store.read() as connection:
        counts: dict[str, Counter[str]] = {}
        items, view = schema.items, schema.item_status
        rows = connection.execute(
            sa.select(items.c.milestone, view.c.status, sa.func.count())
            .join(view, view.c.item_id == items.c.item_id)
            .where(items.c.listed == 1)
            .group_by(items.c.milestone, view.c.status)
        )
        for milestone, name, number in rows:
            counts.setdefault(milestone, Counter())[name] = number
        table = schema.milestones
        named = connection.execute(
            sa.select(table).where(table.c.listed == 1).order_by(table.c.position)
        ).all()
        runs = schema.runs.c
        summary = connection.execute(
            sa.select(runs.state, runs.grade, sa.func.count())
            .group_by(runs.state, runs.grade)
            .order_by(runs.state)
        ).all()
        return Status(
            tuple(_milestone(row, counts.get(row.milestone, Counter())) for row in named),
            tuple(RunCount(*row) for row in summary),
            _runs(connection, last),
            _several_plans(connection),
        )


def runs(
    store: Store, *, lane: str = "", verdict: str = "", grade: str = "", limit: int = 20
) -> tuple[RunLine, ...]:
    """List runs, newest first; an empty filter takes all."""
    wanted = {"lane": lane, "verdict": verdict, "grade": grade}
    with store.read() as connection:
        return _runs(
            connection, limit, *(schema.runs.c[name] == value for name, value in wanted.items() if value)
        )


def run(store: Store, said: str) -> RunDetail:
    """Give everything known of one run, by whatever `tracker.names` knows it by.

    Raises:
        RecordError: no such run, or several.
    """
    name = run_id(store, said)
    with store.read() as connection:
        row = connection.execute(sa.select(schema.runs).where(schema.runs.c.run_id == name)).one()
        return RunDetail(
            run=_line(row),
            plan=row.plan,
            system=row.system,
            head=row.head,
            records=row.records,
            judged=row.judged,
            bundle=_bundle(connection, name),
            devices=cards(connection, name),
            evidence=_evidence(connection, run_id=name),
            measurements=tuple(
                Measurement(*each) for each in _about(connection, schema.measurements, name, 1, 6)
            ),
            notes=tuple(Note(*each) for each in _about(connection, schema.run_notes, name, 1, 5)),
        )


def has_programme(store: Store) -> bool:
    """Tell whether a programme is loaded."""
    table = schema.milestones.c
    with store.read() as connection:
        return connection.execute(sa.select(table.milestone).where(table.listed == 1)).first() is not None


def items(store: Store) -> tuple[ItemLine, ...]:
    """Give every item in the programme's order; those left out of it come last."""
    with store.read() as connection:
        return _items(connection)


def item(store: Store, name: str) -> tuple[ItemLine, tuple[EvidenceLine, ...]] | None:
    """Give an item with its evidence; None if there is no such item."""
    with store.read() as connection:
        found = _items(connection, name)
        return (found[0], _evidence(connection, item_id=name)) if found else None


def evidence(store: Store) -> tuple[EvidenceLine, ...]:
    """List all evidence, by item, the oldest first."""
    with store.read() as connection:
        return _evidence(connection)


def cards(connection: sa.Connection, name: str) -> tuple[Card, ...]:
    """Give the cards bound to the roles of a run."""
    table = schema.devices.c
    columns = (table.role, table.node, table.product, table.uuid)
    return tuple(Card(*row) for row in connection.execute(sa.select(*columns).where(table.run_id == name)))


def withdrawal(connection: sa.Connection, name: str) -> str | None:
    """Give the reason for which a run's evidence is withdrawn, None if it is not."""
    table = schema.run_notes.c
    last = connection.execute(
        sa.select(table.effect, table.text)
        .where(table.run_id == name, table.effect != "note")
        .order_by(table.revision.desc())
        .limit(1)
    ).first()
    return str(last.text) if last is not None and last.effect == "withdraw" else None


def _milestone(row: sa.Row[Any], counts: Counter[str]) -> Milestone:
    numbers = (counts[name] for name in ("planned", "in-progress", "implemented", "verified"))
    return Milestone(row.milestone, row.title, *numbers)


def _line(row: sa.Row[Any]) -> RunLine:
    values = {name: getattr(row, name) for name in _RUN_COLUMNS}
    return RunLine(**{**values, "omitted": None if row.omitted is None else json.loads(row.omitted)})


def _runs(connection: sa.Connection, limit: int, *wanted: sa.ColumnElement[bool]) -> tuple[RunLine, ...]:
    table = schema.runs.c
    statement = sa.select(*(table[name] for name in _RUN_COLUMNS)).where(*wanted)
    newest = statement.order_by(table.started.desc(), table.run_id.desc()).limit(limit)
    return tuple(_line(row) for row in connection.execute(newest))


def _about(connection: sa.Connection, table: sa.Table, name: str, start: int, stop: int) -> list[sa.Row[Any]]:
    columns = list(table.c)[start:stop]
    ordered = sa.select(*columns).where(table.c.run_id == name).order_by(*table.primary_key.columns)
    return list(connection.execute(ordered))


def _bundle(connection: sa.Connection, name: str) -> str | None:
    table = schema.locations.c
    last = sa.select(table.path).where(table.run_id == name).order_by(table.revision.desc()).limit(1)
    return connection.execute(last).scalar()


def _items(connection: sa.Connection, only: str | None = None) -> tuple[ItemLine, ...]:
    table, view = schema.items, schema.item_status
    statement = sa.select(table, view.c.status).join(view, view.c.item_id == table.c.item_id)
    if only is not None:
        statement = statement.where(table.c.item_id == only)
    needs: dict[str, list[str]] = {}
    for name, need in connection.execute(sa.select(schema.dependencies)):
        needs.setdefault(name, []).append(need)
    products: dict[str, list[str]] = {}
    for name, product, count in connection.execute(sa.select(schema.item_products)):
        products.setdefault(name, []).extend([product] * count)
    return tuple(
        ItemLine(
            row.item_id,
            row.title,
            row.milestone,
            row.status,
            bool(row.listed),
            tuple(needs.get(row.item_id, ())),
            _proof(row, tuple(products.get(row.item_id, ()))),
        )
        for row in connection.execute(statement.order_by(table.c.listed.desc(), table.c.position))
    )


def _evidence(connection: sa.Connection, **wanted: str) -> tuple[EvidenceLine, ...]:
    e, r, i = schema.evidence.alias("e"), schema.runs.alias("r"), schema.items.alias("i")
    counts = sa.literal_column(f"({schema.COUNTS})", sa.Integer)
    facts = (
        e.c.item_id.label("item"),
        e.c.run_id,
        r.c.lane,
        r.c.grade,
        r.c.plan,
        r.c.system,
        r.c.seal,
        e.c.recorded,
    )
    joined = e.join(r, r.c.run_id == e.c.run_id).join(i, i.c.item_id == e.c.item_id)
    chosen = (e.c[name] == value for name, value in wanted.items())
    statement = sa.select(*facts, counts.label("counts")).select_from(joined).where(*chosen)
    ordered = statement.order_by(e.c.item_id, e.c.recorded, e.c.run_id)
    found: list[sa.Row[Any]] = list(connection.execute(ordered))
    return tuple(EvidenceLine(**{**row._asdict(), "counts": bool(row.counts)}) for row in found)


def _several_plans(connection: sa.Connection) -> tuple[SeveralPlans, ...]:
    """Find listed items whose evidence that counts is of more than one plan."""
    e, r, i = schema.evidence.alias("e"), schema.runs.alias("r"), schema.items.alias("i")
    plans = sa.func.count(r.c.plan.distinct())
    joined = e.join(r, r.c.run_id == e.c.run_id).join(i, i.c.item_id == e.c.item_id)
    statement = (
        sa.select(e.c.item_id, plans)
        .select_from(joined)
        .where(i.c.listed == 1, sa.text(schema.COUNTS))
        .group_by(e.c.item_id)
        .having(plans > 1)
    )
    return tuple(SeveralPlans(*row) for row in connection.execute(statement.order_by(e.c.item_id)))


def _proof(row: sa.Row[Any], products: tuple[str, ...]) -> Proof | None:
    if not row.proof_lane:
        return None
    return Proof(row.proof_lane, row.proof_grade, products, row.proof_system, row.proof_plan)
