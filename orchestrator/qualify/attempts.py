"""Steps in order, and attempts at each: what is begun, taken up again, given up, or left alone as done.

Reads the journal to know; writes to it before and after everything that it does.
"""

from __future__ import annotations

import traceback

from evidence.event import Event
from evidence.files import write_whole
from orchestrator.errors import OrchError, RefusedError
from orchestrator.qualify.checks import Verdict
from orchestrator.qualify.judge import judge_step
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.session import CONTROLLER_GONE, Attempt, AttemptLostError, Session, StopLaneError
from orchestrator.qualify.steps import ALL, Step, not_applicable, record

MAX_ATTEMPTS = 3


def run_steps(session: Session) -> str:
    """Runs every step in order until one does not pass; `record` runs in any case.

    Returns:
        The log file of a fault of ours, relative to the bundle; empty if there was none.
    """
    crashed = ""
    stopped = any(event.type == "orch.lane.stopped" for event in session.stream.events)
    for step in ALL:
        if step.NAME in session.view.lane.omit or not_applicable(step, session.view.planned):
            continue
        if stopped and step.NAME != record.NAME:
            continue
        try:
            crashed = _step(session, step) or crashed
        except StopLaneError as stop:
            _failed(session, step, str(stop), Verdict.UNKNOWN, final=True)
            session.emit("lane.stopped", session.view.lane.name, {"reason": str(stop)})
            session.observer.note(str(stop))
            session.limits.deadline = None
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
        if step.NAME != record.NAME:
            session.limits.check()
        step.act(launcher)
    except AttemptLostError as lost:
        launcher.abandon(str(lost))
        _failed(session, step, str(lost), Verdict.UNKNOWN, final=False)
    except StopLaneError as stop:
        launcher.abandon(str(stop))
        raise
    except OrchError as error:
        launcher.abandon(str(error))
        if session.limits.stop_requested:  # Ctrl-C reaches the compiler too: its complaint is ours
            raise StopLaneError(session.limits.stop_requested) from error
        # what is refused is a failure of the step; what cannot be said leaves it undecided
        verdict = Verdict.FAIL if isinstance(error, RefusedError) else Verdict.UNKNOWN
        _failed(session, step, str(error), verdict, final=True)
    except OSError:
        raise  # the bundle itself cannot be written: nothing can be journalled, and roles have deadlines
    except Exception as error:  # noqa: BLE001  # a step that crashed is unknown, and what it left is kept
        launcher.abandon(f"crashed: {type(error).__name__}")
        log = attempt.folder / "crash.txt"
        write_whole(log, traceback.format_exc().encode())
        _failed(session, step, f"crashed: {type(error).__name__}: {error}", Verdict.UNKNOWN, final=True)
        return session.relative(log)
    else:
        session.emit("step.finished", step.NAME, {"step": step.NAME, "attempt": attempt.number})
    return ""


def _begin_attempt(session: Session, step: Step) -> int | None:
    """Number of the attempt to go on with or to begin; None if the step has failed for good.

    An attempt that was lost with its controller is no fault of the step's and is not counted.
    """
    number, failed, counted = 0, None, 0
    for event in _about(session, step):
        if event.type == "orch.step.started":
            number, failed = event.data["attempt"], None
        elif event.type == "orch.attempt.failed":
            failed = event.data
            counted += not failed["reason"].startswith(CONTROLLER_GONE)
    if number and failed is None:
        return int(number)
    if counted >= MAX_ATTEMPTS or (failed is not None and failed["final"]):
        return None
    session.emit("step.started", step.NAME, {"step": step.NAME, "attempt": number + 1})
    return int(number) + 1


def _failed(session: Session, step: Step, reason: str, verdict: Verdict, *, final: bool) -> None:
    started = [event for event in _about(session, step) if event.type == "orch.step.started"]
    data = {
        "step": step.NAME,
        "attempt": started[-1].data["attempt"] if started else 0,
        "reason": reason,
        "verdict": str(verdict),
        "final": final,
    }
    session.emit("attempt.failed", step.NAME, data)


def _about(session: Session, step: Step) -> tuple[Event, ...]:
    return tuple(event for event in session.stream.events if event.data.get("step") == step.NAME)
