"""Runs as they are begun, finished, ingested and closed, and what counts as evidence for an item."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import tracker_building as building

from tracker import beside, query, record
from tracker.engine import Judge
from tracker.errors import BundleError, RecordError
from tracker.load import load
from tracker.store import Store


def status_of(store: Store, item: str) -> str:
    found = query.item(store, item)
    assert found is not None
    return found[0].status


def begin(store: Store, bundle: Path, run_id: str, **changed: str) -> None:
    told = {"lane": "coordinates", "plan": building.PLAN, "system": building.SYSTEM, **changed}
    record.begin_run(store, run_id=run_id, bundle=bundle, started="2026-11-29T09:00:00Z", **told)


def test_a_run_begins_and_finishes_from_its_bundle(store: Store, tmp_path: Path) -> None:
    begin(store, tmp_path / "r1", "r1")
    assert query.run(store, "r1").run.state == "running"
    bundle = building.build(tmp_path, "r1")
    done = record.finish_run(store, bundle)
    found = query.run(store, "r1")
    assert done.new
    assert (found.run.state, found.run.verdict, found.run.seal) == ("completed", "pass", done.seal)
    assert found.records == 3
    assert found.bundle == str(bundle)
    assert {(m.name, m.unit) for m in found.measurements} == {("wall", "s"), ("step.preflight.wall", "s")}
    assert next(m.value for m in found.measurements if m.name == "wall") == 2.5


@pytest.mark.parametrize(("verdict", "state"), [("fail", "failed"), ("unknown", "unknown")])
def test_other_verdicts_end_a_run_too(store: Store, tmp_path: Path, verdict: str, state: str) -> None:
    building.ingest(store, building.build(tmp_path, "r1", verdict=verdict))
    assert query.run(store, "r1").run.state == state


def test_ingesting_again_changes_nothing(store: Store, tmp_path: Path) -> None:
    load(store, building.unequal())
    bundle = building.build(tmp_path, "r1")
    first = building.ingest(store, bundle)
    before = query.run(store, "r1")
    again = building.ingest(store, bundle)
    assert (first.new, again.new) == (True, False)
    assert first.items == again.items == ("N7",)
    assert query.run(store, "r1") == before


def test_a_moved_bundle_is_found_at_its_new_place(store: Store, tmp_path: Path) -> None:
    bundle = building.build(tmp_path, "r1")
    building.ingest(store, bundle)
    moved = shutil.move(bundle, tmp_path / "elsewhere")
    building.ingest(store, Path(moved))
    assert query.run(store, "r1").bundle == str(tmp_path / "elsewhere")


def test_another_bundle_of_a_recorded_run_is_refused(store: Store, tmp_path: Path) -> None:
    building.ingest(store, building.build(tmp_path / "a", "r1"))
    other = building.build(tmp_path / "b", "r1", verdict="fail")
    with pytest.raises(RecordError, match="recorded as completed"):
        building.ingest(store, other)
    assert query.run(store, "r1").run.verdict == "pass"


def test_a_run_is_not_taken_for_one_of_another_plan(store: Store, tmp_path: Path) -> None:
    begin(store, tmp_path, "r1", plan="d" * 64)
    with pytest.raises(RecordError, match="by its plan"):
        building.ingest(store, building.build(tmp_path, "r1"))
    with pytest.raises(RecordError, match="by its lane"):
        begin(store, tmp_path, "r1", plan="d" * 64, lane="other")


def test_beginning_again_is_a_resume_until_the_run_ends(store: Store, tmp_path: Path) -> None:
    begin(store, tmp_path / "r1", "r1")
    begin(store, tmp_path / "r1", "r1")
    record.finish_run(store, building.build(tmp_path, "r1"))
    with pytest.raises(RecordError, match="terminal"):
        begin(store, tmp_path / "r1", "r1")


def test_a_record_that_is_not_what_the_files_show_is_refused(store: Store, tmp_path: Path) -> None:
    load(store, building.unequal())
    forged = building.build(tmp_path, "r1")
    denies = Judge("2", lambda bundle: (f"verdict: recorded pass, recomputed fail in {bundle.name}",))
    with pytest.raises(BundleError) as caught:
        building.ingest(store, forged, denies)
    assert caught.value.problems == (
        "not what its files show: verdict: recorded pass, recomputed fail in r1",
        "it was judged by 1 when it was sealed, now by 2",
    )
    assert query.runs(store) == ()
    assert status_of(store, "N7") == "in-progress"


def test_a_judge_that_crashes_has_shown_nothing(store: Store, tmp_path: Path) -> None:
    def crash(bundle: Path) -> tuple[str, ...]:
        raise LookupError(bundle.name)

    with pytest.raises(BundleError, match=r"cannot be judged \(LookupError: r1\)"):
        building.ingest(store, building.build(tmp_path, "r1"), Judge("1", crash))
    assert query.runs(store) == ()


def test_what_does_not_verify_is_not_judged(store: Store, tmp_path: Path) -> None:
    bundle = building.build(tmp_path, "r1")
    (bundle / "binding.json").unlink()
    judged: list[Path] = []
    with pytest.raises(BundleError, match=r"binding\.json"):
        building.ingest(store, bundle, Judge("1", lambda each: tuple(judged.append(each) or ())))
    assert judged == []


def test_a_run_keeps_who_judged_it(store: Store, tmp_path: Path) -> None:
    record.finish_run(store, building.build(tmp_path, "r1"))  # the engine has just judged it
    building.ingest(store, building.build(tmp_path, "r2"), Judge("2", lambda _: ()))
    begin(store, tmp_path / "r3", "r3")
    assert [query.run(store, name).judged for name in ("r1", "r2", "r3")] == ["1", "2", None]


@pytest.mark.parametrize("damage", ["changed", "missing", "extra", "link", "unsealed"])
def test_an_unsound_bundle_is_refused_by_the_names_of_its_files(
    store: Store, tmp_path: Path, damage: str
) -> None:
    bundle = building.build(tmp_path, "r1")
    said = bundle / "steps/preflight/1/said.txt"
    name = "steps/preflight/1/said.txt"
    if damage == "changed":
        said.write_text("READY\n", "utf-8")
    elif damage == "missing":
        said.unlink()
    elif damage == "extra":
        name = "steps/added.txt"
        (bundle / name).write_text("", "utf-8")
    elif damage == "link":
        said.unlink()
        said.symlink_to("/dev/null")
    else:
        name = "qualification.json"
        (bundle / name).unlink()
    with pytest.raises(BundleError, match=name):
        building.ingest(store, bundle)
    assert query.runs(store) == ()


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"steps": ("pass", "fail")}, "a pass with steps"),
        ({"steps": ("not-applicable",)}, "a pass with steps"),
        ({"grade": "physical"}, "without UUID"),
        ({"grade": "physical", "cards": [building.card(building.RTX_3070, None)]}, "without UUID"),
        ({"grade": "physical", "cards": [building.card("X", "GPU-1")], "emulator": "qemu"}, "emulator"),
        (
            {"grade": "physical", "cards": [building.card("X", "GPU-1") | {"simulated": True}]},
            "role0 is a stand-in",
        ),
        ({"grade": "best"}, "grade .got 'best', expected one of host"),
        ({"extra": {"lane": 7}}, "lane .got int '7', expected text"),
        ({"extra": {"omitted": []}}, "omitted .got list"),
        ({"extra": {"plan": None}}, "plan .got nothing, expected text"),
        ({"extra": {"system": "B" * 64}}, "system .got 'B+', expected 64 hexadecimal digits"),
        ({"cards": ["none"]}, "roles.role0.device .got str 'none', expected an object"),
    ],
)
def test_a_sealed_bundle_that_contradicts_itself_is_refused(
    store: Store, tmp_path: Path, changed: dict, complaint: str
) -> None:
    bundle = building.build(tmp_path, "r1", **changed)
    with pytest.raises(BundleError, match=complaint):
        building.ingest(store, bundle)
    assert query.runs(store) == ()


GPU_1 = building.card(building.RTX_3070, "GPU-1")
GPU_2 = building.card(building.RTX_3090, "GPU-2")
TWIN = building.card(building.RTX_3070, "GPU-3")


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"grade": "physical", "cards": [GPU_1, GPU_2]}, "verified"),
        ({"grade": "physical", "cards": [None, GPU_2, GPU_1, TWIN]}, "verified"),
        ({"grade": "physical", "cards": [GPU_1, TWIN]}, "in-progress"),
        ({"grade": "physical", "cards": [GPU_1]}, "in-progress"),
        ({"grade": "simulated", "cards": [GPU_1, GPU_2]}, "in-progress"),
        ({"grade": "host"}, "in-progress"),
        ({"grade": "physical", "cards": [GPU_1, GPU_2], "lane": "other"}, "in-progress"),
        ({"grade": "physical", "cards": [GPU_1, GPU_2], "omitted": {"host-shadow": "no"}}, "in-progress"),
        ({"grade": "physical", "cards": [GPU_1, GPU_2], "verdict": "fail"}, "in-progress"),
        ({"grade": "physical", "cards": [GPU_1, GPU_2], "verdict": "unknown"}, "in-progress"),
    ],
)
@pytest.mark.parametrize("order", ["load first", "ingest first"])
def test_what_counts_for_an_item(
    store: Store, tmp_path: Path, changed: dict, status: str, order: str
) -> None:
    bundle = building.build(tmp_path, "r1", **changed)
    if order == "load first":
        load(store, building.unequal())
        done = building.ingest(store, bundle)
        assert ("N10" in done.items) == (status == "verified")
    else:
        building.ingest(store, bundle)
        assert ("N10" in load(store, building.unequal()).verified) == (status == "verified")
    assert status_of(store, "N10") == status


@pytest.mark.parametrize(
    ("uuids", "status"), [(("GPU-1", "GPU-2"), "verified"), (("GPU-1", "GPU-1"), "planned")]
)
def test_a_product_named_twice_asks_for_two_cards(
    store: Store, tmp_path: Path, uuids: tuple[str, str], status: str
) -> None:
    proof = building.Proof("coordinates", "physical", (building.RTX_3070, building.RTX_3070))
    load(store, building.Programme({"M": ""}, (building.Item("I", "", "M", proof=proof),)))
    cards = [building.card(building.RTX_3070, uuid) for uuid in uuids]
    building.ingest(store, building.build(tmp_path, "r1", grade="physical", cards=cards))
    assert status_of(store, "I") == status


def test_withdrawn_evidence_stays_but_counts_no_more(store: Store, tmp_path: Path) -> None:
    load(store, building.unequal())
    building.ingest(store, building.build(tmp_path, "r1"))
    beside.note(store, "r1", "the wrong machine", "withdraw")
    assert status_of(store, "N7") == "in-progress"
    assert [(e.item, e.counts) for e in query.evidence(store)] == [("N7", False)]
    beside.note(store, "r1", "only a remark")
    assert status_of(store, "N7") == "in-progress"
    beside.note(store, "r1", "it was the right one", "reinstate")
    assert status_of(store, "N7") == "verified"
    assert [note.effect for note in query.run(store, "r1").notes] == ["withdraw", "note", "reinstate"]


def test_a_withdrawn_run_gains_no_evidence(store: Store, tmp_path: Path) -> None:
    building.ingest(store, building.build(tmp_path, "r1"))
    beside.note(store, "r1", "the wrong machine", "withdraw")
    assert load(store, building.unequal()).verified == ()
    beside.note(store, "r1", "it was the right one", "reinstate")
    assert status_of(store, "N7") == "verified"


def test_measurements_about_an_ended_run_supersede_and_are_kept(store: Store, tmp_path: Path) -> None:
    building.ingest(store, building.build(tmp_path, "r1"))
    before = query.run(store, "r1").run
    assert [beside.measure(store, "r1", "power", value, "W") for value in (200, 200, 210.5)] == [1, 1, 2]
    found = query.run(store, "r1")
    assert [(m.revision, m.value) for m in found.measurements if m.name == "power"] == [(1, 200), (2, 210.5)]
    assert found.run == before


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_measurement_is_finite(store: Store, tmp_path: Path, value: float) -> None:
    begin(store, tmp_path, "r1")
    with pytest.raises(RecordError, match="finite"):
        beside.measure(store, "r1", "power", value)


def test_nothing_is_said_about_a_run_that_is_not_recorded(store: Store) -> None:
    for attempt in (
        lambda: beside.measure(store, "r9", "power", 1),
        lambda: beside.note(store, "r9", "text"),
        lambda: record.close_run(store, "r9", "text"),
        lambda: query.run(store, "r9"),
    ):
        with pytest.raises(RecordError, match="r9"):
            attempt()


def test_a_run_whose_process_lives_is_not_given_up(store: Store, tmp_path: Path) -> None:
    begin(store, tmp_path, "r1")
    with pytest.raises(RecordError, match=f"process {os.getpid()} still runs it"):
        record.close_run(store, "r1", "impatience")


def test_a_run_is_found_by_the_beginning_of_its_id(store: Store, tmp_path: Path) -> None:
    for name in ("0190-a1", "0190-a2", "0190-b"):
        begin(store, tmp_path, name)
    assert query.run_id(store, "0190-b") == "0190-b"
    with pytest.raises(RecordError, match=r"several are known by that \(got 0190-a1, 0190-a2,"):
        query.run_id(store, "0190-a")
    begin(store, tmp_path, "0190")
    assert query.run_id(store, "0190") == "0190"
    with pytest.raises(RecordError, match="none"):
        query.run_id(store, "019%")


@pytest.mark.parametrize(
    "said", ["last", "11f7d040", "0190-b-11f7d040", "0190-b", "samples-20261129T142957Z-11f7d040", "runs/{}"]
)
def test_a_run_goes_by_every_name_that_a_person_has_of_it(store: Store, tmp_path: Path, said: str) -> None:
    name = "samples-20261129T142957Z-11f7d040"
    begin(store, tmp_path / "other", "0190-a-00000000")
    told = {"lane": "samples", "plan": building.PLAN, "system": building.SYSTEM}
    record.begin_run(
        store, run_id="0190-b-11f7d040", bundle=tmp_path / name, started="2026-11-29T10:00:00Z", **told
    )
    assert query.run_id(store, said.format(name)) == "0190-b-11f7d040"


@pytest.mark.parametrize("said", ["", "last", "z", "/", "0190-c"])
def test_no_run_is_known_by_a_name_that_none_has(store: Store, tmp_path: Path, said: str) -> None:
    if said != "last":
        begin(store, tmp_path / "other", "0190-a")
    with pytest.raises(RecordError, match=r"`tracker (run list|ingest BUNDLE)`"):
        query.run_id(store, said)


def test_one_end_of_an_id_may_not_be_another_ones_other_end(store: Store, tmp_path: Path) -> None:
    for name in ("ab-1", "2-ab"):
        begin(store, tmp_path / "other", name)
    with pytest.raises(RecordError, match=r"several are known by that \(got ab-1, 2-ab, expected one\)"):
        query.run_id(store, "ab")
