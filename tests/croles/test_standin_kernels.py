"""Kernels that orch renders, done by the stand-in: the reference's bits, and no race among threads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from role_bench import CONTENT
from role_narrow import narrow
from role_plans import Case
from standin_bench import CARD, Driver
from standin_learner import check

from orchestrator.plan.derive import derive
from orchestrator.plan.ownership import Ownership
from orchestrator.plan.topology import star
from orchestrator.spec.read import read_run

SHIPPED = (
    "samples",
    "diabetes",
    "adam-gpu",
    "logistic",
    "hierarchy",
    "coordinates",
    "correlations",
    "two-layer",
)


@pytest.mark.parametrize("run", SHIPPED)
def test_the_reference_s_bits(driver: Callable[..., Driver], run: str) -> None:
    planned = derive(read_run(CONTENT / "specs" / "runs" / f"{run}.yaml"))
    check(driver((CARD,)), Case(planned.plan, tuple(planned.words)))


@pytest.mark.parametrize("run", ["adam", "two-layer", "coordinates", "correlations"])
def test_the_reference_s_bits_in_binary32(driver: Callable[..., Driver], tmp_path: Path, run: str) -> None:
    specs = tmp_path / "specs"
    specs.mkdir()
    check(
        driver((CARD,)), narrow(specs, run, star(3), Ownership("partitioned", "partitioned", "partitioned"))
    )
