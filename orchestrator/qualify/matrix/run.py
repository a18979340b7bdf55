"""Runs a matrix: every admitted cell a lane of its own, one after the other; then the whole is sealed.

The stream is the journal, as a lane's is: a cell whose seal is in it never runs twice, and an open
one is taken up as `orch run --resume` takes up a lane.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from evidence.bundle import seal
from evidence.digest import sha256_file
from evidence.event import Event
from evidence.listing import QUALIFICATION
from evidence.verify import verify
from orchestrator.build.compile import Made
from orchestrator.errors import UndecidedError
from orchestrator.plan.model import Plan
from orchestrator.qualify import bundles, holder, limits, tracking
from orchestrator.qualify.checks import StepOutcome, worst
from orchestrator.qualify.journal import Guarded, Journal, Observer
from orchestrator.qualify.lane import resumable, run_lane, signals
from orchestrator.qualify.limits import Limits, StopLaneError
from orchestrator.qualify.matrix.ahead import Ahead, Pairings
from orchestrator.qualify.matrix.judge import judge_cell, judge_cells, qualification
from orchestrator.qualify.matrix.opening import open_matrix
from orchestrator.qualify.matrix.outcome import MatrixOutcome, outcome_of
from orchestrator.qualify.matrix.view import MatrixView, place_of
from orchestrator.qualify.options import RunOptions
from orchestrator.qualify.outcome import LaneOutcome
from orchestrator.qualify.view import LOCAL, View
from orchestrator.spec.matrix import Cell


def run_matrix(options: RunOptions, observer: Observer) -> MatrixOutcome:
    """Runs a matrix to its seal.

    Raises:
        RefusedError: the matrix, a plan that it needs or the bundle is refused; nothing was begun.
        RemoteError: this machine refuses, by label, before a cell was begun.
        UndecidedError: the bundle or the work folder cannot be written; the run can be resumed.
    """
    opened = open_matrix(options)
    try:
        with resumable(opened.folder):
            return _Run(options, opened, Guarded(observer)).to_its_end()
    finally:
        opened.close()


class _Run:
    """One controller's turn at a matrix."""

    def __init__(self, options: RunOptions, opened: bundles.Opened, observer: Observer) -> None:
        self._options = options
        self._opened = opened
        self._observer = observer
        self._view = MatrixView(opened.folder)
        self._journal = Journal(opened.stream, observer, options.secrets)
        begun = datetime.fromisoformat(opened.stream.events[0].time)
        declared = limits.declared(self._view.spec.limits, begun, None)
        self._allowed = Limits(declared, stop_requested=options.stop)
        self._judged: dict[Cell, StepOutcome] = {}
        self._crashed = ""

    def to_its_end(self) -> MatrixOutcome:
        """Runs what is left to run, and seals."""
        view, stream = self._view, self._opened.stream
        if stream.sealed and not verify(view.bundle):
            proves = tracking.finish(self._options.tracker_url, self._observer, view.bundle)
            return outcome_of(view, sha256_file(view.bundle / QUALIFICATION), proves, judge_cells(view))
        if not stream.sealed:
            self._journal.emit(holder.BEGAN, view.spec.name, holder.here())
        tracking.begin(self._options.tracker_url, view, view.spec.name, view.plan, self._observer)
        with signals(self._allowed):
            if not stream.sealed:
                self._cells()
            return self._seal()

    def _cells(self) -> None:
        """Every cell that is not done, until the lane is stopped."""
        view = self._view
        if any(event.type == "orch.lane.stopped" for event in self._opened.stream.events):
            return
        roles = {cell.name: view.spec.roles(cell) for cell in view.admitted}
        done = [name for name in roles if self._seal_of(name)]
        self._journal.emit("cells.planned", view.spec.name, {"roles": roles, "done": done}, durable=False)
        left = tuple(cell for cell in view.admitted if cell.name not in done)
        with Ahead(self._programs(left), self._options.content.root, self._options.cache) as ahead:
            for cell in left:
                # a cell that is open is ended in any case: its roles may run
                reason = "" if view.bundles(cell) else self._stopped_before(cell, ahead)
                reason = reason or self._cell(cell)
                if reason:
                    self._journal.emit("lane.stopped", view.spec.name, {"reason": reason})
                    self._observer.note(reason)
                    return

    def _programs(self, cells: tuple[Cell, ...]) -> dict[str, tuple[Plan, Pairings]]:
        """Every program of cells that have no bundle yet."""
        view, found = self._view, dict[str, tuple[Plan, Pairings]]()
        for cell in (each for each in cells if not view.bundles(each)):
            plan, used = view.plan.plans[cell], view.spec.shapes[cell.shape].made_for
            swap = view.spec.swap_of(cell)
            swapped = [(swap.get(target, target), swap.get(device or "", device)) for target, device in used]
            pairs = (
                *zip(plan.roles, used, strict=True),
                *zip(plan.roles, swapped if swap else (), strict=False),
            )
            found[cell.name] = (plan, tuple((role, self._made(*pair)) for role, pair in pairs))
        return found

    def _made(self, target: str, device: str | None) -> Made:
        return Made(target, self._view.spec.profiles[device] if device else None)

    def _stopped_before(self, cell: Cell, ahead: Ahead) -> str:
        """Why the next cell is not begun; empty if it is."""
        try:
            self._allowed.check()
            ahead.wait(cell.name, self._allowed.check)
        except StopLaneError as stop:
            return str(stop)
        return ""

    def _cell(self, cell: Cell) -> str:
        """Runs one cell, or goes on with it; why the lane is to end with it, if it is."""
        view = self._view
        about = {"cell": cell.name}
        if not self._journalled("cell.started", cell.name):
            self._journal.emit("cell.started", cell.name, about)
        begun = view.bundles(cell)
        place = place_of(view.spec, cell, str(view.events()[0].data["pods"]))
        options = replace(
            self._options,
            lane=view.folder(cell) / "lane.yaml",
            bundles=view.folder(cell),
            pods=None if place == LOCAL else Path(place),
            resume=begun[0] if begun else None,
            tracker_url=None,
            owner=str(view.events()[0].data["owner"]),
            keep=bool(view.events()[0].data["keep"]),
            limits=self._allowed.limits,
            only=(),
        )
        try:
            outcome = run_lane(options, _Inside(self._observer, cell))
        except UndecidedError as error:
            way_out = f"`orch run --resume {view.bundle}` goes on with the matrix"
            raise UndecidedError(f"{cell.name}: {error}; {way_out}") from error
        said = {"seal": outcome.seal, "verdict": outcome.verdict}
        self._journal.emit("cell.finished", cell.name, {**about, **said})
        self._crashed = self._crashed or self._crash_of(outcome)
        self._judged[cell] = judged = judge_cell(view, cell)
        self._journal.emit("cell.judged", cell.name, {**about, "verdict": str(judged.verdict)})
        return _stopped(outcome.bundle)

    def _crash_of(self, outcome: LaneOutcome) -> str:
        if not outcome.crashed:
            return ""
        return (outcome.bundle / outcome.crashed).relative_to(self._view.bundle).as_posix()

    def _journalled(self, kind: str, cell: str) -> bool:
        events = self._opened.stream.events
        return any(event.type == f"orch.{kind}" and event.data["cell"] == cell for event in events)

    def _seal_of(self, cell: str) -> str | None:
        """The seal that the journal has of a cell's bundle."""
        for event in self._opened.stream.events:
            if event.type == "orch.cell.finished" and event.data["cell"] == cell:
                return str(event.data["seal"])
        return None

    def _seal(self) -> MatrixOutcome:
        view = self._view
        self._journal.close_to_nodes()
        steps = tuple(self._judged.get(cell) or judge_cell(view, cell) for cell in view.cells)
        verdict = worst(step.verdict for step in steps)
        sealed = seal(view.bundle, self._opened.stream, str(verdict), qualification(view, steps))
        self._observer.event(self._opened.stream.events[-1])
        proves = tracking.finish(self._options.tracker_url, self._observer, view.bundle)
        return outcome_of(view, sealed, proves, steps, self._crashed)


def _stopped(bundle: Path) -> str:
    """Why a cell's lane was stopped from outside its steps; empty if it was not."""
    for event in View(bundle).events():
        if event.type == "orch.lane.stopped":
            return str(event.data["reason"])
    return ""


@dataclass(frozen=True)
class _Inside:
    """Tells who watches the matrix what goes on in a cell, under the cell's name."""

    observer: Observer
    cell: Cell

    def event(self, event: Event) -> None:
        """What a cell's journal says is told by its judgement alone."""

    def progress(self, step: str, launch: str, versions: Mapping[str, tuple[int, float]]) -> None:
        """The step and launch that run now."""
        self.observer.progress(f"{self.cell.name}: {step}", launch, versions)

    def note(self, text: str) -> None:
        """Says of which cell it is."""
        self.observer.note(f"{self.cell.name}: {text}")
