"""What became of a matrix, as commands report it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evidence.verify import read_qualification
from orchestrator.qualify.checks import StepOutcome, Verdict
from orchestrator.qualify.matrix.view import MatrixView


@dataclass(frozen=True)
class MatrixOutcome:
    """What became of a matrix.

    Attributes:
        bundle: its folder.
        steps: the cells, in order, without those left out; not applicable where a plan is not admitted.
        omitted: cell -> reason.
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
    proves: tuple[str, ...] = ()
    crashed: str = ""

    @property
    def headline(self) -> str:
        """The verdict as people read it: how many of how many cells passed."""
        refused = sum(step.verdict is Verdict.NOT_APPLICABLE for step in self.steps)
        passed = sum(step.verdict is Verdict.PASS for step in self.steps)
        parts = [f"{passed} of {len(self.steps) - refused + len(self.omitted)} cells passed"]
        parts += [f"{refused} not admitted"] if refused else []
        return f"{self.verdict} ({'; '.join(parts)})"


def outcome_of(
    view: MatrixView,
    sealed: str,
    proves: tuple[str, ...],
    steps: tuple[StepOutcome, ...],
    crashed: str = "",
) -> MatrixOutcome:
    """The outcome of a sealed matrix; see `MatrixOutcome`."""
    recorded = read_qualification(view.bundle)
    return MatrixOutcome(
        bundle=view.bundle,
        lane=view.spec.name,
        run_id=str(recorded["run_id"]),
        verdict=str(recorded["verdict"]),
        grade=str(recorded["grade"]),
        seal=sealed,
        plan=view.plan.digest,
        system=view.plan.system_digest,
        steps=steps,
        omitted=view.omitted,
        proves=proves,
        crashed=crashed,
    )
