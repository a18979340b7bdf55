"""What a gate builds programs for: as paired, as swapped, and for cards of every architecture."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.plan.derive import derive
from orchestrator.qualify.gate.programs import Pairings, one_of_each_architecture, wanted
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
