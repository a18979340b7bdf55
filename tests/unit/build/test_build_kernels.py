"""Kernels of declared systems: their entries, their threads, the instructions that they are made of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.build.kernels import kernels
from orchestrator.build.ptx import OPERATIONS
from orchestrator.plan.derive import derive
from orchestrator.plan.model import Plan
from orchestrator.spec.read import read_run

RUNS = Path(__file__).resolve().parents[3] / "specs" / "runs"


def shipped(name: str) -> Plan:
    return derive(read_run(RUNS / f"{name}.yaml")).plan


@pytest.mark.parametrize(
    ("run", "threads"),
    [
        ("samples", (0, 1, 2, (1,))),
        ("diabetes", (0, 100, 11, (10,))),
        ("adam", (0, 100, 11, (10, 10))),
        ("wide-adam", (0, 9, 5002, (5000, 5000))),
        ("coordinates", (442, 442, 6, (5,))),
        ("correlations", (0, 442, 1, (2,))),
    ],
)
def test_entries_and_threads(run: str, threads: tuple[object, ...]) -> None:
    plan = shipped(run)
    made = kernels(plan, plan.roles[0], "8.6")
    assert (made.forward, made.terms, made.sums, made.update) == threads
    names = re.findall(r"\.entry (\w+)", made.ptx)
    updates = [f"update_{number}" for number in range(len(made.update))]
    assert names == [*(["forward"] if made.forward else []), "terms", "sums", *updates]


@pytest.mark.parametrize("run", ["logistic", "samples", "coordinates", "correlations"])
def test_every_instruction_is_one_of_those_documented(run: str) -> None:
    plan = shipped(run)
    text = kernels(plan, plan.roles[0], "8.6").ptx
    found = set(re.findall(r"^(?:@p\d+ )?([a-z][\w.]*)(?: .*)?;$", text, re.MULTILINE))
    assert len(re.findall(r"^[^.].*;$", text, re.MULTILINE)) > len(found)
    kind = f"f{8 * plan.system.word.size}"
    assert found <= {f"{each}{kind[1:]}" if each.endswith(".f") else each for each in OPERATIONS}
    assert f"mul.rn.{kind}" in found


def test_a_card_is_given_the_newest_target_that_it_has() -> None:
    plan = shipped("samples")
    for capability, head in {
        "7.5": (".version 6.3", ".target sm_75"),
        "8.6": (".version 7.1", ".target sm_86"),
        "10.3": (".version 8.6", ".target sm_100"),
        "12.0": (".version 8.7", ".target sm_120"),
    }.items():
        assert tuple(kernels(plan, plan.roles[0], capability).ptx.splitlines()[:2]) == head
    with pytest.raises(ValueError, match=r"got 7\.0, expected 7\.5 or later"):
        kernels(plan, plan.roles[0], "7.0")
