"""Opening databases, good and bad, and writing to them from many processes."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import tracker_building as building

from tracker import beside, process, query, record, schema
from tracker.doctor import Finding, examine
from tracker.engine import Judge
from tracker.errors import ImmutableError, LockedError, RecordError, StoreError, TrackerError, UsageError
from tracker.store import Store, default_url, open_store, sqlite_path


@pytest.mark.parametrize("url", ["{}", "sqlite:///{}", "sqlite+pysqlite:///{}"])
def test_a_path_and_its_url_are_the_same_database(tmp_path: Path, url: str) -> None:
    path = tmp_path / "a name%20with #signs.sqlite3"
    open_store(url.format(path))
    assert open_store(str(path), create=False).path == path
    assert path.exists()


@pytest.mark.parametrize(
    "url", ["postgresql://team/orch", "postgresql+psycopg://team/orch", "postgres://team/orch"]
)
def test_postgresql_is_refused_until_it_is_built(url: str) -> None:
    with pytest.raises(UsageError, match="PostgreSQL is not built yet"):
        open_store(url)


@pytest.mark.parametrize(
    "url",
    ["", ":memory:", "sqlite://", "sqlite:///", "sqlite://host/x", "mysql://x/y", "sqlite:///x?mode=ro"],
)
def test_what_names_no_file_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match=r"got .*, expected sqlite:///PATH or a path"):
        sqlite_path(url)


def test_the_environment_goes_before_the_projects_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACKER_DB", raising=False)
    assert default_url("project.db") == "project.db"
    assert default_url() == "tracker.sqlite3"
    monkeypatch.setenv("TRACKER_DB", "mine.db")
    assert default_url("project.db") == "mine.db"


def test_the_file_is_set_up_as_it_must_be(store: Store) -> None:
    with sqlite3.connect(store.path) as outsider:
        pragmas = {
            name: outsider.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version", "journal_mode")
        }
        tables = outsider.execute(
            "SELECT name, strict, wr FROM pragma_table_list WHERE type = 'table'"
        ).fetchall()
    outsider.close()
    assert pragmas == {"application_id": 0x6F726368, "user_version": 1, "journal_mode": "wal"}
    assert {name for name, *_ in tables if not name.startswith("sqlite_")} == set(schema.metadata.tables)
    assert all(
        strict and without_rowid for name, strict, without_rowid in tables if name in schema.metadata.tables
    )
    with store.read() as connection:
        ours = [
            connection.exec_driver_sql(f"PRAGMA {p}").scalar() for p in ("foreign_keys", "recursive_triggers")
        ]
        assert ours == [1, 1]
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() >= 5000


def foreign(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (a)")
    other.close()


def newer(path: Path) -> None:
    open_store(str(path))
    later = sqlite3.connect(path)
    later.execute("PRAGMA user_version = 99")
    later.close()


def damaged(path: Path) -> None:
    open_store(str(path))
    later = sqlite3.connect(path)
    later.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    later.close()
    raw = bytearray(path.read_bytes())
    raw[100:4096] = b"\xff" * 3996
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda path: path.write_text("milestones: 3\n" * 200, "utf-8"), "not a database"),
        (foreign, r"not a tracker database \(got application_id 0, expected 1869767528\)"),
        (newer, r"another version \(got 99, expected 1; a newer orch made it\)"),
        (damaged, "damaged"),
        (lambda path: path.mkdir(), "cannot be opened"),
    ],
)
@pytest.mark.parametrize("create", [True, False])
def test_a_file_that_is_no_tracker_database_is_refused(
    tmp_path: Path,
    make: Callable[[Path], object],
    complaint: str,
    create: bool,  # noqa: FBT001  (a parameter)
) -> None:
    path = tmp_path / "t.sqlite3"
    make(path)
    with pytest.raises(StoreError, match=complaint):
        open_store(str(path), create=create)


def test_an_absent_file_is_made_only_where_that_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite3"
    with pytest.raises(StoreError, match="there is no tracker database"):
        open_store(str(path), create=False)
    assert not path.exists()
    path.touch()
    with pytest.raises(StoreError, match="the file is empty"):
        open_store(str(path), create=False)
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(str(tmp_path / "absent" / "t.sqlite3"))


def test_a_database_that_stays_locked_is_undecided(store: Store) -> None:
    impatient = open_store(str(store.path), busy_timeout_ms=30)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LockedError) as caught, impatient.write():
        pass
    assert caught.value.exit_code == 4
    assert query.runs(impatient) == ()  # a writer does not stop readers
    other.close()


def test_a_refused_write_is_told_apart(store: Store) -> None:
    def write(*statements: str) -> None:
        with store.write() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    with pytest.raises(StoreError, match="read-only"):
        write("PRAGMA query_only = ON", "INSERT INTO experiments VALUES ('x', '')")
    with pytest.raises(ImmutableError, match="breaks a rule"):
        write("INSERT INTO experiments VALUES (NULL, '')")
    with pytest.raises(StoreError, match=r"refused .*no such table.*; .* move it away"):
        write("DELETE FROM absent")
    with pytest.raises(RecordError, match="does not fit"):
        beside.note(store, "r\udcff", "text")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_file_can_be_read_and_not_written(store: Store) -> None:
    store.path.chmod(0o444)
    assert query.runs(open_store(str(store.path), create=False)) == ()
    with pytest.raises(StoreError, match="read-only"):
        beside.note(open_store(str(store.path), create=False), "r", "text")


def test_a_failed_write_leaves_nothing(store: Store) -> None:
    def fail_midway() -> None:
        with store.write() as connection:
            connection.execute(schema.experiments.insert().values(lane="x", recorded=""))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_midway()
    with store.read() as connection:
        assert connection.execute(schema.experiments.select()).all() == []


def begin(store: Store, run_id: str) -> None:
    told = {"lane": f"lane{run_id[0]}", "plan": building.PLAN, "system": building.SYSTEM}
    record.begin_run(store, run_id=run_id, bundle=Path("/absent") / run_id, started=run_id, **told)


CRASH = """
import os, signal, sys
from tracker import schema
from tracker.store import open_store
with open_store(sys.argv[1]).write() as connection:
    connection.execute(schema.experiments.insert().values(lane="x", recorded=""))
    connection.execute(schema.runs.insert().values(
        run_id="r1", lane="x", state="running", plan="a" * 64, system="a" * 64, started="", recorded=""))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_writer_killed_in_the_middle_leaves_nothing_and_no_lock(store: Store) -> None:
    done = subprocess.run([sys.executable, "-c", CRASH, str(store.path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert query.runs(store) == ()
    begin(store, "r2")
    assert examine(store) == ()


def eight_processes() -> ProcessPoolExecutor:
    """One that dies is an error here, and not waited for."""
    return ProcessPoolExecutor(8, mp_context=multiprocessing.get_context("spawn"))


def _write_much(arguments: tuple[str, int]) -> str:
    path, worker = arguments
    try:
        store = open_store(path)
        for number in range(25):
            begin(store, f"{worker}-{number}")
            beside.measure(store, f"{worker}-{number}", "power", number)
            beside.measure(store, f"{worker}-0", "shared", worker * 100 + number)
    except TrackerError as error:
        return str(error)
    return ""


def test_eight_processes_make_one_database_and_lose_no_write(tmp_path: Path) -> None:
    path = str(tmp_path / "t.sqlite3")
    with eight_processes() as pool:
        assert list(pool.map(_write_much, [(path, worker) for worker in range(8)])) == [""] * 8
    store = open_store(path, create=False)
    assert len(query.runs(store, limit=1000)) == 8 * 25
    shared = [m.revision for m in query.run(store, "3-0").measurements if m.name == "shared"]
    assert shared == list(range(1, 26))
    left = [finding for finding in examine(store) if "left running" not in finding.message]
    assert left == []


def _ingest(arguments: tuple[str, str]) -> bool:
    path, bundle = arguments
    return building.ingest(open_store(path), Path(bundle)).new


def test_eight_processes_that_ingest_one_bundle_record_it_once(tmp_path: Path) -> None:
    bundle = building.build(tmp_path, "r1")
    with eight_processes() as pool:
        new = pool.map(_ingest, [(str(tmp_path / "t.sqlite3"), str(bundle))] * 8)
    assert sorted(new) == [False] * 7 + [True]


BEGIN = """
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tracker.record import begin_run
from tracker.store import open_store
begin_run(open_store(sys.argv[1]), run_id="r1", lane="x", bundle=Path("."), plan="a" * 64, system="a" * 64,
          started="")
"""


def test_a_run_whose_process_is_gone_is_reported_and_can_be_given_up(store: Store) -> None:
    subprocess.run([sys.executable, "-c", BEGIN, str(store.path)], check=True, timeout=60)
    (finding,) = examine(store)
    assert finding.subject == "run r1"
    assert "is gone" in finding.message
    record.close_run(store, "r1", "the controller was killed")
    assert examine(store) == ()
    found = query.run(store, "r1")
    assert (found.run.state, found.run.verdict) == ("interrupted", "unknown")
    assert [note.text for note in found.notes] == ["the controller was killed"]


def test_a_live_run_is_healthy(store: Store) -> None:
    begin(store, "r1")
    assert examine(store) == ()


def test_a_run_of_another_machine_is_not_judged_from_here(store: Store) -> None:
    begin(store, "r1")
    with store.write() as connection:
        connection.execute(schema.runs.update().values(host_sha256="0" * 64, pid=2**22 + 1))
    assert examine(store) == ()


def test_a_reused_pid_or_another_boot_does_not_pass() -> None:
    mine = process.here()
    assert process.is_alive(mine)
    assert not process.is_alive(process.Process(mine.host_sha256, mine.pid, mine.boot_id, "1"))
    assert not process.is_alive(process.Process(mine.host_sha256, mine.pid, "another", mine.start))
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        other = process.here(sleeper.pid)
        assert process.is_alive(other)
        sleeper.kill()
    assert not process.is_alive(other)


@pytest.mark.parametrize("damage", ["moved", "changed", "resealed"])
def test_doctor_reports_bundles_that_do_not_back_their_runs(
    store: Store, tmp_path: Path, damage: str
) -> None:
    bundle = building.build(tmp_path / "a", "r1")
    building.ingest(store, bundle)
    assert examine(store) == ()
    complaint = {"moved": "moved or missing", "changed": "no longer verifies", "resealed": "another seal"}[
        damage
    ]
    if damage == "moved":
        bundle.rename(tmp_path / "elsewhere")
    elif damage == "changed":
        (bundle / "binding.json").write_bytes(b"{}")
    else:
        shutil.rmtree(bundle)
        building.build(tmp_path / "a", "r1", extra={"ended": "2026-11-29T09:00:03Z"})
    said = [finding.message for finding in examine(store)]
    assert any(complaint in message for message in said)
    assert examine(store, bundles=False) == ()


@pytest.mark.parametrize(
    "ask",
    [
        query.runs,
        lambda store: query.runs(store, lane="x"),
        lambda store: query.run_id(store, "r"),
        lambda store: query.run(store, "r1"),
    ],
    ids=["runs", "runs of a lane", "run id", "run"],
)
def test_lists_walk_indexes_and_sort_nothing(store: Store, ask: Callable[[Store], object]) -> None:
    """Among ten thousand runs a list touches the lines that it gives: no scan of a table, no sorting."""
    begin(store, "r1")
    asked: list[tuple[str, Any]] = []
    sa.event.listen(store.engine, "before_cursor_execute", lambda *call: asked.append((call[2], call[3])))
    ask(store)
    statements = [each for each in asked if each[0].startswith("SELECT")]
    assert statements
    with store.read() as connection:
        for statement, values in statements:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
            steps = [row[-1] for row in plan]
            large = [
                step for step in steps if step.startswith(("SCAN runs", "SCAN devices", "SCAN measurements"))
            ]
            assert all("USING" in step for step in large), steps
            assert not any("TEMP B-TREE FOR ORDER BY" in step for step in steps if "runs" in statement), steps


def test_the_status_of_an_item_is_found_from_its_evidence(store: Store) -> None:
    """Not from all runs of its lane: the evidence of an item is short, its lane's runs are many."""
    with store.read() as connection:
        plan = connection.exec_driver_sql("EXPLAIN QUERY PLAN SELECT * FROM item_status").all()
    reached = [row[-1] for row in plan if row[-1].startswith(("SCAN r", "SEARCH r ", "SCAN e", "SEARCH e "))]
    assert reached == ["SEARCH e USING PRIMARY KEY (item_id=?)", "SEARCH r USING PRIMARY KEY (run_id=?)"]


def test_doctor_judges_again_only_when_asked(store: Store, tmp_path: Path) -> None:
    building.ingest(store, building.build(tmp_path, "r1"))
    denies = Judge("1", lambda _: ("grade: recorded host, recomputed emulated",))
    assert examine(store) == examine(store, judge=building.BELIEVES) == ()
    (finding,) = examine(store, judge=denies)
    assert finding == Finding(
        "run r1", "its bundle: not what its files show: grade: recorded host, recomputed emulated"
    )


INTERRUPTED = """
import sys
from tracker.store import open_store
store = open_store(sys.argv[1])
def close(connection):
    raise KeyboardInterrupt
store.engine.dialect.do_close = close
try:
    with store.read():
        pass
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_second_ctrl_c_prints_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, f"sqlite:///{tmp_path / 'tracker.sqlite3'}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
