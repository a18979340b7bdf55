"""Runs a lane: every step acts and is judged, until one does not pass; then the bundle is sealed.

The stream is the journal. `--resume` reads it: a finished step never runs twice, an open one is taken up
where its roles still run, else recorded as a failed attempt and begun anew.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from types import FrameType

from evidence.bundle import SealError, seal
from evidence.canonical import loads
from evidence.digest import sha256_file
from evidence.listing import QUALIFICATION
from evidence.verify import read_qualification, verify
from orchestrator.errors import Label, Refusal, RefusedError, UndecidedError, UsageError, Where
from orchestrator.oracle.reference import from_bits
from orchestrator.plan.derive import plan_of
from orchestrator.qualify import bundles, tracking
from orchestrator.qualify.attempts import run_steps
from orchestrator.qualify.checks import STEPS, StepOutcome, Verdict, worst
from orchestrator.qualify.command.checks import lines_of
from orchestrator.qualify.judge import grade_of, judge_steps, qualification
from orchestrator.qualify.session import Guarded, Limits, Observer, Session
from orchestrator.qualify.steps import build, preflight, record
from orchestrator.qualify.view import LOCAL, View
from orchestrator.redact import Secrets
from orchestrator.remote.base import RemoteError
from orchestrator.remote.local import Local
from orchestrator.remote.root import own_root
from orchestrator.spec.content import Content
from orchestrator.spec.read import files, read_lane


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
        keep: whether the run's folder stays on the nodes; a resumed run does as it was told when it began.
        cache: for compiled programs; None keeps nothing between runs.
        secrets: what no file of the bundle may hold.
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
    secrets: Secrets = field(default_factory=Secrets.here)


@dataclass(frozen=True)
class Outcome:
    """What became of a lane.

    Attributes:
        bundle: its folder.
        steps: in order, without those left out.
        omitted: step -> reason.
        updates: how many the lane asks for.
        losses: of the uninterrupted run, as its root's progress says: what each update read, so before it.
        final_loss: of the last version, as the evaluation's root says; None if none was made.
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
    updates: int
    losses: tuple[float, ...]
    final_loss: float | None
    proves: tuple[str, ...] = ()
    crashed: str = ""

    @property
    def headline(self) -> str:
        """The verdict as people read it; a pass with steps left out says so."""
        if not self.omitted or self.verdict != Verdict.PASS:
            return self.verdict
        left = len(STEPS) - len(self.omitted)
        return f"{self.verdict} ({left} of {len(STEPS)}; omitted: {', '.join(self.omitted)})"


def run_lane(options: RunOptions, observer: Observer) -> Outcome:
    """Runs a lane to its seal.

    Raises:
        RefusedError: the lane, its plan or the bundle is refused; nothing was begun.
        UndecidedError: the bundle or a node's folder cannot be written; the run can be resumed.
    """
    try:
        opened = _open(options)
    except OSError as error:
        place = options.resume or options.bundles
        raise UndecidedError(f"{place}: cannot be opened: {error.strerror or error}") from error
    try:
        return _run(options, Guarded(observer), opened)
    except (OSError, SealError) as error:
        way_out = f"`orch run --resume {opened.folder}` can, when that is mended"
        cause = error.strerror if isinstance(error, OSError) else error
        raise UndecidedError(f"{opened.folder}: cannot go on: {cause or error}; {way_out}") from error
    finally:
        opened.close()


def _run(options: RunOptions, observer: Observer, opened: bundles.Opened) -> Outcome:
    bundle = opened.folder
    view = View(bundle)
    if opened.stream.sealed and not verify(bundle):
        return _outcome(
            view, sha256_file(bundle / QUALIFICATION), tracking.finish(options.tracker_url, observer, bundle)
        )
    session = _session(options, observer, opened, view)
    if not opened.stream.sealed and view.attempt(record.NAME) is None:
        _make_roots(session, opened)
    tracking.begin(options.tracker_url, session)
    for event in opened.stream.events if not opened.resumed else ():
        observer.event(event)
    with _signals(session):
        crashed = "" if opened.stream.sealed else run_steps(session)
        return _finish(options, session, view, crashed)


def _make_roots(session: Session, opened: bundles.Opened) -> None:
    """Makes the run's own folder on every node, or refuses; a run that never began leaves no bundle."""
    try:
        for name, node in session.nodes.items():
            node.make_root(session.roots[name], session.owner)
    except RemoteError as error:
        if not opened.resumed:
            shutil.rmtree(opened.folder)
        raise RefusedError(
            [Refusal(Label.REMOTE_ROOT, str(error), Where(str(session.roots[name])))]
        ) from error


