"""What became of a matrix, as commands report it."""

from __future__ import annotations

from dataclasses import dataclass

from evidence.verify import read_qualification
from orchestrator.qualify.checks import StepOutcome, Verdict
from orchestrator.qualify.matrix.view import MatrixView
from orchestrator.qualify.outcome import Outcome, simulated


@dataclass(frozen=True, kw_only=True)
class MatrixOutcome(Outcome):
    """What became of a matrix; its steps are cells, not applicable where a plan is not admitted."""

    @property
    def headline(self) -> str:
        """The verdict as people read it: how many of how many cells passed."""
        refused = sum(step.verdict is Verdict.NOT_APPLICABLE for step in self.steps)
        passed = sum(step.verdict is Verdict.PASS for step in self.steps)
        parts = [f"{passed} of {len(self.steps) - refused + len(self.omitted)} cells passed"]
        parts += [f"{refused} not admitted"] if refused else []
        parts += simulated(self.grade) if self.verdict == Verdict.PASS else ()
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
