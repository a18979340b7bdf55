"""Cards: what roles use of them to the byte, and what they hold under the driver that is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.admit.card import CONTEXT_BYTES, card_demand, supplies, supply
from orchestrator.admit.device import FoundCard, Part, admit_cards, resources
from orchestrator.admit.graph import Absent, Established
from orchestrator.admit.hold import faults
from orchestrator.admit.memory import LIBRARY_BYTES, demand
from orchestrator.admit.unplaced import admit_unplaced
from orchestrator.build.counted import counted
from orchestrator.build.kernels import kernels
from orchestrator.errors import Label, Refusal
from orchestrator.plan.derive import Planned, derive
from orchestrator.spec.device import DeviceSpec, Fact
from orchestrator.spec.read import read_device, read_lane, read_native_run
from orchestrator.spec.repeated import Repeated
from orchestrator.spec.run import RunSpec

ROOT = Path(__file__).parents[3]
RUNS = ROOT / "specs" / "runs"
DEVICES = ROOT / "specs" / "devices"
DRIVER = "580.126.20"
PLACES = {"coordinator": ("a", "GPU-0"), "worker": ("a", "GPU-1")}


def coordinates(**quotas: int) -> tuple[RunSpec, Planned]:
    run = read_native_run(RUNS / "coordinates.yaml")
    run = replace(run, video_memory=Repeated(tuple((quotas.get(role), 1) for role in run.roles)))
    return run, derive(run)


def cards(driver: str | None = DRIVER, **places: tuple[str, str]) -> dict[str, FoundCard]:
    return {role: FoundCard(*place, driver) for role, place in {**PLACES, **places}.items()}


def known(planned: Planned, **facts: Mapping[str, int] | None) -> Planned:
    """The same plan on cards of which something else is known."""
    told = {
        name: Fact(
            value, None if value is None else "a reference", None if value is not None else "nobody read it"
        )
        for name, value in facts.items()
    }
    devices = {
        role: device and replace(device, facts={**device.facts, **told})
        for role, device in planned.devices.items()
    }
    return replace(planned, devices=devices)


def short(refusals: tuple[Refusal, ...]) -> list[tuple[Label, str]]:
    assert all("(got " in each.message and each.message.endswith(")") for each in refusals)
    return [(refusal.label, refusal.key) for refusal in refusals]


@pytest.mark.parametrize(
    "run", ["samples-gpu", "coordinates", "independent", "adam-gpu", "diabetes", "logistic", "wide-adam"]
)
def test_what_is_charged_is_what_the_program_allocates(run: str) -> None:
    plan = derive(read_native_run(RUNS / f"{run}.yaml")).plan
    for role in plan.roles:
        made = kernels(plan, role, "8.6")
        asked = card_demand(plan, role)
        assert asked.static == counted(plan, role, made, mode="train", updates=3).allocated
        assert asked.total == asked.static + CONTEXT_BYTES


def test_the_host_side_of_a_card_has_no_room_for_what_the_card_computes() -> None:
    plan = derive(read_native_run(RUNS / "wide-adam.yaml")).plan
    device = read_device(DEVICES / "nvidia-geforce-rtx-3070.yaml")
    host, beside = demand(plan, plan.roles[0]), demand(plan, plan.roles[0], device)
    assert beside.total - LIBRARY_BYTES == beside.static
    assert not {line.what for line in beside.lines} & {"temporaries of the update", "temporaries of a sample"}
    assert beside.persistent == host.persistent


def rtx(**facts: Mapping[str, int] | None) -> DeviceSpec:
    _, planned = coordinates()
    device = known(planned, **facts).devices["coordinator"]
    assert device is not None
    return device


def test_a_card_holds_what_the_driver_leaves() -> None:
    device = rtx(
        memory_total={"550.54": 1000, "580": 990, "510": 5}, memory_reserved={"550.54": 100, "580": 90}
    )
    assert supplies(device) == {"550.54": 900, "580": 900}
    for driver, expected in {"550.54": 900, "550.54.14": 900, "580.126.20": 900, None: 900}.items():
        found = supply(device, driver)
        assert isinstance(found, Established)
        assert found.value == expected


@pytest.mark.parametrize("driver", ["550", "550.5", "550.541", "510", "535.104"])
def test_another_driver_says_nothing(driver: str) -> None:
    device = rtx(memory_total={"550.54": 1000, "510": 5}, memory_reserved={"550.54": 100})
    assert isinstance(supply(device, driver), Absent)


def test_an_absent_fact_is_told_with_its_reason() -> None:
    found = supply(rtx(memory_reserved=None), DRIVER)
    assert found == Absent("memory_reserved of nvidia-geforce-rtx-3070 is absent: nobody read it")


def test_shipped_lanes_fit_their_cards() -> None:
    for name in ("coordinates", "independent", "samples-gpu", "adam-gpu", "coordinates-swap"):
        lane = read_lane(ROOT / "lanes" / f"{name}.yaml")
        assert isinstance(lane.run, RunSpec)
        planned = derive(lane.run)
        assert admit_unplaced(lane.run, planned, planned.swapped(lane)) == ()


def test_each_role_against_its_own_card() -> None:
    run, planned = coordinates()
    need = card_demand(planned.plan, planned.plan.roles[0]).total
    exact = known(planned, memory_total={DRIVER: need + 7}, memory_reserved={DRIVER: 7})
    assert admit_cards(run, [Part(exact, cards())]) == ()
    less = known(planned, memory_total={DRIVER: need + 6}, memory_reserved={DRIVER: 7})
    for found in (admit_cards(run, [Part(less, cards())]), admit_cards(run, [Part(less, None)])):
        assert short(found) == [
            (Label.CAPACITY_EXCEEDED, "video_memory.coordinator"),
            (Label.CAPACITY_EXCEEDED, "video_memory.worker"),
        ]
    assert f"(got {need} bytes of coordinator at once, expected at most {need - 1})" in found[0].message


def test_two_roles_of_one_card_add_up() -> None:
    run, planned = coordinates()
    need = card_demand(planned.plan, planned.plan.roles[0]).total
    one = cards(worker=("a", "GPU-0"))
    both = known(planned, memory_total={DRIVER: 2 * need}, memory_reserved={DRIVER: 0})
    assert admit_cards(run, [Part(both, one)]) == ()
    less = known(planned, memory_total={DRIVER: 2 * need - 1}, memory_reserved={DRIVER: 0})
    assert short(admit_cards(run, [Part(less, one)])) == [(Label.CAPACITY_EXCEEDED, "video_memory.worker")]
    assert admit_cards(run, [Part(less, cards())]) == ()
    elsewhere = cards(worker=("b", "GPU-0"))  # bound by minors alone, two nodes may have a card of one name
    assert admit_cards(run, [Part(less, elsewhere)]) == ()


def test_parts_of_a_lane_use_a_card_one_after_the_other() -> None:
    run, planned = coordinates()
    need = card_demand(planned.plan, planned.plan.roles[0]).total
    exact = known(planned, memory_total={DRIVER: need}, memory_reserved={DRIVER: 0})
    there, back = cards(), cards(coordinator=("a", "GPU-1"), worker=("a", "GPU-0"))
    assert admit_cards(run, [Part(exact, there), Part(exact, back)]) == ()


def test_what_is_not_known_is_open_while_planning_and_refused_once_there_is_a_card() -> None:
    run, planned = coordinates()
    blind = known(planned, memory_reserved=None)
    assert admit_cards(run, [Part(blind, None)]) == ()
    found = admit_cards(run, [Part(blind, cards())])
    assert short(found) == [
        (Label.CAPACITY_UNKNOWN, "video_memory.coordinator"),
        (Label.CAPACITY_UNKNOWN, "video_memory.worker"),
    ]
    assert "nobody read it" in found[0].message
    other = admit_cards(run, [Part(planned, cards("470.57"))])
    assert [each.label for each in other] == [Label.CAPACITY_UNKNOWN] * 2
    assert "not established under driver 470.57" in other[0].message
    silent = admit_cards(run, [Part(planned, cards(None))])
    assert [each.label for each in silent] == [Label.CAPACITY_UNKNOWN] * 2
    assert "node a does not say which driver it has" in silent[0].message


def test_a_quota_holds_its_role_and_stands_for_a_card_that_is_not_known() -> None:
    run, planned = coordinates()
    need = card_demand(planned.plan, planned.plan.roles[0]).total
    blind = known(planned, memory_reserved=None)
    run, _ = coordinates(coordinator=need, worker=need)
    assert admit_cards(run, [Part(blind, cards())]) == ()
    run, _ = coordinates(coordinator=need)
    assert short(admit_cards(run, [Part(blind, cards())])) == [
        (Label.CAPACITY_UNKNOWN, "video_memory.worker")
    ]
    run, _ = coordinates(coordinator=need, worker=need - 1)
    for part in (Part(blind, cards()), Part(planned, cards()), Part(planned, None), Part(blind, None)):
        assert short(admit_cards(run, [part])) == [(Label.CAPACITY_EXCEEDED, "video_memory.worker")]


def test_a_quota_is_set_aside_whole() -> None:
    _, planned = coordinates()
    need = card_demand(planned.plan, planned.plan.roles[0]).total
    run, _ = coordinates(coordinator=need + 1000)
    one = cards(worker=("a", "GPU-0"))
    both = known(planned, memory_total={DRIVER: 2 * need + 999}, memory_reserved={DRIVER: 0})
    assert short(admit_cards(run, [Part(both, one)])) == [(Label.CAPACITY_EXCEEDED, "video_memory.worker")]
    both = known(planned, memory_total={DRIVER: 2 * need + 1000}, memory_reserved={DRIVER: 0})
    assert admit_cards(run, [Part(both, one)]) == ()


def test_the_graph_has_ways_between_host_and_card_and_none_between_cards() -> None:
    run, planned = coordinates()
    graph, use = resources(run, [Part(planned, cards())])
    assert faults(graph, use) == ()
    ways = {(link.source, link.target) for link in graph.links}
    assert ways == {("a", "a/GPU-0"), ("a/GPU-0", "a"), ("a", "a/GPU-1"), ("a/GPU-1", "a")}
    assert {(each.role, each.source, each.target) for each in use.transfers} == {
        ("coordinator", "a", "a/GPU-0"),
        ("coordinator", "a/GPU-0", "a"),
        ("worker", "a", "a/GPU-1"),
        ("worker", "a/GPU-1", "a"),
    }
    peer = replace(use.transfers[0], source="a/GPU-0", target="a/GPU-1")
    assert [each.label for each in faults(graph, replace(use, transfers=(peer,)))] == [Label.LINK_MISSING]


def test_roles_that_are_alike_are_looked_at_once_while_planning() -> None:
    run = read_native_run(RUNS / "independent.yaml")
    _, use = resources(run, [Part(derive(run), None)])
    assert {each.role for each in use.placements} <= set(run.roles)
    every = read_native_run(RUNS / "fleet-200k.yaml")
    device = read_device(DEVICES / "nvidia-geforce-rtx-3070.yaml")
    pairings = tuple((replace(pairing, device=device), count) for pairing, count in every.pairings.runs)
    every = replace(every, pairings=Repeated(pairings))
    _, use = resources(every, [Part(derive(every), None)])
    assert 0 < len(use.placements) < 100
