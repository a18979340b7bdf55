"""Kernels that orch renders, done by the stand-in: the reference's bits, and no race among threads."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from role_bench import CONTENT
from role_narrow import narrow
from role_plans import Case
from standin_bench import CARD, Driver
from standin_learner import advance, card

from orchestrator.oracle.kinds import reference_of
from orchestrator.oracle.reference import held_words
from orchestrator.plan.derive import derive
from orchestrator.plan.ownership import Ownership
from orchestrator.plan.topology import star
from orchestrator.spec.read import read_run

UPDATES = 2
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


def check(driver: Driver, case: Case) -> None:
    plan, words = case.plan, array(case.plan.system.word.typecode, case.words)
    driver.begin()
    cards = [card(driver, plan, role, words) for role in plan.roles]
    reference = reference_of(plan, words)
    before = reference.initial()
    for version in islice(reference.versions(), UPDATES):
        held, results = advance(cards, before)
        expected = [held_words(plan, role, version.words) for role in plan.roles]
        assert [words.tobytes() for words in held] == [words.tobytes() for words in expected]
        assert results == list(version.results.values())
        before = version
    (calls,) = driver.calls()
    assert (calls.error, calls.races) == (0, 0)


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
