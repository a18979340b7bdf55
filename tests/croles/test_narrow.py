"""Systems of binary32 words: the programs yield the reference's bits, and their files are half as long."""

from __future__ import annotations

import struct
from array import array
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import safetensors.numpy
from role_bench import ARM, CONTENT, Setup
from role_narrow import narrow
from role_plans import REPLICATED, Case

from orchestrator.admit.memory import demand
from orchestrator.build.compile import Made, build_program
from orchestrator.build.elf import describe
from orchestrator.oracle.kinds import reference_of
from orchestrator.oracle.reference import Reference, Version, bits, held_words, state_digest
from orchestrator.plan.ownership import Ownership
from orchestrator.plan.topology import Topology, star

ALL = Ownership("partitioned", "partitioned", "partitioned")


def versions(case: Case, updates: int) -> list[Version]:
    reference = reference_of(case.plan, array("f", case.words))
    return list(islice(reference.versions(), updates))


CASES = [
    ("adam", star(2), REPLICATED),
    ("adam", Topology("hierarchy", 7, 2), ALL),
    ("logistic", star(4), REPLICATED),
    ("two-layer", star(3), REPLICATED),
    ("coordinates", star(4), ALL),
    ("correlations", star(4), ALL),
]


@pytest.mark.parametrize(("name", "topology", "ownership"), CASES, ids=str)
def test_programs_yield_what_the_reference_yields(
    bench, tmp_path: Path, name: str, topology: Topology, ownership: Ownership
) -> None:
    case = narrow(tmp_path, name, topology, ownership)
    expected = versions(case, 3)
    run = bench(case)
    ends = run.run(Setup(target=3, targets={"r1": ARM}))
    for role in case.plan.roles:
        held = [state_digest(held_words(case.plan, role, each.words)) for each in expected]
        lines = [
            f"{each.number} {digest} {bits(each.results['loss'])}"
            for each, digest in zip(expected, held, strict=True)
        ]
        assert run.progress(role.name) == lines, ends


def test_its_files_hold_binary32(bench, tmp_path: Path) -> None:
    case = narrow(tmp_path, "adam", star(2))
    run = bench(case)
    run.run(Setup(target=2))
    folder = run.published(2, tmp_path / "set")
    tensors = {}
    for path in folder.glob("*.safetensors"):
        tensors |= safetensors.numpy.load_file(path)
    assert {tensor.dtype.name for tensor in tensors.values()} == {"float32"}
    words = versions(case, 2)[-1].words
    assert words.typecode == "f"
    assert sorted(word for tensor in tensors.values() for word in tensor.tolist()) == sorted(words)
    again = bench(case)
    ends = again.run(Setup(target=4, epoch=2, restore=folder))
    assert {end.results["state"] for end in ends.values()} == {versions(case, 4)[-1].state}


def test_words_are_rounded_where_binary64_would_keep_them(tmp_path: Path) -> None:
    case = narrow(tmp_path, "adam", star(2))
    system = case.plan.system
    wide = replace(system, numerics="binary64-ordered")
    narrow_loss = Reference(case.plan, array("f", case.words)).at(3).results["loss"]
    wide_loss = Reference(replace(case.plan, system=wide), array("d", case.words)).at(3).results["loss"]
    assert narrow_loss != wide_loss
    assert narrow_loss == pytest.approx(wide_loss, rel=1e-5)
    assert struct.unpack("f", struct.pack("f", narrow_loss)) == (narrow_loss,)


def test_a_program_holds_what_is_asked_for(tmp_path: Path, program_cache: Path) -> None:
    plan = narrow(tmp_path, "wide-adam", star(2)).plan
    wide = replace(plan, system=replace(plan.system, numerics="binary64-ordered"))
    for each in (plan, wide):
        held = describe(build_program(each, each.roles[0], Made("x86_64-linux"), CONTENT, program_cache).data)
        assert held["memory_bytes"] <= demand(each, each.roles[0]).static
    small, large = (demand(each, each.roles[0]).static for each in (plan, wide))
    assert large - small >= 4 * plan.system.state_words
