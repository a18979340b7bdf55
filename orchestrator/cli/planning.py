"""What `plan` and `build` do alike: read a lane or run spec, and build one program per role."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.arguments import cache_folder
from orchestrator.cli.output import complain, counted

if TYPE_CHECKING:
    from orchestrator.build.compile import Program
    from orchestrator.errors import Refusal
    from orchestrator.plan.derive import Planned
    from orchestrator.spec.lane import LaneSpec
    from orchestrator.spec.matrix import MatrixSpec
    from orchestrator.spec.program import CommandRunSpec
    from orchestrator.spec.run import RunSpec


def read_lane_or_run(path: Path) -> tuple[LaneSpec | None, RunSpec | CommandRunSpec]:
    """Read a file of either kind; a run spec has no lane.

    Raises:
        RefusedError: it is refused, or of another kind.
    """
    from orchestrator.errors import Label, Refusal, RefusedError, Where
    from orchestrator.spec.read import kind_of, read_lane, read_run

    kind = kind_of(path)
    if kind == "run/v1":
        return None, read_run(path)
    if kind not in ("lane/v1", None):  # None: what is wrong with the file is the reader's to say
        message = f"the file is of another kind (got `{kind}`, expected lane/v1 or run/v1)"
        raise RefusedError([Refusal(Label.KIND_UNKNOWN, message, Where(str(path)), "orch")])
    lane = read_lane(path)
    return lane, lane.run


def find_matrix(path: Path) -> MatrixSpec | None:
    """Read a file if it is a matrix's; None where it is not, or is no lane at all.

    Raises:
        RefusedError: it is a lane, and refused.
    """
    from orchestrator.spec.read import kind_of, read_any_lane

    if kind_of(path) != "lane/v1":
        return None
    from orchestrator.spec.matrix import MatrixSpec  # a run alone starts without it

    found = read_any_lane(path)
    return found if isinstance(found, MatrixSpec) else None


def admission(planned: Planned, spec: RunSpec, lane: LaneSpec | None) -> tuple[Refusal, ...]:
    """What is refused before any machine is known, of a run or of all parts of a lane."""
    from orchestrator.admit.unplaced import admit_unplaced

    return admit_unplaced(spec, planned, *((planned.swapped(lane),) if lane and lane.swap else ()))


def build_all(
    planned: Planned, spec: RunSpec, lane: LaneSpec | None, content_root: Path
) -> tuple[Program, ...]:
    """Admit, then build every role's program, in role order.

    Raises:
        RefusedError: admission or the compiler refuses, or there are too many roles; then nothing was built.
    """
    from orchestrator.build.compile import Made, build_programs
    from orchestrator.errors import Label, Refusal, RefusedError
    from orchestrator.spec.nodesets import MAX_NAMES

    if (roles := len(planned.plan.roles)) > MAX_NAMES:
        message = f"there are too many roles to build for (got {roles}, expected at most {MAX_NAMES})"
        raise RefusedError([Refusal(Label.VALUE_RANGE, message, spec.where("roles"), "roles")])
    if refusals := admission(planned, spec, lane):
        raise RefusedError(refusals)
    complain(f"building {counted(len(planned.plan.roles), 'program')}")
    pairings = [
        (role, Made(planned.targets[role.name], planned.devices[role.name])) for role in planned.plan.roles
    ]
    return build_programs(planned.plan, pairings, content_root, cache_folder())
