"""All refusals of some files at once: what they say wrongly, and what no plan realizes of what they mean."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from orchestrator.errors import Refusal, RefusedError
from orchestrator.plan.derive import derive, plan_of
from orchestrator.plan.matrix import matrix_plan
from orchestrator.plan.programs import type_programs
from orchestrator.plan.rounding import rounding_refusals
from orchestrator.spec import read
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.matrix import MatrixSpec
from orchestrator.spec.run import RunSpec


def validate(paths: Iterable[Path]) -> tuple[Refusal, ...]:
    """Every refusal of these files and of the files that they name, each once, in file order."""
    found: dict[Refusal, None] = {}
    for path in paths:
        refusals = read.validate((path,)) or _plan_refusals(path)
        found.update(dict.fromkeys(refusals))
    return tuple(found)


def _plan_refusals(path: Path) -> tuple[Refusal, ...]:
    """What only typing and planning can find, in a file that its own room accepts."""
    kind = read.kind_of(path)
    try:
        if kind == "lane/v1":
            _plan(read.read_any_lane(path))
        elif kind == "run/v1":
            plan_of(read.read_run(path))
        elif kind == "system/v1":
            spec = read.read_system(path)
            return (*rounding_refusals(spec), *type_programs(spec)[1])
    except RefusedError as refused:
        return refused.refusals
    return ()


def _plan(lane: LaneSpec | MatrixSpec) -> None:
    if isinstance(lane, MatrixSpec):
        matrix_plan(lane)
    elif isinstance(lane.run, RunSpec):
        derive(lane.run).swapped(lane)
    else:
        plan_of(lane.run)
