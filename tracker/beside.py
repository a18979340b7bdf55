"""What stands beside a run and may grow after its end: measurements, notes, places of its bundle.

Each is only added to, revision after revision; the last revision holds and the earlier ones stay. Knows these
three tables, and never writes to runs.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path

import sqlalchemy as sa

from tracker import schema
from tracker.clock import now
from tracker.errors import RecordError
from tracker.matching import match
from tracker.store import Store


@dataclass(frozen=True)
class Measured:
    """A value about a run; `source` is `bundle` or `person`."""

    name: str
    value: float
    unit: str
    source: str


def measure(store: Store, run_id: str, name: str, value: float, unit: str = "") -> int:
    """Add a measurement about a run, running or terminal: it stands beside the run and changes nothing of it.

    A second value under the same name supersedes the first, which is kept; the same value again adds nothing.

    Returns:
        The revision under which the value stands, from 1.

    Raises:
        RecordError: no such run, or the value is not finite.
    """
    if not math.isfinite(value):
        raise RecordError(f"measurement {name}: got {value}, expected a finite number")
    with store.write() as connection:
        _known(connection, run_id)
        return add_measurement(connection, run_id, Measured(name, value, unit, "person"))


def note(store: Store, run_id: str, text: str, effect: str = "note") -> None:
    """Add a note to a run: the way to correct what cannot be changed.

    The effect `withdraw` lets the run's evidence count no more, `reinstate` lets it count again; the last of
    the two rules.

    Raises:
        RecordError: no such run.
    """
    with store.write() as connection:
        _known(connection, run_id)
        add_note(connection, run_id, effect, text)
        match(connection, run_id)


def add_measurement(connection: sa.Connection, run_id: str, told: Measured) -> int:
    """Add a measurement inside a transaction; give its revision. The value that holds is not added again."""
    table = schema.measurements
    last = connection.execute(
        sa.select(table.c.revision, table.c.value, table.c.unit)
        .where(table.c.run_id == run_id, table.c.name == told.name)
        .order_by(table.c.revision.desc())
        .limit(1)
    ).first()
    if last is not None and (last.value, last.unit) == (told.value, told.unit):
        return int(last.revision)
    revision = int(last.revision) + 1 if last else 1
    connection.execute(
        table.insert().values(run_id=run_id, revision=revision, recorded=now(), **asdict(told))
    )
    return revision


def add_location(connection: sa.Connection, run_id: str, bundle: Path) -> None:
    """Add the place of a run's bundle inside a transaction, unless it is the last one known."""
    table = schema.locations
    last = connection.execute(
        sa.select(table.c.revision, table.c.path)
        .where(table.c.run_id == run_id)
        .order_by(table.c.revision.desc())
        .limit(1)
    ).first()
    if last is None or last.path != str(bundle):
        revision = last.revision + 1 if last else 1
        connection.execute(
            table.insert().values(run_id=run_id, revision=revision, path=str(bundle), recorded=now())
        )


def add_note(connection: sa.Connection, run_id: str, effect: str, text: str) -> None:
    """Add a note inside a transaction."""
    table = schema.run_notes
    last = connection.execute(
        sa.select(sa.func.max(table.c.revision)).where(table.c.run_id == run_id)
    ).scalar()
    values = {"revision": (last or 0) + 1, "effect": effect, "text": text, "recorded": now()}
    connection.execute(table.insert().values(run_id=run_id, **values))


def _known(connection: sa.Connection, run_id: str) -> None:
    if (
        connection.execute(sa.select(schema.runs.c.run_id).where(schema.runs.c.run_id == run_id)).first()
        is None
    ):
        raise RecordError(f"run {run_id}: got no such run, expected a recorded one")
