"""The rules against a program that knows nothing of ours: Python's sqlite3, every pragma at its default."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import tracker_building as building

from tracker import beside, record, schema
from tracker.doctor import examine
from tracker.errors import ImmutableError
from tracker.load import load
from tracker.store import Store, open_store

HEX = "'" + "e" * 64 + "'"
NEW_RUN = (
    "(run_id, lane, state, plan, system, started, recorded) "
    f"VALUES ('done', 'coordinates', 'running', {HEX}, {HEX}, '', '')"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the runs `done` (it proves N7), `poor` (failed) and `open` (running)."""
    folder = tmp_path_factory.mktemp("made")
    store = open_store(str(folder / "t.sqlite3"))
    load(store, building.unequal())
    cards = [building.card(building.RTX_3070, "GPU-1")]
    building.ingest(store, building.build(folder, "done", cards=cards))
    building.ingest(store, building.build(folder, "poor", verdict="fail"))
    beside.note(store, "done", "fan at full speed")
    record.begin_run(
        store,
        run_id="open",
        lane="coordinates",
        bundle=folder,
        plan=building.PLAN,
        system=building.SYSTEM,
        started="",
    )
    return store.path


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Store:
    """A copy of it: no connection is open, so that the one file is all of it."""
    return open_store(str(shutil.copy(made, tmp_path)), create=False)


@pytest.fixture
def outsider(store: Store) -> Iterator[sqlite3.Connection]:
    """A plain connection to the same copy."""
    connection = sqlite3.connect(store.path, isolation_level=None)
    assert connection.execute("PRAGMA recursive_triggers").fetchone() == (0,)
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (0,)
    yield connection
    connection.close()


def content(connection: sqlite3.Connection) -> list[tuple[str, list[tuple[object, ...]]]]:
    names = [name for kind, name in schema.statements() if kind == "table"]
    return [(name, connection.execute(f"SELECT * FROM {name}").fetchall()) for name in names]


EVERY_COLUMN = ", ".join(column.name for column in schema.runs.columns)

FORGED = (
    f"INSERT INTO runs ({EVERY_COLUMN}) SELECT 'forged'{EVERY_COLUMN.removeprefix('run_id')} "
    "FROM runs WHERE run_id = 'done'"
)
END = (
    "UPDATE runs SET state = 'completed', verdict = '{verdict}', grade = '{grade}', omitted = '{{}}', "
    f"ended = '', judged = '1', records = 1, head = {HEX}, seal = {{seal}} WHERE run_id = 'open'"
)

