"""The static half of a lane's gate: each thing that can be wrong is told by its own check, with the label."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from orchestrator.build import assembler
from orchestrator.qualify.checks import Verdict
from orchestrator.qualify.gate.static import static_half


@pytest.fixture
def lanes(tmp_path: Path, pytestconfig: pytest.Config) -> Path:
    """Lanes and what they name, to change."""
    for name in ("lanes", "specs"):
        shutil.copytree(pytestconfig.rootpath / name, tmp_path / name)
    return tmp_path / "lanes"


def changed(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_programs_are_built_from_two_folders_and_looked_at(pytestconfig: pytest.Config):
    root = pytestconfig.rootpath
    half = static_half(root / "lanes" / "samples.yaml", root)
    assert half.outcome.verdict is Verdict.PASS, half.outcome
    assert [check.name for check in half.outcome.checks] == [
        "validate",
        "plan",
        "admit",
        "build",
        "elf",
        "rebuild",
        "rebuild-identity",
    ]
    assert [(each.role.name, each.made.target) for each in half.programs] == [
        ("coordinator", "x86_64-linux"),
        ("worker", "x86_64-linux"),
    ]
    assert half.grade == "host"


def test_kernels_are_a_part_of_what_is_held(pytestconfig: pytest.Config):
    root = pytestconfig.rootpath
    half = static_half(root / "lanes" / "samples-gpu.yaml", root)
    assert (half.outcome.verdict, half.outcome.checks[-1].name) == (Verdict.PASS, "ptx"), half.outcome
    assert half.grade == "physical"
    assert set(half.kernels) == {str(each) for each in half.programs}


def test_without_the_assembler_a_lane_with_cards_is_not_decided(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(assembler, "_WHEEL", "no.such.wheel")
    monkeypatch.setenv("PATH", "/nowhere")
    root = pytestconfig.rootpath
    half = static_half(root / "lanes" / "samples-gpu.yaml", root)
    assert half.outcome.verdict is Verdict.UNKNOWN
    assert "ptx: ptxas: assembler-missing: " in half.outcome.reason
    assert "pip install 'orch-qualify[device]'" in half.outcome.reason


def test_what_is_wrong_with_a_file_is_said_by_label(lanes: Path, pytestconfig: pytest.Config):
    changed(lanes / "samples.yaml", "split: 3", "split: 9")
    half = static_half(lanes / "samples.yaml", pytestconfig.rootpath)
    (check,) = half.outcome.checks
    assert (half.lane, half.outcome.name, check.name) == (None, "samples", "validate")
    assert (half.outcome.verdict, half.programs) == (Verdict.FAIL, ())
    assert "samples.yaml:7:8: value-range: " in half.outcome.reason


def test_what_does_not_fit_is_not_built(lanes: Path, pytestconfig: pytest.Config):
    run = lanes.parent / "specs" / "runs" / "samples.yaml"
    run.write_text(run.read_text() + "memory: {worker: 1 KiB}\n")
    half = static_half(lanes / "samples.yaml", pytestconfig.rootpath)
    assert [(check.name, str(check.verdict)) for check in half.outcome.checks] == [
        ("validate", "pass"),
        ("plan", "pass"),
        ("admit", "fail"),
    ]
    assert ": capacity-exceeded: " in half.outcome.reason
    assert half.programs == ()


def test_of_a_program_of_ones_own_nothing_is_compiled(pytestconfig: pytest.Config):
    root = pytestconfig.rootpath
    half = static_half(root / "lanes" / "own-script.yaml", root)
    assert (half.outcome.verdict, half.programs, half.grade) == (Verdict.PASS, (), "host")
    assert half.outcome.checks[-1].verdict is Verdict.NOT_APPLICABLE


def test_programs_that_are_others_from_another_folder_do_not_pass(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
):
    copy = shutil.copytree

    def spoilt(source: Path, target: Path, *how: object) -> None:
        copy(source, target, *how)
        if Path(source).name == "native":
            changed(Path(target) / "main.c", 'refuse("binding")', 'refuse("bindign")')

    monkeypatch.setattr(shutil, "copytree", spoilt)
    half = static_half(pytestconfig.rootpath / "lanes" / "samples.yaml", pytestconfig.rootpath)
    assert half.outcome.verdict is Verdict.FAIL, half.outcome
    assert half.outcome.reason.startswith(
        "rebuild-identity: coordinator: not the program that is built (got "
    )
    assert half.outcome.reason.count("not the program") == len(half.programs) == 2
