"""The tracker's part in a run: a row when it begins, the sealed bundle when it ends.

A tracker that cannot be written loses nothing: the bundle is the record, and `tracker ingest` takes it later.
"""

from __future__ import annotations

from pathlib import Path

from orchestrator.qualify.journal import Observer
from orchestrator.qualify.session import Session


def begin(url: str | None, session: Session) -> None:
    """Notes that a run goes on; a complaint goes to the observer."""
    if url is None:
        return
    from tracker.errors import TrackerError
    from tracker.record import begin_run
    from tracker.store import open_store

    plan = session.view.plan
    try:
        begin_run(
            open_store(url),
            run_id=session.run_id,
            lane=session.view.lane.name,
            bundle=session.bundle,
            plan=plan.digest,
            system=plan.system_digest,
            started=session.stream.events[0].time,
        )
    except TrackerError as error:
        way_out = f"the run goes on, and `tracker ingest {session.bundle}` can record it later"
        session.observer.note(f"tracker: {error}; {way_out}")


def finish(url: str | None, observer: Observer, bundle: Path) -> tuple[str, ...]:
    """Records a sealed bundle; returns the items that it proves."""
    if url is None:
        return ()
    from tracker.errors import TrackerError
    from tracker.record import finish_run
    from tracker.store import open_store

    try:
        return finish_run(open_store(url), bundle).items
    except TrackerError as error:
        observer.note(f"tracker: {error}; `tracker ingest {bundle}` can record the bundle later")
        return ()
