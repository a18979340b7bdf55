"""What a resumed run looks after on its nodes before it goes on.

A rented or owned node that was booted anew under roles that still ran is not the one that the run is bound
to; and roles of a launch that was given up while their node was out of reach may still be there. This
machine's temporary folder may have been cleared: what stands for cards there is placed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from evidence.event import Event
from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.qualify import looks
from orchestrator.qualify.jobs import Jobs
from orchestrator.qualify.launch import Launch
from orchestrator.qualify.session import Attempt, Session

_LAUNCH = ("step", "attempt", "launch")


def take_up(session: Session) -> None:
    """Refuses nodes that are not what they were, and ends what was left on those that are.

    Raises:
        RefusedError: `pod-changed`.
        RemoteError: a node refuses, or is lost.
        StopLaneError: the lane is to end now.
    """
    if session.view.pods is None:
        looks.place_stand_in(session)
        return
    _same_boot(session)
    _end_strays(session)


def _same_boot(session: Session) -> None:
    """Roles that may be re-attached run in the boot in which they were started, or not at all."""
    open_ones = {_key(event) for event in _of(session, "launch.started")}
    open_ones -= {_key(event) for event in _of(session, "launch.finished")}
    started = {
        session.placement[event.data["role"]]: event.data["boot_id"]
        for event in _of(session, "job.started")
        if _key(event) in open_ones
    }
    facts = session.crew.each([(name, session.nodes[name].facts) for name in started])
    now = {name: found.boot_id for name, found in zip(started, facts, strict=True)}
    hint = "`orch run LANE --pods NEW --from BUNDLE:checkpoint@N` goes on from its checkpoint"
    refusals = [
        Refusal(
            Label.POD_CHANGED,
            f"it was booted anew while roles ran there (got boot {now[name]}, expected {boot})",
            Where(name),
            hint=hint,
        )
        for name, boot in started.items()
        if now[name] != boot
    ]
    if refusals:
        raise RefusedError(refusals)


def _end_strays(session: Session) -> None:
    """Ends roles of launches that were given up without a word from their node."""
    tasks = []
    for event in _of(session, "launch.finished"):
        missing = event.data.get("missing", {})
        step, number, name = _key(event)
        folder = Path(session.bundle, "steps", step, str(number))
        jobs = Jobs(session, Attempt(step, number, folder))
        for start in Launch.read(folder / name).starts if missing else ():
            node = session.placement[start.role]
            if node in missing:
                job = jobs.of(name, start)
                tasks.append((node, partial(session.nodes[node].prevent, job)))
                tasks.append((node, partial(session.nodes[node].end, job.folder)))
    session.crew.each(tasks)


def _of(session: Session, kind: str) -> Iterator[Event]:
    return (event for event in session.stream.events if event.type == f"orch.{kind}")


def _key(event: Event) -> tuple[str, int, str]:
    step, number, name = (event.data[key] for key in _LAUNCH)
    return step, number, name
