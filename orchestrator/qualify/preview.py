"""What every step of a lane will do and check, before any of it is done."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.plan.command import CommandPlan
from orchestrator.plan.derive import plan_of
from orchestrator.plan.model import Plan
from orchestrator.qualify.command.series import SERIES
from orchestrator.qualify.steps import ALL, not_applicable
from orchestrator.spec.lane import LaneSpec

_COMPARING = ("refusals", "uninterrupted", "split", "evaluate")  # steps that hold words against the reference


@dataclass(frozen=True)
class StepPreview:
    """A step that is to come.

    Attributes:
        name: of the step.
        does: in a few words.
        checks: what its judge will look at.
        skipped: why it will not run: `omitted: REASON` or `not applicable: REASON`; empty if it will.
    """

    name: str
    does: str
    checks: tuple[str, ...]
    skipped: str


def preview(lane: LaneSpec) -> tuple[StepPreview, ...]:
    """The eight steps in order, those that will not run with their reason."""
    plan = plan_of(lane.run)
    found = []
    for step in ALL:
        reason = not_applicable(step, lane)
        skipped = f"not applicable: {reason}" if reason else ""
        if step.NAME in lane.omit:
            skipped = f"omitted: {lane.omit[step.NAME]}"
        series = SERIES.get(step.NAME) if isinstance(plan, CommandPlan) else None
        does, shows = (series.does, series.shows) if series else (step.DOES, step.CHECKS)
        if isinstance(plan, Plan) and plan.system.bound is not None and step.NAME in _COMPARING:
            shows += (
                f"all of this within {plan.system.bound}; two runs, and the order, need not be the same",
            )
        found.append(StepPreview(step.NAME, does, shows, skipped))
    return tuple(found)
