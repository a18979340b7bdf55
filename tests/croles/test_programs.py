"""Programs as files: the same bytes from anywhere, small, sound, and bound without being rebuilt."""

from __future__ import annotations

import hashlib
import random
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import role_plans
from one_binding import ONE_BINDING
from role_bench import ARM, CONTENT, X86, altered_content

from orchestrator.build.bind import bind, split
from orchestrator.build.binding import Binding
from orchestrator.build.compile import TARGETS, Made, Program, build_program, build_programs
from orchestrator.build.elf import describe, verify
from orchestrator.build.rebuild import differences
from orchestrator.errors import Label, RefusedError
from orchestrator.plan.model import Field

CASES = {"pair": role_plans.pair, "star": role_plans.star, "single": role_plans.single}
LARGEST = 32 * 1024


@pytest.fixture(params=TARGETS)
def program(request, program_cache) -> Program:
    plan = role_plans.star().plan
    return build_program(plan, plan.roles[0], Made(request.param), CONTENT, program_cache)


def a_binding(plan, **change) -> Binding:
    return replace(ONE_BINDING, plan=plan.digest, **change)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_every_program_is_small_and_sound(name, target, program_cache):
    plan = CASES[name]().plan
    for role in plan.roles:
        made = build_program(plan, role, Made(target), CONTENT, program_cache)
        assert made.size <= LARGEST
        assert verify(made.data, target=target, plan=plan.digest, role=role.name) == ()
        told = describe(made.data)
        assert (told["role"], told["role_index"]) == (role.name, role.index)
        assert (told["plan"], told["system"], told["binding"]) == (plan.digest, plan.system.digest, None)


def test_memory_grows_with_the_plan_and_the_file_does_not(program_cache):
    small = role_plans.single()
    system = replace(
        small.plan.system,
        state=(*small.plan.system.state, Field("spare", 10**6, (0.0,) * 10**6)),
    )
    large = replace(small.plan, system=system)
    one, other = (
        build_program(plan, plan.roles[0], Made(X86), CONTENT, program_cache) for plan in (small.plan, large)
    )
    grown = describe(other.data)["memory_bytes"] - describe(one.data)["memory_bytes"]
    assert grown < 8 * 10**6 + 512 * 1024  # the words, and windows on them
    assert abs(other.size - one.size) < 512


def test_the_same_bytes_come_from_any_folder_and_cache(program, tmp_path, monkeypatch):
    content = tmp_path / "a copy of the content"
    shutil.copytree(CONTENT / "roles", content / "roles")
    plan = role_plans.star().plan
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for cache in (None, tmp_path / "cache", tmp_path / "another cache"):
        again = build_program(plan, plan.roles[0], Made(program.target), content, cache)
        assert again.data == program.data


def test_no_path_of_any_folder_is_in_a_program(program):
    for path in (CONTENT, Path.home(), Path(tempfile.gettempdir()), Path("native"), Path("roles")):
        assert f"{path}/".encode() not in program.data


def test_binding_changes_the_section_alone(program):
    plan = role_plans.star().plan
    binding = a_binding(plan, address="::1", restore_sha256="ef" * 32)
    executable = bind(program, binding)
    assert split(executable) == (program.data, binding)
    assert split(program.data) == (program.data, None)
    assert verify(executable, target=program.target, plan=plan.digest) == ()
    told = describe(executable)
    assert told["program_sha256"] == program.sha256 == hashlib.sha256(program.data).hexdigest()
    assert told["binding"] == binding.as_json()
    assert sum(a != b for a, b in zip(executable, program.data, strict=True)) <= 512


def test_a_program_of_another_role_is_found(program):
    plan = role_plans.star().plan
    problems = verify(program.data, target=program.target, plan=plan.digest, role="worker")
    assert [str(problem) for problem in problems] == [
        "role: made for another role (got root, expected worker)"
    ]


def test_an_executable_bound_to_another_plan_is_found(program):
    executable = bind(program, a_binding(role_plans.pair().plan))
    problems = verify(executable, target=program.target, plan=role_plans.star().plan.digest)
    assert [problem.check for problem in problems] == ["binding"]


