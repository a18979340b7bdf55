"""Roles connected to each other: the same bits by every schedule, the same labels where one fails."""

from __future__ import annotations

import signal
from dataclasses import replace
from itertools import product

import pytest
import role_plans
import role_truth
from covering import some
from role_bench import ARM, X86, Setup

from orchestrator.plan.model import Field
from orchestrator.plan.tree import Assignment, Binary, Word

MESH = {"*": {"mesh": True}}
COUNTS = (1, 0, 2, 0, 1, 0, 1, 0, 0)
"""Samples of up to nine roles: some have none."""
ENDLESS = 2**40

WIDE = 60_001


def wide():
    """So many words that roles add them up in slices: each coordinate moves on its own."""
    narrow = role_plans.SCALAR
    times = Binary("*", Binary("*", Word("w", None), Word("x", 0)), Word("y", 0))
    step = Binary("-", Word("w", None), Binary("*", Word("rate", 0), Word("mean_g", None)))
    return replace(
        narrow,
        name="wide",
        parameters=(Field("w", WIDE, tuple(1 / (1 + at) for at in range(WIDE))),),
        contributions=(Field("g", WIDE),),
        contribution=(Assignment("g", WIDE, times, local=False),),
        update=(Assignment("w", WIDE, step, local=False),),
        evaluate=(Assignment("loss", 1, Binary("*", Word("w", 0), Word("x", 0)), local=False),),
    )


def among(count, fan_out):
    counts = (*COUNTS[: count - 1], 5 - sum(COUNTS[: count - 1]))
    return role_plans.among(role_plans.MOMENTUM, counts, fan_out)


TREES = [(2, 0), (3, 0), (4, 2), (5, 2), (6, 3), (7, 0), (8, 2), (9, 3)]
"""Of every number of roles one, of every fan-out two or more."""


@pytest.mark.parametrize(("count", "fan_out"), some(product(range(2, 10), (0, 2, 3)), lambda at: at in TREES))
def test_a_mesh_has_the_bits_of_the_order(bench, count, fan_out):
    run = bench(among(count, fan_out))
    role_truth.check(run, run.run(Setup(target=3, publish_at=2, bind=MESH)), 3)


@pytest.mark.parametrize(
    ("mesh", "fan_out"), some(product((False, True), (0, 2)), lambda at: at[0] == (at[1] == 0))
)
def test_wide_words(bench, fan_out, mesh):
    case = role_plans.case(
        wide(), role_plans.PAIR_WORDS, role_plans.roles(*((f"r{at}", int(at < 3)) for at in range(5)))
    )
    if fan_out:
        shape = role_plans.topology.Topology("hierarchy", 5, fan_out)
        case = replace(case, plan=replace(case.plan, topology=shape))
    run = bench(case)
    role_truth.check(run, run.run(Setup(target=2, bind=MESH if mesh else {})), 2)


def test_instruction_sets_that_differ(bench):
    run = bench(among(4, 2))
    targets = {"role1": ARM, "role2": X86, "role3": ARM}
    role_truth.check(run, run.run(Setup(target=3, targets=targets, bind=MESH)), 3)


def test_an_evaluation_over_a_mesh(bench, tmp_path):
    first = bench(among(5, 2))
    first.run(Setup(target=2, bind=MESH))
    restore = first.published(2, tmp_path / "two")
    outcomes = bench(among(5, 2)).run(Setup(target=2, mode="evaluate", epoch=2, restore=restore, bind=MESH))
    assert {outcome.results["version"] for outcome in outcomes.values()} == {2}


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_an_address_of_either_family(bench, address):
    run = bench(among(4, 0))
    role_truth.check(run, run.run(Setup(target=2, address=address, bind=MESH)), 2)


@pytest.mark.parametrize("victim", ["role0", "role1", "role4"])
@pytest.mark.parametrize("fan_out", [0, 2])
def test_a_role_that_is_killed(bench, fan_out, victim):
    run = bench(among(5, fan_out))
    run.place(Setup(target=ENDLESS, bind=MESH))
    run.start()
    for role in run.case.plan.roles:
        run.wait_for(role.name, "progress", size=1000)
    run.processes[victim].kill()
    outcomes = run.ends()
    assert outcomes.pop(victim).code == -signal.SIGKILL
    assert {outcome.label for outcome in outcomes.values()} == {"peer-lost"}
    assert run.committed() == []


@pytest.mark.parametrize("victim", ["role0", "role3"])
def test_a_role_that_is_stopped(bench, victim):
    run = bench(among(4, 0))
    run.place(Setup(target=ENDLESS, round_ms=1500, bind=MESH))
    run.start()
    for role in run.case.plan.roles:
        run.wait_for(role.name, "progress", size=1000)
    run.processes[victim].send_signal(signal.SIGSTOP)
    others = [role.name for role in run.case.plan.roles if role.name != victim]
    labels = {run.end(name).label for name in others}
    assert "round-deadline" in labels
    assert labels <= {"round-deadline", "peer-lost"}
    run.processes[victim].send_signal(signal.SIGCONT)
    assert run.end(victim).label in {"round-deadline", "peer-lost"}
    assert run.committed() == []


def test_roles_that_do_not_agree_on_a_mesh(bench):
    run = bench(among(3, 0))
    run.place(Setup(bind={"role1": {"mesh": True}}))
    run.start()
    labels = run.labels()
    assert labels["role0"] == labels["role1"] == "frame-round"
    assert run.committed() == []


def test_a_mesh_of_a_role_that_never_comes(bench):
    run = bench(among(3, 0))
    run.place(Setup(connect_ms=1500, bind=MESH))
    run.start("role0", "role1")
    assert set(run.labels().values()) <= {"connect-deadline", "peer-lost"}
    assert run.committed() == []
