"""Runs a lane: every step acts and is judged, until one does not pass; then the bundle is sealed.

The stream is the journal. `--resume` reads it: a finished step never runs twice, an open one is taken up where
its roles still run, else recorded as a failed attempt and begun anew.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from types import FrameType

from evidence.bundle import seal
from evidence.files import write_whole
from evidence.verify import read_qualification, verify

from orchestrator.errors import Label, OrchError, Refusal, RefusedError, UsageError, Where
from orchestrator.plan.derive import derive
from orchestrator.qualify import bundles, tracking
from orchestrator.qualify.checks import STEPS, StepOutcome, Verdict, worst
from orchestrator.qualify.judge import grade_of, judge_step, judge_steps, qualification
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.session import Attempt, AttemptLostError, Limits, Observer, Session, StopLaneError
from orchestrator.qualify.steps import ALL, Step, build, not_applicable, preflight
from orchestrator.qualify.view import View
from orchestrator.remote.base import RemoteError
from orchestrator.remote.local import Local
from orchestrator.spec.content import Content
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.read import read_lane

MAX_ATTEMPTS = 3
LOCAL = "local"


@dataclass(frozen=True)
class RunOptions:
    """What a person asks for.

    Attributes:
        lane: the lane file; not read when a bundle is resumed.
        bundles: the folder for bundles.
        content: systems, roles and the like.
        pods: `local`.
        resume: a bundle to go on with.
        tracker_url: of the tracker's database; None records nothing.
        owner: who owns what is put on nodes.
        keep: whether the run's folder stays on the nodes.
        cache: for compiled programs; None keeps nothing between runs.
    """

    lane: Path | None
    bundles: Path
    content: Content
    pods: str = LOCAL
    resume: Path | None = None
    tracker_url: str | None = None
    owner: str = ""
    keep: bool = False
    cache: Path | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a lane.

    Attributes:
        bundle: its folder.
        steps: in order, without those left out.
        omitted: step -> reason.
        losses: of the uninterrupted run, update by update, as its root's progress says.
        proves: tracker items for which this run counts.
        crashed: a log file of a fault of ours, relative to the bundle; empty if there was none.
    """

    bundle: Path
    lane: str
    run_id: str
    verdict: str
    grade: str
    seal: str
    plan: str
    system: str
    steps: tuple[StepOutcome, ...]
    omitted: Mapping[str, str]
    losses: tuple[float, ...]
    proves: tuple[str, ...] = ()
    crashed: str = ""

    @property
    def headline(self) -> str:
        """The verdict as people read it; a pass with steps left out says so."""
        if not self.omitted or self.verdict != Verdict.PASS:
            return self.verdict
        return f"{self.verdict} ({len(STEPS) - len(self.omitted)} of {len(STEPS)}; omitted: {', '.join(self.omitted)})"


def run_lane(options: RunOptions, observer: Observer) -> Outcome:
    """Runs a lane to its seal.

    Raises:
        RefusedError: the lane, its plan or the bundle is refused; nothing was begun.
    """
    opened = _open(options)
    try:
        bundle = opened.folder
        view = View(bundle)
        if opened.stream.sealed and not verify(bundle):
            return _outcome(
                view, read_qualification_seal(bundle), tracking.finish(options.tracker_url, observer, bundle)
            )
        session = _session(options, observer, opened, view)
        begun = opened.stream.events[0]
        tracking.begin(
            options.tracker_url,
            observer,
            run_id=session.run_id,
            lane=session.lane.name,
            bundle=bundle,
            plan=session.planned.plan.digest,
            system=session.planned.plan.system.digest,
            started=begun.time,
        )
        for event in opened.stream.events if not opened.resumed else ():
            observer.event(event)
        with _signals(session):
            crashed = "" if opened.stream.sealed else _steps(session, view)
            return _finish(options, session, view, crashed)
    finally:
        opened.close()


