"""The `tracker` command as a person or a program meets it."""

from __future__ import annotations

import io
import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tracker_building as building

from tracker import cli
from tracker.engine import Judge
from tracker.store import open_store
from tracker.text import counted

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tracker(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command on a database in `tmp_path`; gives exit code, stdout and stderr."""
    monkeypatch.delenv("TRACKER_DB", raising=False)

    def run(*argv: str, **changed: Any) -> tuple[int, str, str]:
        code = cli.main(argv, building.engine(tmp_path / "t.sqlite3", **changed))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def proven(tracker: Command, tmp_path: Path) -> Command:
    """The command on a database with the programme, and a host run `0190-1` that proves N7."""
    assert tracker("load", "in-progress.yaml")[0] == 0
    assert tracker("ingest", str(building.build(tmp_path, "0190-1")))[0] == 0
    return tracker


def test_without_a_database_the_way_to_one_is_told(tracker: Command) -> None:
    code, out, err = tracker("status")
    assert (code, out) == (1, "")
    assert "`tracker load FILE` and `tracker ingest BUNDLE` make one" in err


def test_load_and_status(tracker: Command) -> None:
    assert tracker("load", "implemented.yaml") == (0, "2 milestones, 2 items\n", "")
    assert tracker("status")[1] == (
        "MILESTONE  TITLE          PLANNED  IN PROGRESS  IMPLEMENTED  VERIFIED\n"
        "M1         One machine          0            0            1         0\n"
        "M2         Unequal cards        0            0            1         0\n"
        "\n"
        "no run is recorded; `tracker ingest BUNDLE` takes one in\n"
    )


def test_ingest_tells_what_a_run_proves(tracker: Command, tmp_path: Path) -> None:
    tracker("load", "planned.yaml")
    bundle = str(building.build(tmp_path, "0190-1"))
    assert tracker("ingest", bundle) == (0, "0190-1 coordinates pass host, evidence for N7\n", "")
    assert tracker("ingest", bundle) == (0, "0190-1 coordinates pass host (known), evidence for N7\n", "")


def test_ingest_takes_the_sound_bundles_and_names_the_files_of_the_others(
    tracker: Command, tmp_path: Path
) -> None:
    sound, unsound = building.build(tmp_path, "r1"), building.build(tmp_path, "r2")
    (unsound / "binding.json").write_bytes(b"{}")
    code, out, err = tracker("ingest", "--json", str(unsound), str(sound))
    told = json.loads(out)
    assert code == 1
    assert [each["run_id"] for each in told["recorded"]] == ["r1"]
    assert [each["bundle"] for each in told["refused"]] == [str(unsound)]
    assert err.startswith(f"{unsound}: binding.json: ")
    assert [run["run_id"] for run in json.loads(tracker("run", "list", "--json")[1])["runs"]] == ["r1"]


def test_a_forged_bundle_is_refused_with_its_differences(proven: Command, tmp_path: Path) -> None:
    forged = building.build(tmp_path, "0190-2")
    judge = Judge("1", lambda _: ("verdict: recorded pass, recomputed fail",))
    code, out, err = proven("ingest", str(forged), judge=judge)
    assert (code, out) == (1, "")
    assert err == f"{forged}: not what its files show: verdict: recorded pass, recomputed fail\n"
    assert [run["run_id"] for run in json.loads(proven("run", "list", "--json")[1])["runs"]] == ["0190-1"]
    assert proven("doctor", "--judge")[0] == 0
    assert proven("doctor", "--judge", judge=judge)[0] == 1
    assert proven("doctor", judge=judge)[0] == 0


def test_ingest_finds_bundles_as_the_engine_does(tracker: Command, tmp_path: Path) -> None:
    bundle = building.build(tmp_path, "0190-1")
    assert tracker("ingest", "last", find_bundle={"last": bundle}.__getitem__)[0] == 0
    assert tracker("show", "last")[1].startswith("run        0190-1\n")


def test_evidence_of_several_plans_is_warned_of(proven: Command, tmp_path: Path) -> None:
    assert "warning" not in proven("status")[1] + proven("show", "N7")[1]
    proven("ingest", str(building.build(tmp_path, "0190-2", extra={"plan": "d" * 64})))
    for argv in (("status",), ("show", "N7")):
        assert "warning: N7: its evidence is of 2 plans; `plan:` in its proof" in proven(*argv)[1]
    shown = proven("show", "N7")[1]
    assert "host   yes     aaaaaaaaaaaa  bbbbbbbbbbbb" in shown
    assert "host   yes     dddddddddddd  bbbbbbbbbbbb" in shown


def test_next_without_a_programme_tells_the_way_to_one(tracker: Command, tmp_path: Path) -> None:
    tracker("ingest", str(building.build(tmp_path, "0190-1")))
    assert tracker("next")[1] == "no programme is loaded; `tracker load FILE` loads one\n"


def test_next_gives_the_command_that_would_produce_the_evidence(proven: Command) -> None:
    code, out, _ = proven("next")
    assert code == 0
    assert out == (
        "N10  Two unequal cards  (in-progress)\n"
        "  lacks    a pass of lane coordinates, grade physical on "
        "NVIDIA GeForce RTX 3070, NVIDIA GeForce RTX 3090\n"
        "  nearest  0190-1: grade host, needs physical; bound no card, needs also "
        "NVIDIA GeForce RTX 3070, NVIDIA GeForce RTX 3090\n"
        "  first    it needs pods: machines with these cards, named by a pods file (`orch: pods/v1`)\n"
        "  command  orch run lanes/coordinates.yaml --pods pods.yaml --require physical\n"
    )


def test_show_gives_an_item_or_a_run(proven: Command) -> None:
    item = proven("show", "N7")[1]
    assert "status     verified\n" in item
    assert "N7    0190-1  coordinates  host   yes" in item
    assert proven("show", "0190") == proven("run", "show", "0190-1")
    code, out, err = proven("show", "N11")
    assert (code, out) == (1, "")
    assert err == "tracker: 'N11': there is neither an item nor a run of that name; did you mean `N10`?\n"
    assert "items are N7, N10, and `tracker run list` lists the runs" in proven("show", "sunrise")[2]


def test_a_pass_with_steps_left_out_says_so(tracker: Command, tmp_path: Path) -> None:
    tracker("ingest", str(building.build(tmp_path, "r1", omitted={"host-shadow": "no card"})))
    assert "pass (omitted: host-shadow)" in tracker("run", "list")[1]


def test_run_list_filters(tracker: Command, tmp_path: Path) -> None:
    for name, changed in (
        ("r1", {}),
        ("r2", {"verdict": "fail"}),
        ("r3", {"grade": "emulated", "lane": "other"}),
    ):
        tracker("ingest", str(building.build(tmp_path, name, **changed)))

    def listed(*filters: str) -> list[str]:
        return [run["run_id"] for run in json.loads(tracker("run", "list", "--json", *filters)[1])["runs"]]

    assert listed() == ["r3", "r2", "r1"]
    assert listed("--verdict", "fail") == ["r2"]
    assert listed("--grade", "emulated") == listed("--lane", "other") == ["r3"]
    assert listed("--limit", "1") == ["r3"]
    assert tracker("run", "list", "--lane", "none")[1] == "no run\n"


def test_corrections_stand_beside_the_run(proven: Command) -> None:
    assert proven("evidence", "withdraw", "0190", "the wrong card")[0] == 0
    assert "N7    0190-1  coordinates  host   no " in proven("evidence", "list")[1]
    assert "withdrawn: the wrong card" in proven("next")[1]
    assert proven("evidence", "reinstate", "0190", "it was the right one")[0] == 0
    assert proven("run", "note", "0190", "fan at full speed")[0] == 0
    assert proven("measure", "0190", "power", "201.5", "W") == (
        0,
        "0190-1 power = 201.5 W (revision 1)\n",
        "",
    )
    shown = json.loads(proven("run", "show", "0190", "--json")[1])
    assert [note["effect"] for note in shown["notes"]] == ["withdraw", "reinstate", "note"]
    assert {"name": "power", "revision": 1, "value": 201.5, "unit": "W", "source": "person"} in shown[
        "measurements"
    ]
    assert [each["counts"] for each in shown["evidence"]] == [True]


def test_only_a_run_left_running_is_closed(proven: Command) -> None:
    code, _, err = proven("run", "close", "0190", "tidying up")
    assert code == 1
    assert "got completed, expected a running one" in err


def test_doctor(proven: Command, tmp_path: Path) -> None:
    assert proven("doctor") == (0, "healthy\n", "")
    shutil.rmtree(tmp_path / "0190-1")
    code, out, _ = proven("doctor")
    assert code == 1
    assert out.startswith("run 0190-1: its bundle is moved or missing")
    assert proven("doctor", "--no-bundles")[0] == 0


def test_doctor_notes_sealed_bundles_that_no_run_came_from(proven: Command, tmp_path: Path) -> None:
    unknown = building.build(tmp_path / "runs", "0190-2")
    (tmp_path / "runs" / "open").mkdir()
    there = (tmp_path / "0190-1", unknown, tmp_path / "runs" / "open")
    code, out, _ = proven("doctor", bundles=lambda: there)
    note = f"{unknown}: sealed, and no run here came from it; `tracker ingest` takes it in"
    assert (code, out) == (0, f"healthy\nnote: {note}\n")
    assert json.loads(proven("doctor", "--json", bundles=lambda: there)[1]) == {
        "findings": [],
        "notes": [note],
    }
    assert proven("doctor", "--no-bundles", bundles=lambda: there)[1] == "healthy\n"


def test_a_database_rebuilt_from_bundles_says_the_same(proven: Command, tmp_path: Path) -> None:
    said = proven("status")[1], proven("show", "N7")[1]
    other = ("--db", str(tmp_path / "again.sqlite3"))
    proven(*other, "ingest", str(tmp_path / "0190-1"))
    proven("load", *other, "in-progress.yaml")
    assert (proven("status", *other)[1], proven("show", "N7", *other)[1]) == said


@pytest.mark.parametrize(
    "argv",
    [
        ("status",),
        ("next",),
        ("show", "N7"),
        ("run", "list"),
        ("run", "show", "0190"),
        ("run", "note", "0190", "text"),
        ("evidence", "list"),
        ("measure", "0190", "power", "1"),
        ("doctor",),
        ("load", "planned.yaml"),
    ],
)
def test_json_is_one_object_and_nothing_else(proven: Command, argv: tuple[str, ...]) -> None:
    for call in ((*argv, "--json"), ("--json", *argv)):
        code, out, err = proven(*call)
        assert (code, err) == (0, "")
        assert isinstance(json.loads(out), dict)


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("bogus",),
        ("run",),
        ("load",),
        ("ingest",),
        ("measure", "0190", "power", "much"),
        ("run", "list", "--limit", "0"),
        ("run", "list", "--grade", "best"),
        ("status", "--db", "postgresql://team/orch"),
        ("status", "--db", ":memory:"),
    ],
)
def test_what_cannot_be_meant_exits_2(tracker: Command, argv: tuple[str, ...]) -> None:
    code, out, err = tracker(*argv)
    assert (code, out) == (2, "")
    assert err


@pytest.mark.parametrize(
    ("argv", "code", "kind"),
    [(("status",), 1, "failed"), (("bogus",), 2, "usage"), (("status", "--db", ":memory:"), 2, "usage")],
)
def test_an_error_is_one_json_object_too(
    tracker: Command, argv: tuple[str, ...], code: int, kind: str
) -> None:
    found, out, err = tracker(*argv, "--json")
    assert found == code
    message = json.loads(out)["error"]["message"]
    assert out == json.dumps({"error": {"kind": kind, "message": message}}, indent=2) + "\n"
    assert err == f"tracker: {message}\n"


@pytest.mark.parametrize("value", ["x", "0", "-1", "1.5", "1000001", "9" * 400])
def test_a_wrong_limit_is_told_by_the_options_name_and_then_the_usage(tracker: Command, value: str) -> None:
    first, second = tracker("run", "list", "--limit", value)[2].splitlines()[:2]
    assert first == (f"tracker: argument --limit: (got {value[:40]}, expected a whole number, 1 to 1000000)")
    assert second.startswith("usage: tracker run list")


def test_version(tracker: Command) -> None:
    assert tracker("--version") == (0, "tracker 0\n", "")


def test_times_in_tables_are_to_the_second(tracker: Command, tmp_path: Path) -> None:
    started = {"started": "2026-11-29T09:00:00.123456Z"}
    tracker("ingest", str(building.build(tmp_path, "0190-1", extra=started)))
    assert tracker("run", "list")[1].splitlines()[1].endswith("  2026-11-29T09:00:00Z")
    assert "started    2026-11-29T09:00:00.123456Z" in tracker("run", "show", "last")[1]
    assert "STATE      GRADE  RUNS\ncompleted  host      1\n" in tracker("status")[1]


@pytest.mark.parametrize(("number", "said"), [(0, "0 items"), (1, "1 item"), (2, "2 items")])
def test_one_is_not_many(number: int, said: str) -> None:
    assert counted(number, "item") == said


@pytest.mark.parametrize("command", ["status", "doctor", "next"])
def test_a_bad_file_is_told_without_a_traceback(tracker: Command, tmp_path: Path, command: str) -> None:
    (tmp_path / "t.sqlite3").write_text("not a database, but long enough to look like one" * 40, "utf-8")
    code, out, err = tracker(command)
    assert (code, out) == (1, "")
    assert err == (
        f"tracker: {tmp_path / 't.sqlite3'}: not a database (got other content, expected an SQLite file)\n"
    )


def test_what_the_outputs_encoding_cannot_hold_is_escaped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", narrow)
    cli._say("Größe")
    assert narrow.buffer.getvalue() == b"Gr\\xf6\\xdfe\n"


def test_what_bundles_say_does_not_drive_the_terminal(tracker: Command, tmp_path: Path) -> None:
    tracker("ingest", str(building.build(tmp_path, "r1", lane="\x1b[2Jlane\n")))
    out = tracker("run", "list")[1]
    assert "\x1b" not in out
    assert "\\x1b[2Jlane\\n" in out


ROOT = Path(cli.__file__).parents[1]
START = (
    "import sys; from tracker.cli import main; from tracker.engine import Engine, Judge; "
    "engine = Engine('0', print, Judge('0', print), print, print, print, print); "
)
RUN = START + "sys.exit(main(sys.argv[1:], engine))"


def test_help_does_not_load_the_database_library() -> None:
    code = (
        "assert main(['--help'], engine) == 0; "
        "heavy = {'sqlalchemy', 'sqlite3', 'evidence', 'rich', 'pydantic'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run(
        [sys.executable, "-c", START + code], check=True, capture_output=True, cwd=ROOT, timeout=60
    )


def test_status_loads_no_more_than_it_needs(tmp_path: Path) -> None:
    open_store(str(tmp_path / "t.sqlite3"))
    code = (
        "assert main(['status', '--db', sys.argv[1]], engine) == 0; "
        "heavy = {'sqlalchemy.orm', 'evidence', 'rich', 'pydantic'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    argv = [sys.executable, "-c", START + code, str(tmp_path / "t.sqlite3")]
    subprocess.run(argv, check=True, capture_output=True, cwd=ROOT, timeout=60)


def on_terminal(*argv: str, **environment: str) -> str:
    """Run the command with a terminal as its stdout; gives what the terminal got."""
    ours, theirs = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if name not in {"TRACKER_DB", "NO_COLOR"}}
    subprocess.run(
        [sys.executable, "-c", RUN, *argv],
        stdout=theirs,
        env={**kept, "TERM": "xterm", **environment},
        cwd=ROOT,
        check=True,
        timeout=60,
    )
    os.close(theirs)
    said = os.read(ours, 65536).decode()
    os.close(ours)
    return said


def test_colour_is_for_terminals_only(proven: Command, tmp_path: Path) -> None:
    database = ("--db", str(tmp_path / "t.sqlite3"))
    assert "\x1b[32mpass" in on_terminal("run", "list", *database)
    assert "\x1b" not in on_terminal("run", "list", *database, NO_COLOR="1")
    assert "\x1b" not in on_terminal("run", "list", *database, TERM="dumb")
    assert "\x1b" not in proven("run", "list")[1]


@pytest.mark.usefixtures("proven")
def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    argv = [sys.executable, "-c", RUN, "run", "list", "--db", str(tmp_path / "t.sqlite3")]
    done = subprocess.run(argv, stdout=writer, stderr=subprocess.PIPE, cwd=ROOT, check=False, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
