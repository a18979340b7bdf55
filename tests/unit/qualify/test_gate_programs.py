"""What a gate builds programs for: as paired, as swapped, and for cards of every architecture."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.build import assembler
from orchestrator.build.compile import Made, Program
from orchestrator.errors import RefusedError
from orchestrator.plan.derive import derive
from orchestrator.qualify.gate.programs import Built, Pairings, assembled, one_of_each_architecture, wanted
from orchestrator.spec.read import read_device, read_lane
from orchestrator.spec.run import RunSpec


@pytest.fixture
def root(pytestconfig: pytest.Config) -> Path:
    return pytestconfig.rootpath


def said(pairings: Pairings) -> list[tuple[str, str, str | None]]:
    return [(role.name, made.target, made.device and made.device.product) for role, made in pairings]


def of(root: Path, lane: str, *profiles: str) -> list[list[tuple[str, str, str | None]]]:
    spec = read_lane(root / "lanes" / f"{lane}.yaml")
    assert isinstance(spec.run, RunSpec)
    devices = [read_device(root / "specs" / "devices" / f"{name}.yaml") for name in profiles]
    return [said(each) for each in wanted(derive(spec.run), spec, devices)]


def test_a_lane_without_cards_is_built_for_its_targets_whatever_cards_there_are(root: Path):
    (paired,) = of(root, "samples", "nvidia-geforce-rtx-3090")
    assert paired == [("coordinator", "x86_64-linux", None), ("worker", "x86_64-linux", None)]


def test_a_swap_is_built_for_too(root: Path):
    paired, swapped = of(root, "coordinates-swap")
    one, two = "NVIDIA GeForce RTX 3070", "NVIDIA GeForce RTX 3090"
    assert [product for *_, product in paired] == [one, two]
    assert [product for *_, product in swapped] == [two, one]


def test_device_roles_alone_are_built_for_other_cards(root: Path):
    paired, other = of(root, "adam-gpu", "nvidia-geforce-rtx-3070")
    assert len(paired) == 4
    assert other == [
        ("worker1", "x86_64-linux", "NVIDIA GeForce RTX 3070"),
        ("worker2", "x86_64-linux", "NVIDIA GeForce RTX 3070"),
    ]


def test_of_cards_of_one_architecture_one_is_enough_and_of_what_no_kernel_is_for_none(root: Path):
    profiles = [read_device(path) for path in (root / "specs" / "devices").glob("*.yaml")]
    chosen = [profile.facts["compute_capability"].value for profile in one_of_each_architecture(profiles)]
    assert len(set(chosen)) == len(chosen)
    assert "8.6" in chosen
    assert not {"6.1", "7.0", None} & set(chosen)


def of_one_lane(root: Path) -> tuple[object, tuple[Built, ...]]:
    spec = read_lane(root / "lanes" / "adam-gpu.yaml")
    assert isinstance(spec.run, RunSpec)
    planned = derive(spec.run)
    profiles = [read_device(root / "specs" / "devices" / "nvidia-h200.yaml")]
    pairings = [pair for each in wanted(planned, spec, profiles) for pair in each]
    return planned.plan, tuple(Built(*pair, Program(pair[0].name, pair[1].target, b"")) for pair in pairings)


def test_kernels_are_assembled_for_the_cards_that_programs_are_for(root: Path):
    plan, built = of_one_lane(root)
    reports = assembled(plan, built)
    assert set(reports) == {str(each) for each in built if each.made.device}
    assert reports["worker1 for nvidia-geforce-rtx-3070"].architecture == "sm_86"
    assert reports["worker1 for nvidia-h200"].architecture == "sm_90"
    for report in reports.values():
        assert report.usage
        assert all(used.spills == used.stack == 0 for used in report.usage.values())


def test_without_the_tools_kernels_are_not_decided(root: Path, monkeypatch: pytest.MonkeyPatch):
    plan, built = of_one_lane(root)
    monkeypatch.setattr(assembler, "_WHEEL", "no.such.wheel")
    monkeypatch.setenv("PATH", str(root))
    with pytest.raises(RefusedError, match="assembler-missing"):
        assembled(plan, built)
    host = tuple(Built(each.role, Made(each.made.target), each.program) for each in built)
    assert assembled(plan, host) == {}