def _open(options: RunOptions) -> bundles.Opened:
    if options.resume is not None:
        opened = bundles.reopen(options.resume)
        recorded = opened.stream.events[0].data["content_sha256"]
        if recorded != options.content.digest and not opened.stream.sealed:
            opened.close()
            message = f"content has changed since this run began (got {options.content.digest}, expected {recorded})"
            raise RefusedError([Refusal(Label.FILE_UNREADABLE, message, Where(str(options.content.root)))])
        return opened
    if options.lane is None:
        raise UsageError("a lane file or --resume is needed")
    if options.pods != LOCAL:
        raise UsageError(f"roles run on this machine only (got --pods {options.pods}, expected {LOCAL})")
    lane = read_lane(options.lane)
    first: dict[str, object] = {
        "content_sha256": options.content.digest,
        "owner": options.owner,
        "pods": options.pods,
        "remote_root": str(_remote_root()),
    }
    return bundles.create(options.bundles, lane, derive(lane.run), first)


def _remote_root() -> PurePosixPath:
    return PurePosixPath(tempfile.gettempdir()) / f"orch-{os.getuid()}"


def _session(options: RunOptions, observer: Observer, opened: bundles.Opened, view: View) -> Session:
    begun = opened.stream.events[0]
    lane = view.lane
    duration = lane.limits.duration_s
    elapsed = (datetime.now(UTC) - datetime.fromisoformat(begun.time)).total_seconds()
    session = Session(
        bundle=opened.folder,
        stream=opened.stream,
        observer=observer,
        lane=lane,
        planned=view.planned,
        content_root=options.content.root,
        cache=options.cache,
        nodes={LOCAL: Local(LOCAL)},
        placement=dict.fromkeys(view.roles, LOCAL),
        root=PurePosixPath(begun.data["remote_root"]) / opened.stream.source,
        owner=begun.data["owner"],
        limits=Limits(None if duration is None else time.monotonic() + duration - elapsed, duration),
        keep=options.keep,
    )
    preflight.load(session)
    build.load(session)
    return session


@contextmanager
def _signals(session: Session) -> Iterator[None]:
    """Ctrl-C or TERM once: stop our own processes, collect, seal as unknown. Ctrl-C twice: leave at once."""

    def asked(number: int, _frame: FrameType | None) -> None:
        if session.limits.stop_requested:
            raise KeyboardInterrupt
        session.limits.stop_requested = f"interrupted by {signal.Signals(number).name}"

    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _steps(session: Session, view: View) -> str:
    """Runs every step in order until one does not pass; `record` runs in any case. Returns a crash's log file."""
    crashed, stopped = "", any(event.type == "orch.lane.stopped" for event in session.stream.events)
    for step in ALL:
        if step.NAME in session.lane.omit or not_applicable(step, session.planned):
            continue
        if (stopped or crashed) and step.NAME != "record":
            continue
        try:
            crashed = _step(session, view, step) or crashed
        except StopLaneError as stop:
            session.emit("attempt.failed", step.NAME, _about(session, step.NAME, str(stop), Verdict.UNKNOWN))
            session.emit("lane.stopped", session.lane.name, {"reason": str(stop)})
            session.observer.note(str(stop))
            stopped = True
            session.limits.deadline = None
        outcome = judge_step(view, step)
        if not _judged(session, step.NAME):
            session.emit("step.judged", step.NAME, {"step": step.NAME, "verdict": str(outcome.verdict)})
        stopped = stopped or outcome.verdict in (Verdict.FAIL, Verdict.UNKNOWN)
    return crashed


def _step(session: Session, view: View, step: Step) -> str:
    """Acts until an attempt is finished, fails for good, or three were lost. Returns a crash's log file."""
    if view.attempt(step.NAME) is not None:
        return ""
    while True:
        number = _begin_attempt(session, step.NAME)
        if number is None:
            return ""
        attempt = Attempt(step.NAME, number, session.bundle / "steps" / step.NAME / str(number))
        attempt.folder.mkdir(parents=True, exist_ok=True)
        try:
            if step.NAME != "record":
                session.limits.check()
            step.act(Launcher(session, attempt))
        except AttemptLostError as lost:
            session.emit("attempt.failed", step.NAME, _about(session, step.NAME, str(lost), Verdict.UNKNOWN))
        except (StopLaneError, KeyboardInterrupt):
            raise
        except RefusedError as refused:
            session.emit(
                "attempt.failed",
                step.NAME,
                _about(session, step.NAME, str(refused), Verdict.FAIL, final=True),
            )
            return ""
        except (RemoteError, OrchError) as error:
            session.emit(
                "attempt.failed",
                step.NAME,
                _about(session, step.NAME, str(error), Verdict.UNKNOWN, final=True),
            )
            return ""
        except Exception as error:  # noqa: BLE001  # a step that crashed is unknown, and what it left is kept
            log = attempt.folder / "crash.txt"
            write_whole(log, traceback.format_exc().encode())
            reason = f"crashed: {type(error).__name__}: {error}"
            session.emit(
                "attempt.failed", step.NAME, _about(session, step.NAME, reason, Verdict.UNKNOWN, final=True)
            )
            return session.relative(log)
        else:
            session.emit("step.finished", step.NAME, {"step": step.NAME, "attempt": number})
            return ""


