"""The static half of a gate: what can be said of a lane with no machine at hand, each thing a check.

Knows the stages that a lane passes before anything is sent anywhere; must not reach a node. The first check
that does not pass is the last: what would follow is about something else.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from orchestrator.admit.host import admit
from orchestrator.build.compile import Made, Program, build_programs
from orchestrator.build.elf import verify
from orchestrator.build.rebuild import differences
from orchestrator.errors import OrchError, RefusedError, UndecidedError
from orchestrator.plan.command import command_plan
from orchestrator.plan.derive import Planned, derive
from orchestrator.plan.model import Plan, Role
from orchestrator.qualify.checks import Check, StepOutcome, Verdict, equal, worst
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.program import CommandRunSpec
from orchestrator.spec.read import read_lane
from orchestrator.spec.run import RunSpec

Value = TypeVar("Value")

_NOT_OURS = "the program is the user's own: nothing is compiled"


@dataclass(frozen=True)
class Built:
    """A program that was built: whose, and what for."""

    role: Role
    made: Made
    program: Program

    def __str__(self) -> str:
        return f"{self.role.name} for {self.made.device.name if self.made.device else self.made.target}"

    def as_json(self) -> dict[str, object]:
        """What `--json` says of it."""
        return {
            "role": self.role.name,
            "target": self.made.target,
            "device": self.made.device.name if self.made.device else None,
            "program_sha256": self.program.sha256,
            "size": self.program.size,
        }


Group = tuple[Built, ...]
"""Programs of one start: each role once."""


@dataclass(frozen=True)
class StaticHalf:
    """What the static half says of one lane.

    Attributes:
        path: the lane's file.
        lane: as read; None where it is refused.
        outcome: the checks, as of a step that is called like the lane.
        programs: what was built, as paired and then as swapped; of a user's own program none.
    """

    path: Path
    lane: LaneSpec | None
    outcome: StepOutcome
    programs: Group

    @property
    def grade(self) -> str:
        """What its evidence is to be of on machines, at least."""
        return "physical" if any(each.made.device for each in self.programs) else "host"


def static_half(path: Path, content_root: Path) -> StaticHalf:
    """Validates, plans and admits a lane, builds its programs twice, and looks at each.

    Args:
        path: the lane's file.
        content_root: the folder that holds `roles/`.
    """
    began, notes = time.monotonic(), _Notes(path)
    lane: LaneSpec | None = None
    groups: tuple[Group, ...] = ()
    with suppress(_EndError):
        lane = notes.of("validate", "the lane and all that it names", lambda: read_lane(path))
        if isinstance(lane.run, CommandRunSpec):
            _command(notes, lane.run)
        else:
            plan = _planned(notes, lane.run).plan
            groups = _built(notes, plan, _wanted(lane, lane.run), content_root)
            _looked_at(notes, plan, groups, content_root)
    name = lane.name if lane else path.stem
    return StaticHalf(
        path, lane, notes.outcome(name, began), tuple(each for group in groups for each in group)
    )


def _wanted(lane: LaneSpec, run: RunSpec) -> tuple[tuple[Made, ...], ...]:
    """What programs are made for, in role order: as paired, and as swapped at the resume."""
    own = tuple(Made(pairing.target, pairing.device) for pairing in run.pairings)
    swapped = tuple(Made(lane.swap.get(made.target, made.target), made.device) for made in own)
    return (own, swapped) if lane.swap else (own,)


def _command(notes: _Notes, run: CommandRunSpec) -> None:
    digest = command_plan(run).digest
    notes.put(equal("plan", (str(run.path),), digest, digest))
    notes.put(Check("build", Verdict.NOT_APPLICABLE, (), "every program", _NOT_OURS))


def _planned(notes: _Notes, run: RunSpec) -> Planned:
    def admitted() -> None:
        if refusals := admit(planned.plan, run, {}, None):
            raise RefusedError(refusals)

    planned = notes.of("plan", "a plan", lambda: derive(run))
    notes.of("admit", "every role fits what it may use", admitted)
    return planned


def _built(
    notes: _Notes, plan: Plan, wanted: tuple[tuple[Made, ...], ...], content_root: Path
) -> tuple[Group, ...]:
    """Every program, by the compiler and from no cache."""

    def group(each: tuple[Made, ...]) -> Group:
        pairings = tuple(zip(plan.roles, each, strict=True))
        programs = build_programs(plan, pairings, content_root, cache=None)
        return tuple(Built(*pair, program) for pair, program in zip(pairings, programs, strict=True))

    return notes.of("build", "every program", lambda: tuple(group(each) for each in wanted))


def _looked_at(notes: _Notes, plan: Plan, groups: tuple[Group, ...], content_root: Path) -> None:
    """Each as a file of its plan and role; all as what comes of the same sources in another folder."""
    faults = [
        f"{each}: {problem}"
        for group in groups
        for each in group
        for problem in verify(
            each.program.data, target=each.made.target, plan=plan.digest, role=each.role.name
        )
    ]
    fine = f"whole executables of plan {plan.digest[:16]}"
    notes.put(equal("elf", (), fine, "; ".join(faults) or fine))
    others = notes.of("rebuild", "every program again", lambda: _others(plan, groups, content_root))
    notes.put(equal("rebuild-identity", (), "the same bytes", "; ".join(others) or "the same bytes"))


def _others(plan: Plan, groups: tuple[Group, ...], content_root: Path) -> tuple[str, ...]:
    """Which programs are not the same when they are built again, from a copy of the sources."""
    with tempfile.TemporaryDirectory(prefix="orch-gate-") as folder:
        shutil.copytree(content_root / "roles", Path(folder, "roles"))
        return tuple(
            other
            for group in groups
            for other in differences(
                plan,
                [(each.role, each.made) for each in group],
                {each.role.name: each.program.data for each in group},
                Path(folder),
            )
        )


class _EndError(Exception):
    """A check did not pass."""


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
            verdict = Verdict.UNKNOWN if isinstance(error, UndecidedError) else Verdict.FAIL
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
