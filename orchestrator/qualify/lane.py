"""Runs a lane: every step acts and is judged, until one does not pass; then the bundle is sealed.

The stream is the journal. `--resume` reads it: a finished step never runs twice, an open one is taken up
where its roles still run, else recorded as a failed attempt and begun anew.
"""

from __future__ import annotations

import errno
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath
from types import FrameType

from evidence.bundle import SealError, seal
from evidence.digest import sha256_file
from evidence.listing import QUALIFICATION
from evidence.verify import verify
from orchestrator.errors import Label, RefusedError, UndecidedError
from orchestrator.qualify import devices, holder, limits, reach, tracking
from orchestrator.qualify.attempts import run_steps, way_out
from orchestrator.qualify.checks import worst
from orchestrator.qualify.crew import Crew
from orchestrator.qualify.journal import Guarded, Journal, Observer
from orchestrator.qualify.judge import judge_steps, qualification
from orchestrator.qualify.limits import Billing, Limits, StopLaneError
from orchestrator.qualify.opening import Opening, open_run
from orchestrator.qualify.options import RunOptions
from orchestrator.qualify.outcome import LaneOutcome, outcome_of
from orchestrator.qualify.placement import described
from orchestrator.qualify.session import Session
from orchestrator.qualify.steps import build, preflight, record
from orchestrator.qualify.take_up import take_up
from orchestrator.qualify.view import View
from orchestrator.remote.base import NodeLostError, RemoteError, UnreachableError

_UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)


def run_lane(options: RunOptions, observer: Observer) -> LaneOutcome:
    """Runs a lane to its seal.

    Raises:
        RefusedError: the lane, its plan or the bundle is refused; nothing was begun.
        RemoteError: a node refuses, by label, or cannot be reached, before anything was begun.
        UndecidedError: the bundle or a node's folder cannot be written; the run can be resumed.
    """
    try:
        opening = open_run(options)
    except OSError as error:
        place = options.resume or options.bundles
        raise UndecidedError(f"{place}: cannot be opened: {error.strerror or error}") from error
    try:
        with resumable(opening.opened.folder):
            return _run(options, Guarded(observer), opening)
    finally:
        opening.opened.close()


@contextmanager
def resumable(bundle: Path) -> Iterator[None]:
    """Says the way out where a bundle cannot be written.

    Raises:
        UndecidedError: with that, instead of what the system or the sealing said.
    """
    try:
        yield
    except (OSError, SealError) as error:
        ways = f"`orch run --resume {bundle}` can, when that is mended"
        cause = error.strerror if isinstance(error, OSError) else error
        is_unwritten = isinstance(error, OSError) and error.errno in _UNWRITTEN
        label = f"{Label.WRITE_FAILED}: " if is_unwritten else ""
        raise UndecidedError(f"{label}{bundle}: cannot go on: {cause or error}; {ways}") from error


def _run(options: RunOptions, observer: Observer, opening: Opening) -> LaneOutcome:
    opened = opening.opened
    view = View(opened.folder)
    if opened.stream.sealed and not verify(opened.folder):
        proves = tracking.finish(options.tracker_url, observer, opened.folder)
        return outcome_of(view, sha256_file(opened.folder / QUALIFICATION), proves)
    begun = opened.stream.events[0]
    billing = Billing.of(opening.pods) if opening.pods else None
    declared = limits.declared(view.lane.limits, datetime.fromisoformat(begun.time), billing)
    allowed = Limits((*declared, *options.limits), billing)
    allowed.is_armed = not opened.resumed
    if any(event.type == "orch.lane.stopped" for event in opened.stream.events):
        allowed.part()
    journal = Journal(opened.stream, observer, options.secrets)
    for event in opened.stream.events if not opened.resumed else ():
        observer.event(event)
    if not opened.stream.sealed:
        journal.emit(holder.BEGAN, view.lane.name, holder.here())
    with signals(allowed), _reached(journal, opening, view, allowed) as reached:
        session = _session(options, journal, view, allowed, reached)
        tracking.begin(options.tracker_url, view, view.lane.name, view.plan, session.observer)
        if session.nodes and opened.resumed and _goes_on(opening, view):
            _take_up(session)
        allowed.is_armed = True
        allowed.stop_requested = allowed.stop_requested or options.stop
        crashed = "" if opened.stream.sealed else run_steps(session)
        return _finish(options, session, view, crashed)


