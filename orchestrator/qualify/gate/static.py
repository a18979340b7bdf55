"""The static half of a gate: what can be said of a lane with no machine at hand, each thing a check.

Knows the stages that a lane passes before anything is sent anywhere; must not reach a node. The first check
that does not pass is the last: what would follow is about something else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from orchestrator.admit.unplaced import admit_unplaced
from orchestrator.build.assemble import Report
from orchestrator.errors import Label, OrchError, RefusedError, UndecidedError
from orchestrator.plan.command import command_plan
from orchestrator.plan.derive import Planned, derive
from orchestrator.plan.model import Plan
from orchestrator.qualify.checks import Check, StepOutcome, Verdict, equal, worst
from orchestrator.qualify.gate.programs import Group, assembled, build, faults, others, wanted
from orchestrator.spec.device import DeviceSpec
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.program import CommandRunSpec
from orchestrator.spec.read import read_lane
from orchestrator.spec.run import RunSpec

Value = TypeVar("Value")

_NOT_OURS = "the program is the user's own: nothing is compiled"


@dataclass(frozen=True)
class StaticHalf:
    """What the static half says of one lane.

    Attributes:
        path: the lane's file.
        lane: as read; None where it is refused.
        outcome: the checks, as of a step that is called like the lane.
        programs: what was built, as paired and then as swapped; of a user's own program none.
        kernels: by device role's program what its kernels take of the card.
    """

    path: Path
    lane: LaneSpec | None
    outcome: StepOutcome
    programs: Group
    kernels: Mapping[str, Report]

    @property
    def grade(self) -> str:
        """What its evidence is to be of on machines, at least."""
        return "physical" if any(each.made.device for each in self.programs) else "host"


def static_half(path: Path, content_root: Path, profiles: Sequence[DeviceSpec] = ()) -> StaticHalf:
    """Validates, plans and admits a lane, builds its programs twice, and looks at each.

    Args:
        path: the lane's file.
        content_root: the folder that holds `roles/`.
        profiles: of cards that device roles are to be built for besides those that they are paired with.
    """
    began, notes = time.monotonic(), _Notes(path)
    lane: LaneSpec | None = None
    built: Group = ()
    reports: Mapping[str, Report] = {}
    with suppress(_EndError):
        lane = notes.of("validate", "the lane and all that it names", lambda: read_lane(path))
        if isinstance(lane.run, CommandRunSpec):
            _command(notes, lane.run)
        else:
            planned = _planned(notes, lane, lane.run)
            plan, pairings = planned.plan, wanted(planned, lane, profiles)
            groups = notes.of(
                "build", "every program", lambda: tuple(build(plan, each, content_root) for each in pairings)
            )
            built = tuple(each for group in groups for each in group)
            _looked_at(notes, plan, groups, content_root)
            reports = _assembled(notes, plan, built)
    name = lane.name if lane else path.stem
    return StaticHalf(path, lane, notes.outcome(name, began), built, reports)


def _command(notes: _Notes, run: CommandRunSpec) -> None:
    digest = command_plan(run).digest
    notes.put(equal("plan", (str(run.path),), digest, digest))
    notes.put(Check("build", Verdict.NOT_APPLICABLE, (), "every program", _NOT_OURS))


def _planned(notes: _Notes, lane: LaneSpec, run: RunSpec) -> Planned:
    def planned_for() -> Planned:
        planned = derive(run)
        planned.swapped(lane)  # which may be refused
        return planned

    def admitted() -> None:
        parts = (planned, planned.swapped(lane)) if lane.swap else (planned,)
        if refusals := admit_unplaced(run, *parts):
            raise RefusedError(refusals)

    planned = notes.of("plan", "a plan", planned_for)
    notes.of("admit", "every role fits what it may use", admitted)
    return planned


def _looked_at(notes: _Notes, plan: Plan, groups: tuple[Group, ...], content_root: Path) -> None:
    """Each as a file; all as what comes of the same sources in another folder."""
    found = tuple(fault for group in groups for each in group for fault in faults(plan, each))
    fine = f"whole executables of plan {plan.digest[:16]}"
    notes.put(equal("elf", (), fine, "; ".join(found) or fine))
    found = notes.of("rebuild", "every program again", lambda: others(plan, groups, content_root))
    notes.put(equal("rebuild-identity", (), "the same bytes", "; ".join(found) or "the same bytes"))


def _assembled(notes: _Notes, plan: Plan, built: Group) -> Mapping[str, Report]:
    """The kernels of device roles as machine code, which takes NVIDIA's assembler, and no card."""
    if not any(each.made.device for each in built):
        return {}
    return notes.of("ptx", "no spills, and nothing contracted", lambda: assembled(plan, built))


class _EndError(Exception):
    """A check did not pass."""


def _is_undecided(error: OrchError) -> bool:
    """Whether it says nothing of the lane: a tool that is not there has refused nothing."""
    if isinstance(error, RefusedError):
        return all(refusal.label is Label.ASSEMBLER_MISSING for refusal in error.refusals)
    return isinstance(error, UndecidedError)


class _Notes:
    """The checks of one lane, until one does not pass."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._checks: list[Check] = []

    def of(self, name: str, expected: str, act: Callable[[], Value]) -> Value:
        """Gives what a stage gives; a check says that it did, or by which label it refused."""
        try:
            value = act()
        except OrchError as error:
            verdict = Verdict.UNKNOWN if _is_undecided(error) else Verdict.FAIL
            self.put(Check(name, verdict, (str(self._path),), expected, str(error)))
            raise _EndError from error
        self.put(Check(name, Verdict.PASS, (str(self._path),), expected, expected))
        return value

    def put(self, check: Check) -> None:
        """Takes a check down; raises `_EndError` after one that fails or is unknown."""
        self._checks.append(check)
        if check.verdict in (Verdict.FAIL, Verdict.UNKNOWN):
            raise _EndError

    def outcome(self, name: str, began: float) -> StepOutcome:
        """All checks as one; the reason is what the last one found."""
        last = self._checks[-1]
        verdict = worst(check.verdict for check in self._checks)
        reason = f"{last.name}: {last.got}" if verdict is not Verdict.PASS else ""
        return StepOutcome(name, verdict, 1, reason, tuple(self._checks), time.monotonic() - began)
