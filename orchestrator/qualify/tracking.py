"""The tracker's part in a run: a row when it begins, the sealed bundle when it ends.

A tracker that cannot be written loses nothing: the bundle is the record, and `tracker ingest` takes it later.
"""

from __future__ import annotations

from pathlib import Path

from orchestrator.qualify.session import Observer


def begin(
    url: str | None,
    observer: Observer,
    *,
    run_id: str,
    lane: str,
    bundle: Path,
    plan: str,
    system: str,
    started: str,
) -> None:
    """Notes that a run goes on; a complaint goes to the observer."""
    if url is None:
        return
    from tracker.errors import TrackerError
    from tracker.record import begin_run
    from tracker.store import open_store

    try:
        store = open_store(url)
        begin_run(store, run_id=run_id, lane=lane, bundle=bundle, plan=plan, system=system, started=started)
    except TrackerError as error:
        observer.note(f"tracker: {error}; the run goes on, `tracker ingest {bundle}` can record it later")


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