def _goes_on(opening: Opening, view: View) -> bool:
    """Whether something is to be done on nodes: not of a run that is over, or whose nodes are given up."""
    is_given_up = opening.pods is None and view.pods is not None
    return not is_given_up and not _is_over(opening, view)


def _is_over(opening: Opening, view: View) -> bool:
    """Whether nothing is left to run on any node: the last step has begun, or the bundle is sealed."""
    return opening.opened.stream.sealed or view.attempt(record.NAME) is not None


@contextmanager
def _reached(journal: Journal, opening: Opening, view: View, allowed: Limits) -> Iterator[reach.Reached]:
    """The nodes, locked and with the run's folder, as long as there is something to do on them.

    A run that never began leaves no bundle.
    """
    opened, pods = opening.opened, opening.pods
    over = _is_over(opening, view)
    reached = reach.Reached({}, {}, {}, {})
    crew = Crew(allowed, far=pods is not None)
    try:
        if not over or pods is None:
            reached = _way(journal, opening, view, allowed)
        if _goes_on(opening, view):
            reach.settle_in(reached, opened.stream.source, crew, journal.observer.note)
    except (RefusedError, RemoteError, StopLaneError) as error:
        if not opened.resumed:
            allowed.part()
            reach.move_out(reached, opened.stream.source, crew)
        reached.close()
        if not opened.resumed:
            shutil.rmtree(opened.folder)
        if isinstance(error, RefusedError):
            raise
        if isinstance(error, RemoteError) and error.exit_code == 1:
            raise
        ways = f"; {way_out(opened.folder, view, error)}" if opened.resumed else ""
        raise UndecidedError(f"{error}{ways}") from error
    try:
        yield reached
    finally:
        reached.close()


def _way(journal: Journal, opening: Opening, view: View, allowed: Limits) -> reach.Reached:
    """The way to the nodes, wherever they are."""
    begun, pods = opening.opened.stream.events[0].data, opening.pods
    if said := devices.described(view):
        journal.observer.note(f"cards: {said}")
    if view.pods is None:
        root = PurePosixPath(begun["remote_root"]) / opening.opened.stream.source
        return reach.local(root, begun["owner"], journal.of_node)
    if pods is None:
        return reach.given_up(view)
    journal.observer.note(f"roles: {described(view.wiring.placement, tuple(pods.nodes))}")
    if said := str(allowed):
        journal.observer.note(said)
    return reach.rental(pods, view, begun["owner"], allowed, journal.of_node)


def _take_up(session: Session) -> None:
    try:
        take_up(session)
    except (UnreachableError, NodeLostError, StopLaneError) as error:
        ways = way_out(session.bundle, session.view, error)
        raise UndecidedError(f"{error}; {ways}") from error


def _session(
    options: RunOptions, journal: Journal, view: View, allowed: Limits, reached: reach.Reached
) -> Session:
    begun = journal.stream.events[0]
    session = Session(
        bundle=view.bundle,
        view=view,
        journal=journal,
        content_root=options.content.root,
        cache=options.cache,
        reached=reached,
        limits=allowed,
        crew=Crew(allowed, far=view.pods is not None),
        keep=begun.data["keep"],
    )
    preflight.load(session)
    build.load(session)
    return session


@contextmanager
def signals(allowed: Limits) -> Iterator[None]:
    """Ctrl-C or TERM once: stop our own processes, collect, seal as unknown. Ctrl-C twice: leave at once."""

    def asked(number: int, _frame: FrameType | None) -> None:
        if allowed.stop_requested:
            raise KeyboardInterrupt
        allowed.stop_requested = f"interrupted by {signal.Signals(number).name}"

    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _finish(options: RunOptions, session: Session, view: View, crashed: str) -> LaneOutcome:
    if not session.stream.sealed:
        session.reached.close()
    session.journal.close_to_nodes()
    steps = judge_steps(view)
    verdict = worst(step.verdict for step in steps)
    sealed = seal(session.bundle, session.stream, str(verdict), qualification(view, steps))
    session.observer.event(session.stream.events[-1])
    proves = tracking.finish(options.tracker_url, session.observer, session.bundle)
    return outcome_of(view, sealed, proves, steps, crashed)
