"""Programs of device roles as files: how they are linked, what tells them from others, their size."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import role_cards
import role_plans
from role_bench import CONTENT, X86
from test_sizes import LARGEST, cell

from orchestrator.admit.memory import demand
from orchestrator.build.compile import INTERPRETERS, TARGETS, Made, Program, build_program, build_programs
from orchestrator.build.elf import describe, verify
from orchestrator.build.rebuild import differences

PLAN = role_plans.star().plan
ROLE = PLAN.roles[0]


def made(target: str = X86, profile=role_cards.PROFILE) -> Made:
    return Made(target, profile)


@pytest.fixture(params=TARGETS)
def program(request, program_cache) -> Program:
    return build_program(PLAN, ROLE, made(request.param), CONTENT, program_cache)


def checks(data: bytes, target: str, *, is_device: bool | None) -> list[str]:
    problems = verify(data, target=target, plan=PLAN.digest, role=ROLE.name, is_device=is_device)
    return [problem.check for problem in problems]


def test_it_takes_two_functions_of_its_node_and_gives_none(program: Program) -> None:
    assert checks(program.data, program.target, is_device=True) == []
    assert checks(program.data, program.target, is_device=None) == []
    assert describe(program.data)["linking"] == {
        "interpreters": (INTERPRETERS[program.target],),
        "needed": ("libdl.so.2",),
        "imports": ("dlopen", "dlsym"),
        "exports": (),
    }


def test_neither_kind_is_taken_for_the_other(program: Program, program_cache) -> None:
    host = build_program(PLAN, ROLE, Made(program.target), CONTENT, program_cache)
    assert set(checks(program.data, program.target, is_device=False)) == {"static"}
    assert set(checks(host.data, program.target, is_device=True)) == {"dynamic"}
    assert describe(host.data)["linking"] is None
    for text in (b"libcuda", b"nvidia", b"device-", b".version", b"dlopen"):
        assert text not in host.data


SPOILED = {
    "another library": (b"libdl.so.2\0", b"libdl.so.3\0"),
    "another function": (b"\0dlsym\0", b"\0dlsyn\0"),
    "another loader": (b"/ld-linux", b"/LD-linux"),
}


@pytest.mark.parametrize("what", SPOILED)
def test_what_else_it_would_depend_on_is_found(program: Program, what: str) -> None:
    before, after = SPOILED[what]
    assert program.data.count(before) == 1
    assert checks(program.data.replace(before, after), program.target, is_device=True) == ["dynamic"]


def test_changed_bytes_raise_nothing(program: Program) -> None:
    chance = random.Random(7)
    for _ in range(200):
        hostile = bytearray(program.data)
        for _ in range(chance.randint(1, 3)):
            at = chance.choice((chance.randrange(0x340), chance.randrange(len(hostile))))
            hostile[at] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
        verify(bytes(hostile), target=program.target, plan=PLAN.digest, is_device=None)
        describe(bytes(hostile))


def test_a_program_is_of_its_profile(program_cache) -> None:
    """Product, capability and the drivers that are known: each other one is another program."""
    profile = role_cards.PROFILE
    capability = {
        **profile.facts,
        "compute_capability": replace(profile.facts["compute_capability"], value="8.9"),
    }
    drivers = {
        **profile.facts,
        "memory_total": replace(profile.facts["memory_total"], value={"560.35": 2**33}),
    }
    others = [
        replace(profile, product="NVIDIA GeForce RTX 3070 Ti"),
        replace(profile, facts=capability),
        replace(profile, facts=drivers),
    ]
    pairings = [(ROLE, made(profile=each)) for each in (profile, *others)]
    programs = build_programs(PLAN, pairings, CONTENT, program_cache)
    assert len({program.sha256 for program in programs}) == len(programs)
    built_again = differences(PLAN, pairings[:1], {ROLE.name: programs[0].data}, CONTENT)
    assert built_again == ()


@pytest.mark.parametrize("how", ["replicated", "all"])
def test_the_largest_is_small(how: str, program_cache) -> None:
    plan = cell("two-layer", "hierarchy", how)
    pairings = [(plan.roles[0], made(target)) for target in TARGETS]
    for program in build_programs(plan, pairings, CONTENT, program_cache):
        assert program.size <= LARGEST, program.target
        assert describe(program.data)["memory_bytes"] <= demand(plan, plan.roles[0]).static
