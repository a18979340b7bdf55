"""Admission: a role against its own memory, a node's roles against its quota, and what is not known."""

from __future__ import annotations

from pathlib import Path

import pytest
from declared import VECTOR, VECTOR_ROWS, planned, run_text

from orchestrator.admit.host import admit
from orchestrator.admit.memory import demand
from orchestrator.errors import Label, Refusal
from orchestrator.plan.model import Plan
from orchestrator.spec.read import read_run
from orchestrator.spec.run import RunSpec

ROLES = {"root": 2, "idle": 0, "worker": 3}
APART = {"root": "a", "idle": "b", "worker": "c"}
TOGETHER = dict.fromkeys(ROLES, "a")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return planned(tmp_path, VECTOR, VECTOR_ROWS, ROLES).plan


def run_with(folder: Path, **memory: int) -> RunSpec:
    said = ", ".join(f"{role}: {size}B" for role, size in memory.items())
    (folder / "run.yaml").write_text(run_text(ROLES, memory=f"{{{said}}}"), encoding="utf-8")
    return read_run(folder / "run.yaml")


def needs(plan: Plan) -> dict[str, int]:
    return {role.name: demand(plan, role).total for role in plan.roles}


def short(refusals: tuple[Refusal, ...]) -> list[tuple[Label, str]]:
    return [(refusal.label, refusal.key) for refusal in refusals]


def test_own_memory_is_held_while_planning(tmp_path: Path, plan: Plan) -> None:
    need = needs(plan)
    assert admit(plan, run_with(tmp_path, **need), {}, None) == ()
    run = run_with(tmp_path, root=need["root"], worker=need["worker"] - 1)
    (refusal,) = admit(plan, run, {}, None)
    assert short((refusal,)) == [(Label.CAPACITY_EXCEEDED, "memory.worker")]
    assert refusal.message.endswith(
        f"(got a demand of {need['worker']} bytes, expected at most {need['worker'] - 1})"
    )
    lines = (tmp_path / "run.yaml").read_text(encoding="utf-8").splitlines()
    assert lines[refusal.where.line - 1].startswith("memory:")


def test_quotas_are_open_only_while_no_node_is_known(tmp_path: Path, plan: Plan) -> None:
    run = run_with(tmp_path)
    assert admit(plan, run, {}, None) == ()
    unknown = admit(plan, run, APART, {"a": None, "b": 1 << 30, "c": None})
    assert short(unknown) == [
        (Label.CAPACITY_UNKNOWN, "memory.root"),
        (Label.CAPACITY_UNKNOWN, "memory.worker"),
    ]


def test_each_role_against_its_own_node(tmp_path: Path, plan: Plan) -> None:
    need, run = needs(plan), run_with(tmp_path)
    exact = {"a": need["root"], "b": need["idle"], "c": need["worker"]}
    assert admit(plan, run, APART, exact) == ()
    assert short(admit(plan, run, APART, {**exact, "b": need["idle"] - 1})) == [
        (Label.CAPACITY_EXCEEDED, "memory.idle")
    ]


def test_the_roles_of_a_node_are_summed_in_role_order(tmp_path: Path, plan: Plan) -> None:
    need, run = needs(plan), run_with(tmp_path)
    total = sum(need.values())
    assert admit(plan, run, TOGETHER, {"a": total}) == ()
    (refusal,) = admit(plan, run, TOGETHER, {"a": total - 1})
    assert short((refusal,)) == [(Label.CAPACITY_EXCEEDED, "memory.worker")]
    assert f"(got {total} bytes with the roles before it, expected at most {total - 1})" in refusal.message
    assert len(admit(plan, run, TOGETHER, {"a": 0})) == 3


def test_what_a_role_asks_for_is_set_aside_whole(tmp_path: Path, plan: Plan) -> None:
    need = needs(plan)
    run = run_with(tmp_path, root=need["root"] + 1000)
    quota = {"a": sum(need.values()) + 999}
    assert short(admit(plan, run, TOGETHER, quota)) == [(Label.CAPACITY_EXCEEDED, "memory.worker")]
    assert admit(plan, run, TOGETHER, {"a": sum(need.values()) + 1000}) == ()


def test_every_refusal_is_told_once(tmp_path: Path, plan: Plan) -> None:
    run = run_with(tmp_path, root=1)
    found = admit(plan, run, APART, {"a": None, "b": None, "c": 1})
    assert short(found) == [
        (Label.CAPACITY_EXCEEDED, "memory.root"),
        (Label.CAPACITY_UNKNOWN, "memory.idle"),
        (Label.CAPACITY_EXCEEDED, "memory.worker"),
    ]
