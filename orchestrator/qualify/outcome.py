"""What became of a lane, as commands report it: read from a sealed bundle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence.canonical import loads
from evidence.verify import read_qualification
from orchestrator.oracle.reference import from_bits
from orchestrator.qualify.checks import STEPS, StepOutcome, Verdict
from orchestrator.qualify.command.checks import lines_of
from orchestrator.qualify.grade import SIMULATED, grade_of
from orchestrator.qualify.judge import judge_steps, numerics_of
from orchestrator.qualify.view import View


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a lane of any sort.

    Attributes:
        bundle: its folder.
        steps: its steps or cells, in order, without those left out.
        omitted: step or cell -> reason.
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

    def as_json(self) -> dict[str, Any]:
        """What every program may ask of a run."""
        return {
            "verdict": self.verdict,
            "grade": self.grade,
            "bundle": str(self.bundle),
            "seal": self.seal,
            "lane": self.lane,
            "run_id": self.run_id,
            "plan": self.plan,
            "system": self.system,
            "omitted": dict(self.omitted),
            "proves": list(self.proves),
        }


@dataclass(frozen=True, kw_only=True)
class LaneOutcome(Outcome):
    """What became of a lane over one run.

    Attributes:
        updates: how many the lane asks for.
        losses: of the uninterrupted run, as its root's progress says: what each update read, so before it.
        final_loss: of the last version, as the evaluation's root says; None if none was made.
        numerics: the numerical contract that the verdict is about; None of a user's own program.
    """

    updates: int
    losses: tuple[float, ...]
    final_loss: float | None
    numerics: str | None = None

    @property
    def headline(self) -> str:
        """The verdict as people read it; a pass with steps left out, or within a bound alone, says so."""
        if self.verdict != Verdict.PASS:
            return self.verdict
        left = len(STEPS) - len(self.omitted)
        said = [f"{left} of {len(STEPS)}", f"omitted: {', '.join(self.omitted)}"] if self.omitted else []
        said += (*approximately(self.numerics), *simulated(self.grade))
        return f"{self.verdict} ({'; '.join(said)})" if said else self.verdict


def approximately(numerics: str | None) -> tuple[str, ...]:
    """What a pass must say of a contract that is no exact one: `approximate, relative 1e-09`."""
    _, _, bound = (numerics or "").partition(", ")
    return (f"approximate, {bound}",) if bound else ()


def simulated(grade: str) -> tuple[str, ...]:
    """What a pass must say of evidence in which no card was."""
    return ("simulated: no card was there",) if grade == SIMULATED else ()


def outcome_of(
    view: View,
    sealed: str,
    proves: tuple[str, ...],
    steps: tuple[StepOutcome, ...] | None = None,
    crashed: str = "",
) -> LaneOutcome:
    """The outcome of a sealed bundle.

    Args:
        view: the bundle.
        sealed: its seal.
        proves: tracker items for which it counts.
        steps: as judged, if they were.
        crashed: a log file of a fault of ours.
    """
    steps = judge_steps(view) if steps is None else steps
    recorded = read_qualification(view.bundle)
    return LaneOutcome(
        bundle=view.bundle,
        lane=view.lane.name,
        run_id=str(recorded["run_id"]),
        verdict=str(recorded["verdict"]),
        grade=grade_of(view),
        seal=sealed,
        plan=view.plan.digest,
        system=view.plan.system_digest,
        steps=steps,
        numerics=numerics_of(view),
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
    try:
        return (
            tuple(from_bits(line.loss) for line in launched.roles[view.roles[0]].progress) if launched else ()
        )
    except ValueError:
        return ()  # likewise
