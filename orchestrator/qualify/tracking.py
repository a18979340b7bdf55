"""The tracker's part in a run: a row when it begins, the sealed bundle when it ends.

A tracker that cannot be written loses nothing: the bundle is the record, and `tracker ingest` takes it later.
"""

from __future__ import annotations

from pathlib import Path

from orchestrator.plan.command import CommandPlan
from orchestrator.plan.matrix import MatrixPlan
from orchestrator.plan.model import Plan
from orchestrator.qualify.bundle_files import BundleFiles
from orchestrator.qualify.journal import Observer


def begin(
    url: str | None,
    files: BundleFiles,
    lane: str,
    plan: Plan | CommandPlan | MatrixPlan,
    observer: Observer,
) -> None:
    """Notes that a run of a lane goes on; a complaint goes to the observer."""
    if url is None:
        return
    from tracker.errors import TrackerError
    from tracker.record import begin_run
    from tracker.store import open_store

    try:
        begin_run(
            open_store(url),
            run_id=files.run_id,
            lane=lane,
            bundle=files.bundle,
            plan=plan.digest,
            system=plan.system_digest,
            started=files.events()[0].time,
        )
    except TrackerError as error:
        way_out = f"the run goes on, and `tracker ingest {files.bundle}` can record it later"
        observer.note(f"tracker: {error}; {way_out}")


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
