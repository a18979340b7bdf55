"""A split run that is resumed with every role on another instruction set."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from lane_workshop import Workshop

from orchestrator.qualify.judge import judge_bundle, judge_step
from orchestrator.qualify.steps import split
from orchestrator.qualify.view import View

pytestmark = pytest.mark.skipif(
    shutil.which("qemu-aarch64-static") is None, reason="Debian's qemu-user-static is not installed"
)
OMIT = "{refusals: not looked at here, evaluate: not looked at here}"


def machine(program: Path) -> int:
    """`e_machine` of an ELF file."""
    return int.from_bytes(program.read_bytes()[18:20], "little")


def test_every_owner_goes_on_on_the_other_instruction_set(workshop: Workshop):
    code, result = workshop.run(
        workshop.lane("samples", swap="{x86_64-linux: aarch64-linux}", omit=OMIT), "--db", "t.sqlite3"
    )
    assert (code, result["verdict"], result["grade"]) == (0, "pass", "emulated")
    bundle = Path(result["bundle"])
    build = bundle / "steps/build/1"
    assert not (build / "control-programs").exists(), "no control runs, so none is built for"
    assert {machine(path) for path in build.glob("programs/*.elf")} == {62}
    assert {machine(path) for path in build.glob("swapped-programs/*.elf")} == {183}
    parts = [json.loads((bundle / f"steps/split/1/{part}/launch.json").read_bytes()) for part in split.PARTS]
    assert [{start["program"] for start in part["starts"]} for part in parts] == [{"own"}, {"swapped"}]
    binding = json.loads((bundle / "binding.json").read_bytes())
    assert {role["emulator"] for role in binding["roles"].values()} == {None}
    assert {role["emulator"] for role in binding["swapped"].values()} == {"qemu-aarch64-static"}
    assert judge_bundle(bundle).agrees
    assert workshop.orch("judge", str(bundle), "--rebuild").stdout.count("rebuilt: 4 programs, the same") == 1


def test_a_second_part_on_the_same_instruction_set_is_not_what_was_asked_for(
    workshop: Workshop, tmp_path: Path
):
    _, result = workshop.run(workshop.lane("samples", omit=OMIT), "--db", "t.sqlite3")
    bundle = Path(shutil.copytree(result["bundle"], tmp_path / "copied"))
    (lane,) = bundle.glob("specs/lanes/*.yaml")
    lane.write_text(lane.read_text() + "swap: {x86_64-linux: aarch64-linux}\n")
    outcome = judge_step(View(bundle), split)
    wrong = {check.name for check in outcome.checks if check.verdict == "fail"}
    assert "part-2-as-asked" in wrong
    assert "part-1-as-asked" not in wrong