def test_changed_bytes_of_a_real_program_raise_nothing(program):
    executable = bind(program, a_binding(role_plans.star().plan))
    chance = random.Random(1)
    for _ in range(300):
        hostile = bytearray(executable)
        for _ in range(chance.randint(1, 5)):
            hostile[chance.choice((chance.randrange(64), chance.randrange(len(hostile))))] = chance.randrange(
                256
            )
        verify(bytes(hostile), target=program.target, plan=None)
        describe(bytes(hostile))


@pytest.mark.parametrize("kept", [0, 1, 63, 64, 4000, -1])
def test_a_truncated_program_is_found(program, kept):
    assert verify(program.data[:kept], target=program.target, plan=None)


def test_roles_are_built_side_by_side_in_the_order_given(tmp_path):
    plan = role_plans.star().plan
    pairings = [(plan.roles[2], Made(ARM)), (plan.roles[0], Made(X86)), (plan.roles[1], Made(X86))]
    built = build_programs(plan, pairings, CONTENT, tmp_path)
    assert [(each.role, each.target) for each in built] == [("worker", ARM), ("root", X86), ("idle", X86)]
    assert len({each.sha256 for each in built}) == 3


def test_a_program_in_the_cache_is_taken_only_if_it_is_whole(tmp_path):
    plan = role_plans.single().plan
    first = build_program(plan, plan.roles[0], Made(X86), CONTENT, tmp_path)
    (kept,) = (tmp_path / "programs").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1] + b"x")
    assert build_program(plan, plan.roles[0], Made(X86), CONTENT, tmp_path) == first
    again = kept.read_bytes()
    kept.write_bytes(b"")
    assert build_program(plan, plan.roles[0], Made(X86), CONTENT, tmp_path) == first
    assert kept.read_bytes() == again


def test_changed_sources_make_another_program(program_cache, tmp_path):
    plan = role_plans.single().plan
    changed = altered_content(tmp_path, "native/rounds.c", "version == binding->target ||", "")
    one, other = (
        build_program(plan, plan.roles[0], Made(X86), content, program_cache)
        for content in (CONTENT, changed)
    )
    assert one.sha256 != other.sha256


def test_a_program_built_again_is_compared_with_the_one_at_hand(program_cache, tmp_path):
    plan = role_plans.star().plan
    pairings = [(plan.roles[0], Made(X86)), (plan.roles[2], Made(ARM))]
    root, worker = build_programs(plan, pairings, CONTENT, program_cache)
    made = {"root": root.data, "worker": worker.data}
    assert differences(plan, pairings, made, CONTENT) == ()
    patched = worker.data[:-1] + bytes([worker.data[-1] ^ 1])
    got = hashlib.sha256(patched).hexdigest()
    assert differences(plan, pairings, {"worker": patched, "idle": b""}, CONTENT) == (
        f"root: not the program that is built (got none, expected {root.sha256})",
        f"worker: not the program that is built (got {got}, expected {worker.sha256})",
        "idle: a program of no role that is built",
    )
    changed = altered_content(tmp_path, "native/rounds.c", "version == binding->target ||", "")
    found = differences(plan, pairings, made, changed)
    assert [text.partition(":")[0] for text in found] == ["root", "worker"]


def test_a_target_that_we_do_not_build_for(tmp_path):
    plan = role_plans.single().plan
    with pytest.raises(RefusedError) as refused:
        build_program(plan, plan.roles[0], Made("riscv64-linux"), CONTENT, tmp_path)
    assert [refusal.label for refusal in refused.value.refusals] == [Label.TARGET_UNSUPPORTED]


def test_what_the_compiler_says_is_passed_on(tmp_path):
    plan = role_plans.single().plan
    content = altered_content(
        tmp_path / "content", "native/rounds.c", "    combine(round, total);", "    combine(;"
    )
    with pytest.raises(RefusedError, match="expected expression") as refused:
        build_program(plan, plan.roles[0], Made(X86), content, tmp_path / "cache")
    assert [refusal.label for refusal in refused.value.refusals] == [Label.COMPILER]
