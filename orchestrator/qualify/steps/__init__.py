"""The eight steps, one module each: `act` leaves files and events, `judge` is a pure function of those files.

A step module has `NAME`, `DOES` and `CHECKS` for people, `act(launcher)` and `judge(view)`; a step that may
not apply to a lane has `not_applicable(lane)` too.
"""

from __future__ import annotations

from types import ModuleType
from typing import Protocol, cast

from orchestrator.qualify.checks import Check
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.steps import (
    build,
    evaluate,
    host_shadow,
    preflight,
    record,
    refusals,
    split,
    uninterrupted,
)
from orchestrator.qualify.view import View
from orchestrator.spec.lane import LaneSpec


class Step(Protocol):
    """What a step module satisfies."""

    NAME: str
    DOES: str
    CHECKS: tuple[str, ...]

    def act(self, launcher: Launcher) -> None:
        """Runs the step's experiments; leaves files and events.

        Raises:
            AttemptLostError: this attempt cannot go on.
            StopLaneError: the lane is to end now.
            RefusedError, RemoteError: a machine refuses; the step fails with that label.
        """
        ...

    def judge(self, view: View) -> tuple[Check, ...]:
        """What the step's files show."""
        ...


_MODULES: tuple[ModuleType, ...] = (
    preflight,
    build,
    refusals,
    uninterrupted,
    split,
    host_shadow,
    evaluate,
    record,
)
ALL: tuple[Step, ...] = cast("tuple[Step, ...]", _MODULES)


def not_applicable(step: Step, lane: LaneSpec) -> str:
    """Why a step does not apply to a lane; empty if it does."""
    reason = getattr(step, "not_applicable", None)
    return str(reason(lane)) if reason else ""