def _begin_attempt(session: Session, step: str) -> int | None:
    """Number of the attempt to go on with or to begin; None if the step has failed for good."""
    number, open_, last = 0, False, None
    for event in session.stream.events:
        if event.data.get("step") != step:
            continue
        if event.type == "orch.step.started":
            number, open_ = event.data["attempt"], True
        elif event.type == "orch.attempt.failed":
            open_, last = False, event
    if open_:
        return number
    if last is not None and last.data["final"]:
        return None
    if number >= MAX_ATTEMPTS and not _interrupted_attempts(session, step):
        return None
    session.emit("step.started", step, {"step": step, "attempt": number + 1})
    return number + 1


def _interrupted_attempts(session: Session, step: str) -> bool:
    """Whether the last attempt was lost with its controller: that is no fault of the step's and is not counted."""
    failed = [
        event
        for event in session.stream.events
        if event.type == "orch.attempt.failed" and event.data["step"] == step
    ]
    return bool(failed) and failed[-1].data["reason"].startswith("the controller was gone")


def _about(
    session: Session, step: str, reason: str, verdict: Verdict, *, final: bool = False
) -> dict[str, object]:
    number = [
        event.data["attempt"]
        for event in session.stream.events
        if event.type == "orch.step.started" and event.data["step"] == step
    ]
    return {
        "step": step,
        "attempt": number[-1] if number else 0,
        "reason": reason,
        "verdict": str(verdict),
        "final": final,
    }


def _judged(session: Session, step: str) -> bool:
    return any(
        event.type == "orch.step.judged" and event.data["step"] == step for event in session.stream.events
    )


def _finish(options: RunOptions, session: Session, view: View, crashed: str) -> Outcome:
    steps = judge_steps(view)
    verdict = worst(step.verdict for step in steps)
    sealed = seal(session.bundle, session.stream, str(verdict), qualification(view, steps))
    session.observer.event(session.stream.events[-1])
    proves = tracking.finish(options.tracker_url, session.observer, session.bundle)
    return _outcome(view, sealed, proves, steps, crashed)


def read_qualification_seal(bundle: Path) -> str:
    """The seal of a sealed bundle: the digest of its `qualification.json`."""
    from evidence.digest import sha256_file

    return sha256_file(bundle / "qualification.json")


def _outcome(
    view: View,
    sealed: str,
    proves: tuple[str, ...],
    steps: tuple[StepOutcome, ...] | None = None,
    crashed: str = "",
) -> Outcome:
    steps = judge_steps(view) if steps is None else steps
    recorded = read_qualification(view.bundle)
    return Outcome(
        bundle=view.bundle,
        lane=view.lane.name,
        run_id=str(recorded["run_id"]),
        verdict=str(recorded["verdict"]),
        grade=grade_of(view),
        seal=sealed,
        plan=view.planned.plan.digest,
        system=view.planned.plan.system.digest,
        steps=steps,
        omitted=view.lane.omit,
        losses=_losses(view),
        proves=proves,
        crashed=crashed,
    )


def _losses(view: View) -> tuple[float, ...]:
    from orchestrator.oracle.reference import from_bits

    launched = view.launch("uninterrupted", "run-1")
    return tuple(from_bits(line.loss) for line in launched.roles[view.roles[0]].progress) if launched else ()
