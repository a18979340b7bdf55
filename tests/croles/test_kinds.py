"""Owners of coordinates: their programs yield what the reference yields, and go on from each other."""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import islice, product
from pathlib import Path

import pytest
from covering import each
from role_bench import ARM, CONTENT, X86, Setup
from role_plans import Case, roles

from orchestrator.admit.memory import demand
from orchestrator.build.compile import Made, build_program
from orchestrator.build.elf import describe
from orchestrator.oracle.kinds import reference_of
from orchestrator.oracle.reference import Version, bits, held_words, state_digest
from orchestrator.plan.derive import derive
from orchestrator.plan.model import Role
from orchestrator.plan.topology import Topology, star
from orchestrator.spec.read import read_run

RUNS = CONTENT / "specs" / "runs"
KINDS = ("coordinates", "correlations")
TOPOLOGIES = [star(1), star(2), star(4), Topology("hierarchy", 7, 2)]


def shipped(name: str, topology: Topology) -> Case:
    planned = derive(read_run(RUNS / f"{name}.yaml"))
    who = roles(*((f"r{index}", 0) for index in range(topology.roles)))
    return Case(replace(planned.plan, roles=who, topology=topology), tuple(planned.words))


def expected_lines(case: Case, updates: int) -> dict[str, list[str]]:
    versions = list(islice(reference_of(case.plan, array("d", case.words)).versions(), updates))
    return {role.name: [line(case, role, each) for each in versions] for role in case.plan.roles}


def line(case: Case, role: Role, version: Version) -> str:
    held = state_digest(held_words(case.plan, role, version.words))
    return f"{version.number} {held} {bits(version.results['loss'])}"


@pytest.mark.parametrize(("topology", "name"), each(3, product(TOPOLOGIES, KINDS)), ids=str)
def test_programs_yield_what_the_reference_yields(bench, name: str, topology: Topology) -> None:
    case = shipped(name, topology)
    run = bench(case)
    ends = run.run(Setup(target=3))
    assert {role: run.progress(role) for role in ends} == expected_lines(case, 3)
    held = {role: end.results["held"] for role, end in ends.items()}
    assert sum(held.values()) == case.plan.system.state_words


@pytest.mark.parametrize("name", ["coordinates", "correlations"])
def test_every_other_owner_on_the_other_instruction_set(bench, name: str) -> None:
    case = shipped(name, star(2))
    run = bench(case)
    ends = run.run(Setup(target=2, targets={"r1": ARM}))
    assert {role: run.progress(role) for role in ends} == expected_lines(case, 2)


@pytest.mark.parametrize("name", ["coordinates", "correlations"])
def test_a_checkpoint_goes_on_with_other_owners(bench, tmp_path: Path, name: str) -> None:
    """What owners of coordinates predict is bracketed by owners: the others go on in their own order."""
    case = shipped(name, star(4))
    run = bench(case)
    run.run(Setup(target=2))
    middle = reference_of(case.plan, array("d", case.words)).at(2)
    other = shipped(name, Topology("hierarchy", 7, 2))
    resumed = bench(other)
    ends = resumed.run(Setup(target=4, epoch=2, restore=run.published(2, tmp_path / "set")))
    version = next(islice(reference_of(other.plan, array("d", other.words)).versions(middle), 1, None))
    for role in other.plan.roles:
        held = state_digest(held_words(other.plan, role, version.words))
        assert ends[role.name].results["state"] == held
    if name == "correlations":  # nothing in it depends on owners
        assert version.words == reference_of(case.plan, array("d", case.words)).at(4).words


@pytest.mark.parametrize("name", ["coordinates", "correlations"])
def test_evaluation_changes_nothing(bench, tmp_path: Path, name: str) -> None:
    case = shipped(name, star(2))
    run = bench(case)
    run.run(Setup(target=2))
    again = bench(case)
    ends = again.run(Setup(mode="evaluate", target=0, epoch=2, restore=run.published(2, tmp_path / "set")))
    reference = reference_of(case.plan, array("d", case.words))
    loss = bits(reference.evaluate(reference.at(2))["loss"])
    assert {end.results["results"]["loss"] for end in ends.values()} == {loss}


@pytest.mark.parametrize("name", ["coordinates", "correlations"])
@pytest.mark.parametrize("role", [0, 3, 6])
def test_the_demand_is_what_the_program_holds(program_cache: Path, name: str, role: int) -> None:
    plan = shipped(name, Topology("hierarchy", 7, 2)).plan
    program = build_program(plan, plan.roles[role], Made(X86), CONTENT, program_cache)
    held = describe(program.data)["memory_bytes"]
    asked = demand(plan, plan.roles[role])
    assert held <= asked.static <= held + 128 * 1024
    assert sum(line.bytes for line in asked.lines) == asked.static  # there is no read replica