ATTACKS = [
    # terminal runs
    "UPDATE runs SET verdict = 'fail', state = 'failed' WHERE run_id = 'done'",
    "UPDATE runs SET verdict = 'pass', state = 'completed' WHERE run_id = 'poor'",
    "UPDATE runs SET state = 'running', verdict = NULL, seal = NULL WHERE run_id = 'done'",
    "UPDATE OR IGNORE runs SET grade = 'physical'",
    "UPDATE OR REPLACE runs SET run_id = 'done' WHERE run_id = 'open'",
    "UPDATE OR REPLACE runs SET run_id = 'open' WHERE run_id = 'done'",
    "DELETE FROM runs WHERE run_id = 'done'",
    "DELETE FROM runs",
    f"INSERT OR REPLACE INTO runs {NEW_RUN}",
    f"REPLACE INTO runs {NEW_RUN}",
    f"INSERT OR IGNORE INTO runs {NEW_RUN}",
    f"INSERT OR FAIL INTO runs {NEW_RUN}",
    f"INSERT OR ROLLBACK INTO runs {NEW_RUN}",
    f"INSERT INTO runs {NEW_RUN} ON CONFLICT (run_id) DO UPDATE SET verdict = 'fail', state = 'failed'",
    f"INSERT INTO runs {NEW_RUN} ON CONFLICT DO NOTHING",
    f"INSERT OR REPLACE INTO runs SELECT {EVERY_COLUMN} FROM runs WHERE run_id = 'poor'",
    # a run that never ran
    FORGED,
    # a pass without a seal, with half of one, of another verdict, on no card
    "UPDATE runs SET state = 'completed', verdict = 'pass' WHERE run_id = 'open'",
    END.format(verdict="pass", grade="host", seal="'short'"),
    END.format(verdict="fail", grade="host", seal=HEX),
    END.format(verdict="pass", grade="physical", seal=HEX),
    "UPDATE runs SET plan = upper(plan) WHERE run_id = 'open'",
    "UPDATE runs SET lane = 'other' WHERE run_id = 'open'",
    # what belongs to a run
    "INSERT INTO devices VALUES ('done', 'worker', 'a', 'NVIDIA GeForce RTX 3090', 'GPU-9', 1, NULL, NULL)",
    "INSERT OR REPLACE INTO devices VALUES ('done', 'role0', 'a', 'X', 'GPU-9', 1, NULL, NULL)",
    "INSERT INTO devices VALUES ('nobody', 'role0', 'a', 'X', 'GPU-9', 1, NULL, NULL)",
    "UPDATE devices SET product = 'NVIDIA H100'",
    "UPDATE OR REPLACE devices SET run_id = 'open'",
    "DELETE FROM devices",
    # evidence
    "INSERT INTO evidence VALUES ('N10', 'done', '{}', '')",
    "INSERT INTO evidence VALUES ('N7', 'poor', '{}', '')",
    "INSERT INTO evidence VALUES ('N7', 'open', '{}', '')",
    "INSERT INTO evidence VALUES ('N7', 'nobody', '{}', '')",
    "INSERT OR REPLACE INTO evidence VALUES ('N7', 'done', '{\"grade\": \"physical\"}', '')",
    "INSERT OR IGNORE INTO evidence VALUES ('N10', 'done', '{}', '')",
    "INSERT INTO evidence VALUES ('N7', 'done', '', '') ON CONFLICT DO UPDATE SET item_id = 'N10'",
    "UPDATE evidence SET item_id = 'N10'",
    "DELETE FROM evidence",
    # what stands beside
    "UPDATE measurements SET value = 0",
    "DELETE FROM measurements",
    "INSERT OR REPLACE INTO measurements VALUES ('done', 'wall', 1, 0.1, 's', 'bundle', '')",
    "INSERT INTO measurements VALUES ('done', 'wall', 3, 0.1, 's', 'bundle', '')",
    "UPDATE locations SET path = '/dev/null'",
    "DELETE FROM locations",
    "INSERT OR REPLACE INTO locations VALUES ('done', 1, '/dev/null', '')",
    "INSERT INTO run_notes VALUES ('done', 3, 'note', 'skips a revision', '')",
    "INSERT INTO run_notes VALUES ('done', 2, 'erase', 'no such effect', '')",
    "INSERT OR REPLACE INTO run_notes VALUES ('done', 1, 'reinstate', 'never said', '')",
    "UPDATE run_notes SET text = 'never said'",
    "DELETE FROM run_notes",
    # items
    "UPDATE items SET declared = 'verified'",
    "UPDATE items SET item_id = 'N11' WHERE item_id = 'N7'",
    "DELETE FROM items",
    "INSERT INTO dependencies VALUES ('N7', 'N10')",
    "INSERT INTO dependencies VALUES ('N7', 'N7')",
    "INSERT OR REPLACE INTO dependencies VALUES ('N7', 'N10')",
    "UPDATE dependencies SET need = 'N10', item_id = 'N7'",
    # types
    "INSERT INTO run_notes VALUES ('done', 'two', 'note', 'text', '')",
    "UPDATE items SET title = NULL",
]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("recursive", ["OFF", "ON"])
def test_a_plain_program_cannot_rewrite(outsider: sqlite3.Connection, attack: str, recursive: str) -> None:
    outsider.execute(f"PRAGMA recursive_triggers = {recursive}")
    before = content(outsider)
    with pytest.raises(sqlite3.IntegrityError):
        outsider.execute(attack)
    assert content(outsider) == before


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE runs SET state = 'completed', verdict = 'pass' WHERE run_id = 'open'",
        "UPDATE runs SET state = 'finished' WHERE run_id = 'open'",
        "UPDATE runs SET state = 'interrupted', verdict = 'pass' WHERE run_id = 'open'",
        END.format(verdict="fail", grade="host", seal=HEX),
        END.format(verdict="pass", grade="host", seal=HEX).replace("judged = '1', ", ""),
        "UPDATE items SET declared = 'verified'",
        "INSERT INTO items VALUES ('N1', '', 'M1', 'verified', NULL, NULL, NULL, NULL, 0, 1)",
    ],
)
def test_switching_constraints_off_opens_no_way(outsider: sqlite3.Connection, attack: str) -> None:
    outsider.execute("PRAGMA ignore_check_constraints = ON")
    with pytest.raises(sqlite3.IntegrityError, match="tracker: "):
        outsider.execute(attack)


def test_the_status_of_an_item_cannot_be_written(outsider: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError, match="it is a view"):
        outsider.execute("UPDATE item_status SET status = 'verified'")


def test_insert_or_ignore_and_then_update_fails_at_either_step(outsider: sqlite3.Connection) -> None:
    before = content(outsider)
    for attack in (
        f"INSERT OR IGNORE INTO runs {NEW_RUN}",
        "UPDATE runs SET verdict = 'fail', state = 'failed' WHERE run_id = 'done'",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="tracker: "):
            outsider.execute(attack)
    assert content(outsider) == before


