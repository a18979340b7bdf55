"""Recording runs: begun, finished, ingested, closed.

Knows the tables of runs and their devices. Knows no command line.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tracker import process, schema, sealed
from tracker.beside import Measured, add_location, add_measurement, add_note
from tracker.clock import now
from tracker.engine import Judge
from tracker.errors import BundleError, RecordError
from tracker.matching import match
from tracker.store import Store

_STATES = {"pass": "completed", "fail": "failed", "unknown": "unknown"}


@dataclass(frozen=True)
class Recorded:
    """What recording a bundle did.

    Attributes:
        new: False where this very bundle was recorded before.
        items: the items for which the run counts as evidence, in order of their identifiers.
    """

    run_id: str
    lane: str
    verdict: str
    grade: str
    seal: str
    new: bool
    items: tuple[str, ...]


def begin_run(  # noqa: PLR0913  (keywords only: a run's identity, as the engine has it)
    store: Store, *, run_id: str, lane: str, bundle: Path, plan: str, system: str, started: str
) -> None:
    """Record that a run goes on in this process. Again for a resumed one: this process then stands for it.

    Raises:
        RecordError: the run is terminal, or is known as one of another lane, plan or system.
    """
    identity = {"run_id": run_id, "lane": lane, "plan": plan, "system": system}
    controller = asdict(process.here())
    holder = {("process_start" if key == "start" else key): value for key, value in controller.items()}
    with store.write() as connection:
        known = _row(connection, run_id)
        if known is None:
            _insert(connection, {**identity, "started": started, **holder})
        else:
            _same(known, identity)
            if known.state != "running":
                raise RecordError(f"run {run_id}: is terminal (got state {known.state}, expected running)")
            connection.execute(schema.runs.update().where(schema.runs.c.run_id == run_id).values(**holder))
        add_location(connection, run_id, bundle.resolve())


def finish_run(store: Store, bundle: Path) -> Recorded:
    """Record the end of a run from the bundle that the caller has just judged and sealed.

    The run need not have been begun here. It counts as judged by the judge that its bundle names.

    Raises:
        BundleError: the bundle does not verify or contradicts itself.
        RecordError: the run is recorded with another seal, or as another run.
    """
    told = sealed.read(bundle)
    return record(store, told, told.judge_version)


def ingest(store: Store, bundle: Path, judge: Judge) -> Recorded:
    """Judge a bundle, made here or elsewhere, and take it in. The same one again changes nothing.

    Whoever can write a bundle can seal it over any verdict: only what its files show counts.

    Raises:
        BundleError: the bundle does not verify, contradicts itself, or is not what its files show.
        RecordError: the run is recorded with another seal, or as another run.
    """
    told = sealed.read(bundle)
    complaints = judge.complaints(bundle)
    if complaints:
        if told.judge_version != judge.version:
            complaints += (
                f"it was judged by {told.judge_version} when it was sealed, now by {judge.version}",
            )
        raise BundleError(bundle, complaints)
    return record(store, told, judge.version)


def record(store: Store, told: sealed.Sealed, judged: str) -> Recorded:
    """Record what a verified bundle says, in one transaction; `judged` is the version of who judged it."""
    with store.write() as connection:
        known = _row(connection, told.run_id)
        identity = {"run_id": told.run_id, "lane": told.lane, "plan": told.plan, "system": told.system}
        if known is None:
            _insert(connection, {**identity, "started": told.started})
        else:
            _same(known, identity)
        new = known is None or known.state == "running"
        if new:
            _finish(connection, told, judged)
        elif known is not None and known.seal != told.seal:
            raise RecordError(
                f"run {told.run_id}: is recorded as {known.state} (got seal {told.seal}, "
                f"expected {known.seal or 'none: it was closed by hand'})"
            )
        add_location(connection, told.run_id, told.bundle)
        match(connection, told.run_id)
        proven = sa.select(schema.evidence.c.item_id).where(schema.evidence.c.run_id == told.run_id)
        items = tuple(connection.execute(proven.order_by(schema.evidence.c.item_id)).scalars())
    return Recorded(told.run_id, told.lane, told.verdict, told.grade, told.seal, new, items)


def close_run(store: Store, run_id: str, reason: str) -> None:
    """Declare a run interrupted for good: it left no seal and nobody will resume it. Final, like any end.

    Raises:
        RecordError: no such run, it is not running, or its process still is.
    """
    with store.write() as connection:
        known = _row(connection, run_id)
        if known is None or known.state != "running":
            raise RecordError(
                f"run {run_id}: got {known.state if known else 'no such run'}, expected a running one"
            )
        holder = holder_of(known)
        if holder and process.is_here(holder) and process.is_alive(holder):
            raise RecordError(f"run {run_id}: process {holder.pid} still runs it (expected it to have ended)")
        connection.execute(
            schema.runs.update()
            .where(schema.runs.c.run_id == run_id)
            .values(state="interrupted", verdict="unknown", ended=now())
        )
        add_note(connection, run_id, "note", reason)


def holder_of(run: sa.Row[Any]) -> process.Process | None:
    """Give the process that began a run, None where it was ingested."""
    if run.pid is None:
        return None
    return process.Process(run.host_sha256, run.pid, run.boot_id, run.process_start)


def _finish(connection: sa.Connection, told: sealed.Sealed, judged: str) -> None:
    for device in told.devices:
        connection.execute(schema.devices.insert().values(run_id=told.run_id, **asdict(device)))
    kept = (
        "verdict",
        "grade",
        "started",
        "ended",
        "omitted",
        "seal",
        "head",
        "records",
        "content_sha256",
        "judge",
    )
    values = {name: getattr(told, name) for name in (*kept, "parent_seal")} | {"judged": judged}
    connection.execute(
        schema.runs.update()
        .where(schema.runs.c.run_id == told.run_id)
        .values(state=_STATES[told.verdict], **values)
    )
    for name, seconds in told.seconds:
        add_measurement(connection, told.run_id, Measured(name, seconds, "s", "bundle"))


def _row(connection: sa.Connection, run_id: str) -> sa.Row[Any] | None:
    return connection.execute(sa.select(schema.runs).where(schema.runs.c.run_id == run_id)).one_or_none()


def _same(known: sa.Row[Any], identity: dict[str, str]) -> None:
    for name, value in identity.items():
        if getattr(known, name) != value:
            raise RecordError(
                f"run {known.run_id}: is recorded as another run, by its {name} "
                f"(got {value}, expected {getattr(known, name)})"
            )


def _insert(connection: sa.Connection, values: dict[str, Any]) -> None:
    lane = values["lane"]
    experiments = schema.experiments
    if connection.execute(sa.select(experiments.c.lane).where(experiments.c.lane == lane)).first() is None:
        connection.execute(experiments.insert().values(lane=lane, recorded=now()))
    connection.execute(schema.runs.insert().values(state="running", recorded=now(), **values))
