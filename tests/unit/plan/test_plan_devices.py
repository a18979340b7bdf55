"""Cards are no part of a plan: what programs are made for is beside it, and a lane may swap it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.plan.classes import role_classes
from orchestrator.plan.derive import Planned, derive
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.read import read_lane, read_native_run

ROOT = Path(__file__).parents[3]
FORMER, LATER = "nvidia-geforce-rtx-3070", "nvidia-geforce-rtx-3090"


@pytest.fixture(scope="module")
def lane() -> LaneSpec:
    return read_lane(ROOT / "lanes" / "coordinates-swap.yaml")


@pytest.fixture(scope="module")
def planned() -> Planned:
    return derive(read_native_run(ROOT / "specs" / "runs" / "coordinates.yaml"))


def test_a_plan_is_the_same_with_cards_and_without() -> None:
    cards, hosts = (
        derive(read_native_run(ROOT / "specs" / "runs" / f"{name}.yaml"))
        for name in ("samples-gpu", "samples")
    )
    assert cards.plan.digest == hosts.plan.digest
    assert [cards.made_for(role) for role in cards.targets] == [
        ("x86_64-linux", FORMER),
        ("x86_64-linux", LATER),
    ]
    assert [hosts.made_for(role) for role in hosts.targets] == [("x86_64-linux", None)] * 2


def test_swapped_roles_have_each_others_profiles(lane: LaneSpec, planned: Planned) -> None:
    swapped = planned.swapped(lane)
    assert swapped.plan is planned.plan
    assert [device and device.name for device in swapped.devices.values()] == [LATER, FORMER]
    assert swapped.devices["coordinator"] == planned.devices["worker"]
    assert dict(swapped.targets) == dict(planned.targets)


def test_a_target_is_swapped_under_a_card_as_well(lane: LaneSpec, planned: Planned) -> None:
    swapped = planned.swapped(replace(lane, swap={"x86_64-linux": "aarch64-linux"}))
    assert swapped.made_for("worker") == ("aarch64-linux", LATER)


def test_what_is_not_named_keeps_its_card(lane: LaneSpec, planned: Planned) -> None:
    swapped = planned.swapped(replace(lane, swap={FORMER: LATER}))
    assert [device and device.name for device in swapped.devices.values()] == [LATER, LATER]
    assert planned.swapped(replace(lane, swap={})) is planned


def test_roles_on_other_cards_are_of_other_classes() -> None:
    run = read_native_run(ROOT / "specs" / "runs" / "independent.yaml")
    plan = derive(run).plan
    alike = [each.roles for each in role_classes(plan, run.made_for)]
    assert alike == [range(1), range(1, 2), range(2, 3), range(3, 4)]
    assert [each.roles for each in role_classes(plan)] != alike