def test_a_proof_lowered_by_hand_does_not_outlast_the_programme(
    outsider: sqlite3.Connection, store: Store
) -> None:
    outsider.execute("UPDATE items SET proof_grade = 'host' WHERE item_id = 'N10'")
    outsider.execute("DELETE FROM item_products WHERE item_id = 'N10'")
    outsider.execute("INSERT INTO evidence VALUES ('N10', 'done', '{}', '')")
    assert load(store, building.unequal()).reopened == ("N10",)


def test_a_longer_ring_is_refused(outsider: sqlite3.Connection) -> None:
    for name in ("A", "B", "C"):
        outsider.execute(
            "INSERT INTO items VALUES (?, '', 'M1', 'planned', NULL, NULL, NULL, NULL, 9, 1)", (name,)
        )
    outsider.execute("INSERT INTO dependencies VALUES ('A', 'B'), ('B', 'C')")
    with pytest.raises(sqlite3.IntegrityError, match="dependency-cycle"):
        outsider.execute("INSERT INTO dependencies VALUES ('C', 'A')")


@pytest.mark.usefixtures("outsider")
def test_our_own_writes_meet_the_same_rules_in_our_words(store: Store) -> None:
    change = schema.runs.update().where(schema.runs.c.run_id == "done").values(started="")
    with pytest.raises(ImmutableError, match="a terminal run is never changed"), store.write() as connection:
        connection.execute(change)


@pytest.mark.parametrize("name", sorted(schema.TRIGGERS))
def test_doctor_reports_a_dropped_trigger(outsider: sqlite3.Connection, store: Store, name: str) -> None:
    assert examine(store) == ()
    outsider.execute(f"DROP TRIGGER {name}")
    assert [finding.subject for finding in examine(store)] == [f"trigger {name}"]


def test_doctor_reports_a_toothless_trigger(outsider: sqlite3.Connection, store: Store) -> None:
    outsider.execute("DROP TRIGGER runs_delete")
    outsider.execute(
        "CREATE TRIGGER runs_delete BEFORE DELETE ON runs WHEN 0 BEGIN SELECT RAISE(ABORT, ''); END"
    )
    (finding,) = examine(store)
    assert finding.subject == "trigger runs_delete"
    assert "WHEN 0" in finding.message


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        ("DROP INDEX runs_by_lane", "index runs_by_lane"),
        ("DROP TABLE run_notes", "table run_notes"),
        ("DROP VIEW item_status", "view item_status"),
        ("ALTER TABLE runs ADD COLUMN mood TEXT", "table runs"),
        ("CREATE TABLE more (a)", "table more"),
        ("CREATE TRIGGER sly AFTER INSERT ON runs BEGIN DELETE FROM dependencies; END", "trigger sly"),
        ("DELETE FROM milestones", "rows of items"),
        ("PRAGMA journal_mode = DELETE", "file"),
    ],
)
def test_doctor_reports_what_else_was_changed(
    outsider: sqlite3.Connection, store: Store, change: str, subject: str
) -> None:
    outsider.execute(change).fetchall()
    assert subject in {finding.subject for finding in examine(store)}


def test_doctor_reports_a_sealed_run_that_names_no_bundle(outsider: sqlite3.Connection, store: Store) -> None:
    """Every rule lets it in that is told as a run which begins and then ends; a bundle would back it."""
    columns = "run_id, lane, state, plan, system, started, recorded"
    outsider.execute(
        f"INSERT INTO runs({columns}) SELECT 'made-up', lane, 'running', plan, system, started, recorded"
        " FROM runs WHERE run_id = 'done'"
    )
    told = "verdict, grade, ended, omitted, seal, head, records, content_sha256, judge, judged"
    outsider.execute(
        f"UPDATE runs SET (state, {told}) = (SELECT state, {told} FROM runs WHERE run_id = 'done')"
        " WHERE run_id = 'made-up'"
    )
    for bundles in (True, False):
        (finding,) = examine(store, bundles=bundles)
        assert finding.subject == "run made-up"
        assert "a sealed run without a bundle" in finding.message


def test_doctor_holds_rows_against_their_bundles(outsider: sqlite3.Connection, store: Store) -> None:
    """The triggers are back in place, so only the bundle still tells what was done without them."""
    for name in ("runs_update_terminal", "devices_update"):
        outsider.execute(f"DROP TRIGGER {name}")
    outsider.execute("UPDATE runs SET grade = 'physical' WHERE run_id = 'done'")
    outsider.execute("UPDATE devices SET product = 'NVIDIA H100'")
    for name in ("runs_update_terminal", "devices_update"):
        outsider.execute(schema.TRIGGERS[name])
    said = " | ".join(f"{finding.subject}: {finding.message}" for finding in examine(store))
    assert "run done: its row differs from its bundle in grade (got physical, expected host)" in said
    assert "run done: its bound devices differ" in said
    assert examine(store, bundles=False) == ()
