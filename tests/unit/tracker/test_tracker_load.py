"""Loading programmes: what is planned is replaced, what is proven stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import tracker_building as building
from hypothesis import given, settings
from hypothesis import strategies as st
from tracker_building import Item, Programme, Proof

from tracker import lacking, query
from tracker.errors import ProgrammeError
from tracker.load import load
from tracker.programme import problems
from tracker.store import Store, open_store
from tracker.values import SeveralPlans


def statuses(store: Store) -> dict[str, str]:
    return {item.id: item.status for item in query.items(store)}


@pytest.mark.parametrize("status", ["planned", "in-progress", "implemented"])
def test_declared_status_is_loaded(store: Store, status: str) -> None:
    load(store, building.unequal(status))
    assert statuses(store) == {"N7": status, "N10": status}


def test_a_load_never_lowers_what_is_proven(store: Store, tmp_path: Path) -> None:
    load(store, building.unequal())
    building.ingest(store, building.build(tmp_path, "r1"))
    before = query.evidence(store)
    done = load(store, building.unequal("planned"))
    assert done.reopened == ()
    assert statuses(store) == {"N7": "verified", "N10": "planned"}
    assert query.evidence(store) == before


def test_an_item_left_out_is_kept_with_its_evidence(store: Store, tmp_path: Path) -> None:
    whole = building.unequal()
    load(store, whole)
    building.ingest(store, building.build(tmp_path, "r1"))
    without = Programme({"M2": "Unequal cards"}, (replace(whole.items[1], needs=()),))
    assert load(store, without).unlisted == ("N7",)
    assert [e.item for e in query.evidence(store)] == ["N7"]
    assert [m.id for m in query.status(store).milestones] == ["M2"]
    assert load(store, whole).verified == ("N7",)


def test_a_stricter_proof_reopens_an_item_and_keeps_its_evidence(store: Store, tmp_path: Path) -> None:
    load(store, building.unequal())
    building.ingest(store, building.build(tmp_path, "r1"))
    whole = building.unequal()
    stricter = replace(whole.items[0], proof=Proof("coordinates", "emulated"))
    done = load(store, replace(whole, items=(stricter, whole.items[1])))
    assert done.reopened == ("N7",)
    assert [(e.item, e.counts) for e in query.evidence(store)] == [("N7", False)]
    assert load(store, whole).verified == ("N7",)


@pytest.mark.parametrize(
    ("items", "complaint"),
    [
        ((Item("A", "", "M9"),), r"unknown milestone \(got 'M9', expected one of M1\)"),
        ((Item("A", "", "M1", ("B",)),), "needs an unknown item .got 'B'"),
        ((Item("A", "", "M1"), Item("A", "", "M1")), "declared twice"),
        ((Item("A", "", "M1", status="verified"),), "got 'verified', expected one of planned, in-progress"),
        ((Item("A", "", "M1", proof=Proof("x", "best")),), "got 'best', expected one of host"),
        ((Item("A", "", "M1", ("A",)),), "dependency-cycle: .got A -> A"),
        ((Item("A", "", "M1", ("B",)), Item("B", "", "M1", ("A",))), "dependency-cycle"),
    ],
)
def test_a_programme_that_contradicts_itself_changes_nothing(
    store: Store, items: tuple[Item, ...], complaint: str
) -> None:
    load(store, building.unequal())
    before = query.items(store)
    with pytest.raises(ProgrammeError, match=complaint):
        load(store, Programme({"M1": ""}, items))
    assert query.items(store) == before


def test_every_contradiction_is_told_at_once() -> None:
    items = (Item("A", "", "M9", ("B",)), Item("C", "", "M1", ("C",)))
    assert len(problems(Programme({"M1": ""}, items))) == 3


EDGES = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=9)


@settings(max_examples=40, deadline=None)
@given(edges=EDGES)
def test_the_database_and_the_programme_agree_on_what_a_ring_is(
    tmp_path_factory: pytest.TempPathFactory, edges: set[tuple[int, int]]
) -> None:
    items = tuple(
        Item(str(name), "", "M1", tuple(str(need) for of, need in sorted(edges) if of == name))
        for name in range(6)
    )
    store = open_store(str(tmp_path_factory.mktemp("ring") / "t.sqlite3"))
    load(store, Programme({"M1": ""}, tuple(replace(item, needs=()) for item in items)))
    refused = False
    with store.engine.connect() as connection:
        for of, need in sorted(edges):
            try:
                connection.exec_driver_sql("INSERT INTO dependencies VALUES (?, ?)", (str(of), str(need)))
            except Exception as error:  # noqa: BLE001  (the driver's own; which one is not the point)
                assert "dependency-cycle" in str(error)  # noqa: PT017  (most edges raise nothing)
                refused = True
    assert refused == bool(problems(Programme({"M1": ""}, items)))


def test_next_gives_items_whose_needs_are_met_and_why_runs_did_not_count(
    store: Store, tmp_path: Path
) -> None:
    load(store, building.unequal())
    (first,) = lacking.next_items(store, building.lane_file)
    assert (first.item.id, first.near) == ("N7", None)
    assert first.command == "orch run lanes/coordinates.yaml"
    building.ingest(store, building.build(tmp_path, "r1"))
    (second,) = lacking.next_items(store, building.lane_file)
    assert second.item.id == "N10"
    assert second.near == lacking.Near(
        "r1",
        (
            "grade host, needs physical",
            f"bound no card, needs also {building.RTX_3070}, {building.RTX_3090}",
        ),
    )
    assert second.command == "orch run lanes/coordinates.yaml --pods pods.yaml --require physical"
    cards = [building.card(building.RTX_3070, "GPU-1"), building.card(building.RTX_3090, "GPU-2")]
    building.ingest(store, building.build(tmp_path, "r2", grade="physical", cards=cards))
    assert lacking.next_items(store, building.lane_file) == ()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"verdict": "fail"}, "verdict fail, needs pass"),
        ({"verdict": "unknown"}, "verdict unknown, needs pass"),
        ({"omitted": {"split": "no", "build": "no"}}, "left out build, split, needs every step"),
        ({"grade": "emulated"}, "grade emulated, needs host"),
    ],
)
def test_next_says_why_the_nearest_run_did_not_count(
    store: Store, tmp_path: Path, changed: dict, reason: str
) -> None:
    load(store, building.unequal())
    building.ingest(store, building.build(tmp_path, "r1", **changed))
    assert lacking.next_items(store, building.lane_file)[0].near == lacking.Near("r1", (reason,))


def test_an_item_that_asks_for_no_proof_is_done_when_implemented(store: Store) -> None:
    items = (Item("A", "", "M1", status="planned"), Item("B", "", "M1", ("A",)))
    load(store, Programme({"M1": ""}, items))
    assert [each.item.id for each in lacking.next_items(store, building.lane_file)] == ["A"]
    load(store, Programme({"M1": ""}, (replace(items[0], status="implemented"), items[1])))
    assert [each.item.id for each in lacking.next_items(store, building.lane_file)] == ["B"]


@pytest.mark.parametrize("pin", ["system", "plan"])
def test_a_pinned_proof_is_met_by_that_very_plan_and_system(store: Store, tmp_path: Path, pin: str) -> None:
    digest = {"system": building.SYSTEM, "plan": building.PLAN}[pin]

    def pinned(value: str) -> Programme:
        proof = replace(Proof("coordinates", "host"), **{pin: value})
        return Programme({"M1": ""}, (Item("N7", "", "M1", proof=proof),))

    load(store, pinned("d" * 64))
    building.ingest(store, building.build(tmp_path, "r1"))  # a lane of the same name, and another one
    (lacking_it,) = lacking.next_items(store, building.lane_file)
    assert lacking_it.near == lacking.Near("r1", (f"{pin} {digest[:12]}, needs dddddddddddd",))
    assert load(store, pinned(digest)).verified == ("N7",)
    assert query.items(store)[0].proof == pinned(digest).items[0].proof
    assert load(store, pinned("d" * 64)).reopened == ("N7",)


def test_a_pin_is_a_digest(store: Store) -> None:
    wrong = Programme({"M1": ""}, (Item("N7", "", "M1", proof=Proof("x", "host", plan="D" * 64)),))
    with pytest.raises(ProgrammeError, match=r"item N7: plan .*expected 64 lower-case hexadecimal digits"):
        load(store, wrong)


def test_evidence_of_several_plans_is_noticed_until_one_is_pinned(store: Store, tmp_path: Path) -> None:
    load(store, building.unequal())
    for name, plan in (("r1", building.PLAN), ("r2", "d" * 64), ("r3", "d" * 64)):
        building.ingest(store, building.build(tmp_path, name, extra={"plan": plan}))
    assert query.status(store).several_plans == (SeveralPlans("N7", 2),)
    whole = building.unequal()
    pinned = replace(whole.items[0], proof=Proof("coordinates", "host", plan=building.PLAN))
    load(store, replace(whole, items=(pinned, whole.items[1])))
    assert query.status(store).several_plans == ()


def test_without_a_lane_file_there_is_no_command(store: Store) -> None:
    whole = building.unequal("planned")
    bare = Item("N1", "By hand", "M1", status="in-progress")
    load(store, replace(whole, items=(bare, *whole.items)))
    by_hand, on_host = lacking.next_items(store, lambda _: None)
    assert on_host.command == by_hand.command == ""
    assert on_host.first == ("there is no file of lane coordinates: lanes/coordinates.yaml is to be written",)
    assert "`status: implemented`" in by_hand.first[0]
