"""What programs of the shipped systems take: a file of at most 32 KiB, and no more memory than is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice, product

import pytest
from covering import some
from role_bench import CONTENT, X86

from orchestrator.admit.memory import demand
from orchestrator.build.compile import TARGETS, Made, build_programs
from orchestrator.build.elf import describe
from orchestrator.plan.derive import derive
from orchestrator.plan.model import Plan, Role
from orchestrator.plan.topology import Topology
from orchestrator.qualify.gate.programs import one_of_each_architecture
from orchestrator.spec.cells import run_of
from orchestrator.spec.matrix import MatrixSpec
from orchestrator.spec.read import read_any_lane, read_device, read_native_run

LARGEST = 32 * 1024
RUNS = [
    path
    for path in sorted((CONTENT / "specs" / "runs").glob("*.yaml"))
    if path.stem != "own-script"  # a program of the user's own
]
ON_CARDS = [path for path in RUNS if "device:" in path.read_text()]
PROFILES = one_of_each_architecture(
    read_device(path) for path in (CONTENT / "specs" / "devices").glob("*.yaml")
)
LARGE_SYSTEMS = ("adam", "logistic", "two-layer")


@cache
def matrix() -> MatrixSpec:
    found = read_any_lane(CONTENT / "lanes" / "matrix.yaml")
    assert isinstance(found, MatrixSpec)
    return found


def cell(system: str, shape: str, how: str) -> Plan:
    """Of the shipped matrix."""
    (found,) = (
        each for each in matrix().cells if (each.system, each.shape, each.ownership) == (system, shape, how)
    )
    run, refusals = run_of(matrix(), found)
    assert run is not None, refusals
    return derive(run).plan


def kinds(plan: Plan) -> Iterator[Role]:
    """A role of every sort: the root, an inner one, one without children, one without samples, the last."""
    some = tuple(islice(plan.roles, 20))
    inner = [role for role in some[1:] if plan.topology.children(role.index)]
    outer = [role for role in some if not plan.topology.children(role.index)]
    idle = [role for role in some if role.samples == 0]
    last = plan.roles[len(plan.roles) - 1]
    found = (some[0], *inner[:1], *outer[:1], *idle[:1], last)
    yield from {role.index: role for role in found}.values()


def made_for(target: str, plan: Plan) -> list[tuple[Role, Made]]:
    return [(role, Made(target)) for role in kinds(plan)]


def held_within_what_is_asked(plan: Plan, kept, pairs: list[tuple[Role, Made]]) -> None:
    for (role, made), program in zip(pairs, build_programs(plan, pairs, CONTENT, kept), strict=True):
        said = role.name, made.target, made.device and made.device.name
        assert program.size <= LARGEST, said
        assert describe(program.data)["memory_bytes"] <= demand(plan, role, made.device).static, said


@pytest.mark.parametrize("target", some(TARGETS, lambda target: target == X86))
@pytest.mark.parametrize("path", [path for path in RUNS if path not in ON_CARDS], ids=lambda path: path.stem)
def test_programs_of_a_run(path, target, program_cache):
    plan = derive(read_native_run(path)).plan
    held_within_what_is_asked(plan, program_cache, made_for(target, plan))


@pytest.mark.parametrize("path", ON_CARDS, ids=lambda path: path.stem)
def test_programs_of_a_run_on_cards(path, program_cache):
    planned = derive(read_native_run(path))
    pairs = [
        (role, Made(planned.targets[role.name], device))
        for role in planned.plan.roles
        if (device := planned.devices[role.name]) is not None
    ]
    held_within_what_is_asked(planned.plan, program_cache, pairs)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_a_program_for_a_card_of_every_architecture(profile, program_cache):
    plan = derive(read_native_run(CONTENT / "specs" / "runs" / "independent.yaml")).plan
    held_within_what_is_asked(plan, program_cache, [(plan.roles[0], Made(TARGETS[0], profile))])


@pytest.mark.parametrize(
    ("system", "how", "target"),
    some(
        product(LARGE_SYSTEMS, ("replicated", "all"), TARGETS),
        lambda at: at[1] == "all" and (at[2] == X86 or at[0] == "two-layer"),
    ),
)
def test_programs_of_a_large_system(system, how, target, program_cache):
    plan = cell(system, "hierarchy", how)
    held_within_what_is_asked(plan, program_cache, made_for(target, plan))


def test_programs_of_many_declared_ranges(program_cache):
    """The tables of ranges are beside the 32 KiB, and asked for."""
    plan = cell("wide-adam", "hierarchy", "all")
    count = 4000
    roles = tuple(replace(plan.roles[0], index=at, name=f"r{at}", samples=0) for at in range(count))
    width = plan.system.parameters[0].size
    dealt = tuple(range(width * at // count, width * (at + 1) // count) for at in range(count))
    scattered = tuple(dealt[at * 1237 % count] for at in range(count))  # neighbours are of other subtrees
    many = replace(
        plan,
        roles=roles,
        topology=Topology("hierarchy", count, 16),
        ownership=replace(plan.ownership, ranges=scattered),
    )
    (program,) = build_programs(many, [(many.roles[0], Made(X86))], CONTENT, program_cache)
    held = describe(program.data)["memory_bytes"]
    tables = 16 * (count + 17)
    assert program.size <= LARGEST + tables
    assert demand(many, many.roles[0]).static - tables < held <= demand(many, many.roles[0]).static
