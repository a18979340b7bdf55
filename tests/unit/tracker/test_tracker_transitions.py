"""Whatever is done, in whatever order: ends are final, evidence stays, `verified` rests on a proof."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tracker_building as building
from covering import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tracker import beside, query, record, schema
from tracker.doctor import examine
from tracker.errors import RecordError
from tracker.load import load
from tracker.sealed import Device, Sealed
from tracker.store import open_store

RUNS = st.sampled_from(["r1", "r2", "r3"])
VERDICTS = st.sampled_from(["pass", "fail", "unknown"])
GRADES = st.sampled_from(["host", "physical"])
CARDS = st.lists(st.sampled_from([building.RTX_3070, building.RTX_3090]), max_size=3)
OMITTED = st.sampled_from(["{}", '{"split":"no"}'])


def told(run_id: str, verdict: str, grade: str, products: list[str], omitted: str) -> Sealed:
    said = hashlib.sha256(repr((run_id, verdict, grade, products, omitted)).encode()).hexdigest()
    return Sealed(
        bundle=Path("/absent") / run_id,
        run_id=run_id,
        lane="coordinates",
        plan=building.PLAN,
        system=building.SYSTEM,
        verdict=verdict,
        grade=grade,
        started="2026-11-29T09:00:00Z",
        ended="2026-11-29T09:00:01Z",
        omitted=omitted,
        seal=said,
        head=said,
        records=3,
        content_sha256=said,
        judge="null",
        judge_version="1",
        parent_seal=None,
        devices=tuple(
            Device(f"r{at}", "a", name, f"GPU-{at}", at, None, None) for at, name in enumerate(products)
        ),
        seconds=(("wall", 1.0),),
    )


class Transitions(RuleBasedStateMachine):
    """The tracker beside a model of it: the end of each run, and all evidence ever seen."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.store = open_store(str(self.folder / "t.sqlite3"))
        self.ends: dict[str, tuple[Any, ...]] = {}
        self.seen: set[tuple[str, str]] = set()
        self.begun: set[str] = set()
        self.sealed: dict[str, Sealed] = {}
        self.withdrawn: set[str] = set()
        self.loaded = False

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def attempt(self, allowed: bool, act: Any, *arguments: Any, **named: Any) -> None:  # noqa: FBT001
        try:
            act(self.store, *arguments, **named)
        except RecordError:
            assert not allowed
        else:
            assert allowed

    @rule(run=RUNS)
    def begin(self, run: str) -> None:
        identity: Mapping[str, str] = {
            "lane": "coordinates",
            "plan": building.PLAN,
            "system": building.SYSTEM,
        }
        bundle = Path("/absent") / run
        self.attempt(
            run not in self.ends, record.begin_run, run_id=run, bundle=bundle, started="", **identity
        )
        self.begun.add(run)

    @rule(run=RUNS, verdict=VERDICTS, grade=GRADES, products=CARDS, omitted=OMITTED)
    def finish(self, run: str, verdict: str, grade: str, products: list[str], omitted: str) -> None:
        end = told(run, verdict, grade, products, omitted)
        baseless = grade == "physical" and verdict == "pass" and not products
        allowed = self.sealed.get(run) == end if run in self.ends else not baseless
        self.attempt(allowed, record.record, end, "1")
        if allowed:
            self.sealed[run] = end
            self.begun.add(run)
            self.ends.setdefault(run, self.row(run))

    @rule(run=RUNS)
    def give_up(self, run: str) -> None:
        """The process of every run is this one, so that a run is never given up: it lives."""
        self.attempt(False, record.close_run, run, "no")  # noqa: FBT003

    @rule(run=RUNS, effect=st.sampled_from(["note", "withdraw", "reinstate"]))
    def note(self, run: str, effect: str) -> None:
        self.attempt(run in self.begun, beside.note, run, "text", effect)
        if run in self.begun and effect != "note":
            (self.withdrawn.add if effect == "withdraw" else self.withdrawn.discard)(run)

    @rule(run=RUNS, value=st.floats(allow_nan=False, allow_infinity=False))
    def measure(self, run: str, value: float) -> None:
        self.attempt(run in self.begun, beside.measure, run, "power", value)

    @rule(status=st.sampled_from(["planned", "in-progress", "implemented"]), grade=GRADES)
    def load(self, status: str, grade: str) -> None:
        load(self.store, building.unequal(status, grade))
        self.programme = building.unequal(status, grade)
        self.loaded = True

    @rule(run=RUNS, change=st.sampled_from(["UPDATE runs SET started = started", "DELETE FROM runs"]))
    def attack(self, run: str, change: str) -> None:
        guarded = self.begun if change.startswith("DELETE") else self.ends
        outsider = sqlite3.connect(self.store.path)
        try:
            outsider.execute(f"{change} WHERE run_id = ?", (run,))
        except sqlite3.IntegrityError:
            assert run in guarded
        else:
            assert run not in guarded
        finally:
            outsider.close()

    @invariant()
    def ends_are_final(self) -> None:
        assert {run: self.row(run) for run in self.ends} == self.ends

    @invariant()
    def evidence_is_never_lost(self) -> None:
        now = {(each.item, each.run_id) for each in query.evidence(self.store)}
        assert now >= self.seen
        self.seen = now

    @invariant()
    def verified_is_what_the_runs_prove(self) -> None:
        if self.loaded:
            for item in self.programme.items:
                found = query.item(self.store, item.id)
                assert found is not None
                proven = any(self.proves(end, item) for end in self.sealed.values())
                assert found[0].status == ("verified" if proven else item.status)

    def proves(self, end: Sealed, item: building.Item) -> bool:
        """What counts, said a second time and in another language."""
        assert item.proof is not None
        bound = [device.product for device in end.devices]
        return (
            (end.verdict, end.omitted, end.grade) == ("pass", "{}", item.proof.grade)
            and all(
                bound.count(product) >= item.proof.products.count(product) for product in item.proof.products
            )
            and end.run_id not in self.withdrawn
        )

    @invariant()
    def the_database_is_healthy(self) -> None:
        assert examine(self.store, bundles=False) == ()

    def row(self, run: str) -> tuple[Any, ...]:
        with self.store.read() as connection:
            found = connection.execute(schema.runs.select().where(schema.runs.c.run_id == run)).one()
            return tuple(found)


TestTransitions = Transitions.TestCase
TestTransitions.settings = settings(max_examples=examples(8, 25), stateful_step_count=25, deadline=None)
