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
from orchestrator.errors import OrchError, RefusedError, UndecidedError
from orchestrator.plan.command import command_plan
from orchestrator.plan.derive import Planned, derive
from orchestrator.plan.model import Plan, Role
from orchestrator.qualify.checks import Check, StepOutcome, Verdict, equal, worst
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.program import CommandRunSpec
from orchestrator.spec.read import read_lane
from orchestrator.spec.run import RunSpec

Pairings = tuple[tuple[Role, Made], ...]
Value = TypeVar("Value")

_NOT_OURS = "the program is the user's own: nothing is compiled"


@dataclass(frozen=True)
class Built:
    """A program that was built, and what for."""

    program: Program
    made: Made

    def __str__(self) -> str:
        return f"{self.program.role} for {self.made.device.name if self.made.device else self.made.target}"

    def as_json(self) -> dict[str, object]:
        """What `--json` says of it."""
        return {
            "role": self.program.role,
            "target": self.made.target,
            "device": self.made.device.name if self.made.device else None,
            "program_sha256": self.program.sha256,
            "size": self.program.size,
        }


@dataclass(frozen=True)
class StaticHalf:
    """What the static half says of one lane.

    Attributes:
        path: the lane's file.
        lane: as read; None where it is refused.
        outcome: the checks, as of a step that is called like the lane.
        programs: what was built, in role order; of a user's own program none.
    """

    path: Path
    lane: LaneSpec | None
    outcome: StepOutcome
    programs: tuple[Built, ...]

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
    built: tuple[Built, ...] = ()
    with suppress(_EndError):
        lane = notes.of("validate", "the lane and all that it names", lambda: read_lane(path))
        if isinstance(lane.run, CommandRunSpec):
            _command(notes, lane.run)
        else:
            planned = _planned(notes, lane.run)
            built = _built(notes, planned.plan, pairings(lane, lane.run, planned), content_root)
            _looked_at(notes, planned.plan, built, content_root)
    return StaticHalf(path, lane, notes.outcome(lane.name if lane else path.stem, began), built)


def pairings(lane: LaneSpec, run: RunSpec, planned: Planned) -> Pairings:
    """Every role with all that a program of it is made for: as paired, and as swapped at the resume."""
    own = tuple(
        (role, Made(pairing.target, pairing.device))
        for role, pairing in zip(planned.plan.roles, run.pairings, strict=True)
    )
    swapped = tuple((role, Made(lane.swap.get(made.target, made.target), made.device)) for role, made in own)
    return own + (swapped if lane.swap else ())


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


def _built(notes: _Notes, plan: Plan, wanted: Pairings, content_root: Path) -> tuple[Built, ...]:
    """Every program, by the compiler and from no cache."""
    programs = notes.of(
        "build", f"{len(wanted)} programs", lambda: build_programs(plan, wanted, content_root, None)
    )
    return tuple(Built(program, made) for program, (_, made) in zip(programs, wanted, strict=True))


def _looked_at(notes: _Notes, plan: Plan, built: tuple[Built, ...], content_root: Path) -> None:
    faults = [
        f"{each}: {problem}"
        for each in built
        for problem in verify(
            each.program.data, target=each.made.target, plan=plan.digest, role=each.program.role
        )
    ]
    fine = f"{len(built)} whole executables of plan {plan.digest[:16]}"
    notes.put(equal("elf", (), fine, "; ".join(faults) or fine))
    again = notes.of("rebuild", "the same programs", lambda: _again(plan, built, content_root))
    other = [
        f"{one} has another digest from another folder (got {two.sha256}, expected {one.program.sha256})"
        for one, two in zip(built, again, strict=True)
        if one.program.sha256 != two.sha256
    ]
    notes.put(equal("rebuild-identity", (), "the same bytes", "; ".join(other) or "the same bytes"))


def _again(plan: Plan, built: tuple[Built, ...], content_root: Path) -> tuple[Program, ...]:
    """The programs once more, from a copy of the sources in another folder."""
    roles = {role.name: role for role in plan.roles}
    with tempfile.TemporaryDirectory(prefix="orch-gate-") as folder:
        shutil.copytree(content_root / "roles", Path(folder, "elsewhere", "roles"))
        wanted = [(roles[each.program.role], each.made) for each in built]
        return build_programs(plan, wanted, Path(folder, "elsewhere"), None)


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