def _open(options: RunOptions) -> bundles.Opened:
    if options.resume is not None:
        opened = bundles.reopen(options.resume)
        begun = opened.stream.events[0].data
        if begun["remote_root"] != _remote_root() and not opened.stream.sealed:
            opened.close()
            message = (
                f"the run has its folder elsewhere (got {_remote_root()}, expected {begun['remote_root']})"
            )
            hint = "TMPDIR names the place"
            raise RefusedError([Refusal(Label.REMOTE_ROOT, message, Where(str(options.resume)), hint=hint)])
        recorded = begun["content_sha256"]
        # content is what programs are built from; once they are built, they are in the bundle
        is_built = View(options.resume).attempt(build.NAME) is not None
        if recorded != options.content.digest and not is_built:
            opened.close()
            digests = f"(got {options.content.digest}, expected {recorded})"
            message = f"content has changed since this run began {digests}"
            raise RefusedError([Refusal(Label.FILE_UNREADABLE, message, Where(str(options.content.root)))])
        return opened
    if options.lane is None:
        raise UsageError("a lane file or --resume is needed")
    if options.pods != LOCAL:
        message = f"nodes over SSH are not built yet (got {options.pods}, expected {LOCAL}: this machine)"
        hint = f"`--pods {LOCAL}` runs all roles here"
        raise RefusedError([Refusal(Label.PODS_UNSUPPORTED, message, Where(options.pods), hint=hint)])
    lane = read_lane(options.lane)
    if refusals := options.secrets.refusals(files(options.lane)):
        raise RefusedError(refusals)
    first: dict[str, object] = {
        "content_sha256": options.content.digest,
        "keep": options.keep,
        "owner": options.owner,
        "pods": options.pods,
        "remote_root": _remote_root(),
    }
    return bundles.create(options.bundles, lane, plan_of(lane.run), first)


def _remote_root() -> str:
    """The folder for this user's runs on this machine, as the journal has it."""
    try:
        root = str(own_root())
        root.encode()
    except (OSError, UnicodeEncodeError) as error:
        message = f"there is no temporary folder to run in (got {error}, expected one; TMPDIR names it)"
        raise RefusedError([Refusal(Label.REMOTE_ROOT, message, Where("TMPDIR"))]) from error
    return root


def _session(options: RunOptions, observer: Observer, opened: bundles.Opened, view: View) -> Session:
    begun = opened.stream.events[0]
    lane = view.lane
    duration = lane.limits.duration_s
    # a clock that was set back does not lengthen the limit
    elapsed = max(0.0, (datetime.now(UTC) - datetime.fromisoformat(begun.time)).total_seconds())
    session = Session(
        bundle=opened.folder,
        view=view,
        stream=opened.stream,
        observer=observer,
        content_root=options.content.root,
        cache=options.cache,
        nodes={LOCAL: Local(LOCAL)},
        placement=view.wiring.placement,
        roots={LOCAL: PurePosixPath(begun.data["remote_root"]) / opened.stream.source},
        owner=begun.data["owner"],
        limits=Limits(None if duration is None else time.monotonic() + duration - elapsed, duration),
        keep=begun.data["keep"],
        secrets=options.secrets,
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


def _finish(options: RunOptions, session: Session, view: View, crashed: str) -> Outcome:
    steps = judge_steps(view)
    verdict = worst(step.verdict for step in steps)
    sealed = seal(session.bundle, session.stream, str(verdict), qualification(view, steps))
    session.observer.event(session.stream.events[-1])
    proves = tracking.finish(options.tracker_url, session.observer, session.bundle)
    return _outcome(view, sealed, proves, steps, crashed)


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
        plan=view.plan.digest,
        system=view.plan.system_digest,
        steps=steps,
        omitted=view.lane.omit,
        updates=view.lane.updates,
        losses=_losses(view),
        final_loss=_final_loss(view),
        proves=proves,
        crashed=crashed,
    )


def _final_loss(view: View) -> float | None:
    if view.command is not None:
        return None  # a program of the user's own says nothing of the version that it ends with
    launched = view.launch("evaluate", "fresh")
    try:
        said = loads(launched.roles[view.roles[0]].stdout) if launched else None
        return from_bits(said["results"]["loss"]) if said else None
    except (ValueError, LookupError, TypeError):
        return None  # not what a role says; its judge has said so


def _losses(view: View) -> tuple[float, ...]:
    launched = view.launch("uninterrupted", "run-1")
    if launched is not None and view.command is not None:
        return tuple(line.value for line in lines_of(launched, view.roles[0]))
    return tuple(from_bits(line.loss) for line in launched.roles[view.roles[0]].progress) if launched else ()
