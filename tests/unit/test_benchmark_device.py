"""The least that a plan implies is never more than what is done, and is what it is said to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.device import Counts, least
from orchestrator.build.counted import counted
from orchestrator.build.kernels import kernels
from orchestrator.plan.derive import derive
from orchestrator.spec.read import read_native_run

ROOT = Path(__file__).resolve().parents[2]
RUNS = [path for path in sorted((ROOT / "specs" / "runs").glob("*.yaml")) if "device:" in path.read_text()]


def an_update(plan, role, made) -> Counts:
    one, two = (counted(plan, role, made, mode="train", updates=updates) for updates in (1, 2))
    return Counts(
        two.launches - one.launches, two.to_device - one.to_device, two.from_device - one.from_device
    )


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_no_role_does_with_less_than_its_plan_implies(path: Path):
    plan = derive(read_native_run(path)).plan
    for role in plan.roles:
        done, needed = an_update(plan, role, kernels(plan, role, "8.6")), least(plan, role)
        assert done.launches >= needed.launches
        assert done.to_device >= needed.to_device
        assert done.from_device >= needed.from_device


def test_the_least_of_the_smallest_pair_is_its_mean_its_sums_and_its_state():
    plan = derive(read_native_run(ROOT / "specs" / "runs" / "samples-gpu.yaml")).plan
    assert least(plan, plan.roles[0]) == Counts(launches=2, to_device=8, from_device=24)
