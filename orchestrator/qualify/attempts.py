"""Steps in order, and attempts at each: what is begun, taken up again, given up, or left alone as done.

Reads the journal to know; writes to it before and after everything that it does.
"""

from __future__ import annotations

import traceback
from dataclasses import asdict, dataclass
from pathlib import Path

from evidence.event import Event
from evidence.files import write_whole
from orchestrator.errors import OrchError, RefusedError, UndecidedError
from orchestrator.qualify import parent as parents
from orchestrator.qualify import pinned_cards
from orchestrator.qualify.checks import Verdict
from orchestrator.qualify.judge import judge_step
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.limits import StopLaneError
from orchestrator.qualify.session import Attempt, AttemptLostError, Session
from orchestrator.qualify.steps import ALL, Step, not_applicable, record
from orchestrator.qualify.view import View
from orchestrator.remote.base import NodeLostError, RemoteError, UnreachableError

MAX_ATTEMPTS = 3


def run_steps(session: Session) -> str:
    """Runs every step in order until one does not pass; `record` runs in any case.

    Returns:
        The log file of a fault of ours, relative to the bundle; empty if there was none.
    """
    crashed = ""
    stopped = any(event.type == "orch.lane.stopped" for event in session.stream.events)
    for step in ALL:
        if step.NAME in session.view.lane.omit or not_applicable(step, session.view.lane):
            continue
        if stopped and step.NAME != record.NAME:
            continue
        try:
            crashed = _step(session, step) or crashed
        except StopLaneError as stop:
            _failed(session, step, _Failure(str(stop), final=True))
            session.emit("lane.stopped", session.view.lane.name, {"reason": str(stop)})
            session.observer.note(str(stop))
        outcome = judge_step(session.view, step)
        if not any(event.type == "orch.step.judged" for event in _about(session, step)):
            session.emit("step.judged", step.NAME, {"step": step.NAME, "verdict": str(outcome.verdict)})
        stopped = stopped or outcome.verdict in (Verdict.FAIL, Verdict.UNKNOWN)
    return crashed


def _step(session: Session, step: Step) -> str:
    """Acts until an attempt is finished, fails for good, or three were lost. Returns a crash's log file."""
    log = ""
    while session.view.attempt(step.NAME) is None and not log:
        number = _begin_attempt(session, step)
        if number is None:
            break
        attempt = Attempt(step.NAME, number, session.bundle / "steps" / step.NAME / str(number))
        attempt.folder.mkdir(parents=True, exist_ok=True)
        log = _attempt(session, step, attempt)
    return log


def _attempt(session: Session, step: Step, attempt: Attempt) -> str:
    """Acts once; what becomes of it is journalled. Returns a crash's log file."""
    launcher = Launcher(session, attempt)
    try:
        _before(session, step, attempt)
        step.act(launcher)
    except AttemptLostError as lost:
        launcher.abandon(str(lost))
        _failed(session, step, _Failure(str(lost), counts=lost.counts))
    except StopLaneError as stop:
        session.limits.part()
        launcher.abandon(str(stop))
        raise
    except RemoteError as error:
        launcher.abandon(str(error))
        _failed(session, step, _Failure(str(error), counts=False))
        raise UndecidedError(f"{error}; {way_out(session.bundle, session.view, error)}") from error
    except OrchError as error:
        launcher.abandon(str(error))
        if session.limits.stop_requested:  # what complains while a lane is being stopped was stopped
            session.limits.part()
            raise StopLaneError(session.limits.stop_requested) from error
        # what is refused is a failure of the step; what cannot be said leaves it undecided
        verdict = Verdict.FAIL if isinstance(error, RefusedError) else Verdict.UNKNOWN
        _failed(session, step, _Failure(str(error), verdict, final=True))
    except OSError:
        raise  # the bundle itself cannot be written: nothing can be journalled, and roles have deadlines
    except Exception as error:  # noqa: BLE001  # a step that crashed is unknown, and what it left is kept
        reason = f"crashed: {type(error).__name__}: {error}"
        launcher.abandon(reason)
        log = attempt.folder / "crash.txt"
        write_whole(log, session.secrets.redact(traceback.format_exc().encode()))
        _failed(session, step, _Failure(reason, final=True))
        return session.relative(log)
    else:
        session.emit("step.finished", step.NAME, {"step": step.NAME, "attempt": attempt.number})
    return ""


def _before(session: Session, step: Step, attempt: Attempt) -> None:
    """What no step begins without: time left, and the cards that the run is bound to."""
    if step.NAME != record.NAME:
        session.limits.check()
    if step.NAME in pinned_cards.STEPS:
        pinned_cards.look(session, attempt.folder)


def way_out(bundle: Path, view: View, error: Exception) -> str:
    """How a lane goes on that a node stopped: there again, or elsewhere from what was collected."""
    resume = f"`orch run --resume {bundle}` goes on when that is mended"
    is_away = isinstance(error, NodeLostError | UnreachableError)
    found = view.collected(*parents.LINEAGE) if is_away else {}
    if not found:
        return resume
    elsewhere = f"`orch run LANE --pods NEW --from {bundle}:checkpoint@{max(found)}`"
    return f"{resume}; {elsewhere} goes on from there on other pods"


def _begin_attempt(session: Session, step: Step) -> int | None:
    """Number of the attempt to go on with or to begin; None if the step has failed for good."""
    number, failed, counted = 0, None, 0
    for event in _about(session, step):
        if event.type == "orch.step.started":
            number, failed = event.data["attempt"], None
        elif event.type == "orch.attempt.failed":
            failed = event.data
            counted += failed["counts"]
    if number and failed is None:
        return int(number)
    if counted >= MAX_ATTEMPTS or (failed is not None and failed["final"]):
        return None
    session.emit("step.started", step.NAME, {"step": step.NAME, "attempt": number + 1})
    return int(number) + 1


@dataclass(frozen=True)
class _Failure:
    """Why an attempt failed; `final` ends the step, and only what `counts` is one of its tries."""

    reason: str
    verdict: Verdict = Verdict.UNKNOWN
    final: bool = False
    counts: bool = True


def _failed(session: Session, step: Step, failure: _Failure) -> None:
    started = [event for event in _about(session, step) if event.type == "orch.step.started"]
    attempt = started[-1].data["attempt"] if started else 0
    session.emit("attempt.failed", step.NAME, {"step": step.NAME, "attempt": attempt, **asdict(failure)})


def _about(session: Session, step: Step) -> tuple[Event, ...]:
    return tuple(event for event in session.stream.events if event.data.get("step") == step.NAME)
