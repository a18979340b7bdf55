"""Looking for what is wrong: the file, the rules in it, runs left behind, bundles that no longer verify.

Reads only; repairs nothing. A trigger that was dropped and put back leaves no trace in the file, so the rows
are also held against the bundles that they came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from evidence import digest
from evidence.bundle import is_sealed
from evidence.listing import QUALIFICATION
from tracker import process, schema, sealed
from tracker.engine import Judge
from tracker.errors import BundleError
from tracker.record import holder_of
from tracker.store import Store

_COMPARED = (
    "run_id",
    "lane",
    "plan",
    "system",
    "verdict",
    "grade",
    "started",
    "ended",
    "omitted",
    "head",
    "records",
)


@dataclass(frozen=True)
class Finding:
    """One thing wrong: what it is about, and what was got and expected."""

    subject: str
    message: str


def examine(store: Store, *, bundles: bool = True, judge: Judge | None = None) -> tuple[Finding, ...]:
    """Look at everything; empty means healthy.

    Args:
        store: the database, opened (which has checked its application and version).
        bundles: also verify every recorded bundle, which reads all their files.
        judge: also judges every bundle that verifies, which recomputes what its files show.
    """
    with store.read() as connection:
        found = [*_file(connection), *_objects(connection)]
        if any(finding.subject.startswith("table ") for finding in found):
            return tuple(found)  # rows cannot be read by columns that may not be there
        found.extend((*_left_running(connection), *_without_bundle(connection), *_baseless(connection)))
        recorded = _sealed_runs(connection) if bundles else ()
    return (*found, *(finding for row in recorded for finding in _bundle(store, row, judge)))


def unrecorded(store: Store, bundles: Iterable[Path]) -> tuple[Path, ...]:
    """Give the sealed ones of these bundles that no run of the database came from.

    They are nothing wrong: a bundle may be meant for another database. But a run that somebody took out of
    this one, traces and all, is still known by its bundle.
    """
    with store.read() as connection:
        seals = set(connection.execute(sa.select(schema.runs.c.seal)).scalars())
    return tuple(bundle for bundle in bundles if is_sealed(bundle) and _seal(bundle) not in seals)


def _seal(bundle: Path) -> str | None:
    try:
        return digest.sha256_file(bundle / QUALIFICATION)
    except OSError:
        return None


def _file(connection: sa.Connection) -> Iterator[Finding]:
    for (said,) in connection.exec_driver_sql("PRAGMA integrity_check"):
        if said != "ok":
            yield Finding("file", f"integrity check (got {said}, expected ok)")
    for table, _, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield Finding(f"rows of {table}", f"refer to a row that is absent from {parent}")
    mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
    if mode != "wal":
        yield Finding("file", f"journal mode (got {mode}, expected wal)")


def _objects(connection: sa.Connection) -> Iterator[Finding]:
    rows = connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    present = {(kind, name): _plain(sql) for kind, name, sql in rows if not name.startswith("sqlite_")}
    expected = {key: _plain(sql) for key, sql in schema.statements().items()}
    for key in sorted(expected.keys() | present.keys()):
        subject = " ".join(key)
        if key not in present:
            yield Finding(subject, "missing (got none, expected the one of this version)")
        elif key not in expected:
            yield Finding(subject, "not of this application (got one, expected none)")
        elif present[key] != expected[key]:
            yield Finding(subject, f"changed (got {present[key]!r}, expected {expected[key]!r})")


def _plain(sql: str) -> str:
    return " ".join(sql.split())


def _left_running(connection: sa.Connection) -> Iterator[Finding]:
    for row in connection.execute(sa.select(schema.runs).where(schema.runs.c.state == "running")):
        holder = holder_of(row)
        if holder is None or (process.is_here(holder) and not process.is_alive(holder)):
            gone = f"process {holder.pid} is gone" if holder else "no process stands for it"
            yield Finding(
                f"run {row.run_id}",
                f"left running (got {gone}, expected a live one); resume it with `orch run --resume`, "
                f"or give it up with `tracker run close {row.run_id} REASON`",
            )


def _without_bundle(connection: sa.Connection) -> Iterator[Finding]:
    runs, places = schema.runs, schema.locations
    nowhere = (
        sa.select(runs.c.run_id)
        .join(places, places.c.run_id == runs.c.run_id, isouter=True)
        .where(runs.c.seal.is_not(None), places.c.run_id.is_(None))
        .order_by(runs.c.run_id)
    )
    for run in connection.execute(nowhere).scalars():
        yield Finding(
            f"run {run}", "a sealed run without a bundle (got no place of one, expected its folder)"
        )


def _baseless(connection: sa.Connection) -> Iterator[Finding]:
    table, runs = schema.evidence, schema.runs
    unsupported = (
        sa.select(table.c.item_id, table.c.run_id, runs.c.state)
        .join(runs, runs.c.run_id == table.c.run_id, isouter=True)
        .where(sa.func.ifnull(runs.c.state, "absent") != "completed")
    )
    for item, run, state in connection.execute(unsupported):
        yield Finding(
            f"evidence {item}", f"rests on run {run} (got state {state or 'absent'}, expected completed)"
        )


def _sealed_runs(connection: sa.Connection) -> tuple[sa.Row[Any], ...]:
    places = schema.locations
    last = (
        sa.select(places.c.run_id, sa.func.max(places.c.revision).label("revision"))
        .group_by(places.c.run_id)
        .subquery()
    )
    rows = connection.execute(
        sa.select(schema.runs, places.c.path)
        .join(last, last.c.run_id == schema.runs.c.run_id)
        .join(places, (places.c.run_id == last.c.run_id) & (places.c.revision == last.c.revision))
        .where(schema.runs.c.seal.is_not(None))
        .order_by(schema.runs.c.run_id)
    )
    return tuple(rows)


def _bundle(store: Store, row: sa.Row[Any], judge: Judge | None) -> Iterator[Finding]:
    subject = f"run {row.run_id}"
    path = Path(row.path)
    if not path.is_dir():
        yield Finding(
            subject,
            f"its bundle is moved or missing (got no folder {path}; `tracker ingest` its new place)",
        )
        return
    try:
        told = sealed.read(path)
    except BundleError as error:
        yield Finding(subject, f"its bundle no longer verifies: {error}")
        return
    if told.seal != row.seal:
        yield Finding(subject, f"its bundle has another seal (got {told.seal}, expected {row.seal})")
    for name in _COMPARED:
        if getattr(told, name) != getattr(row, name):
            yield Finding(
                subject,
                f"its row differs from its bundle in {name} "
                f"(got {getattr(row, name)}, expected {getattr(told, name)})",
            )
    table = schema.devices
    columns = tuple(
        table.c[name] for name in ("role", "node", "product", "uuid", "minor", "profile", "driver")
    )
    with store.read() as connection:
        rows = connection.execute(sa.select(*columns).where(table.c.run_id == row.run_id))
        bound = {tuple(each) for each in rows}
    if bound != {tuple(asdict(device).values()) for device in told.devices}:
        yield Finding(subject, "its bound devices differ from its bundle's binding.json")
    if judge is not None:
        yield from (Finding(subject, f"its bundle: {each}") for each in judge.complaints(path))
