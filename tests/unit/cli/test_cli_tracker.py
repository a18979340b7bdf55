"""What the console script hands to the tracker: lanes, bundles, the project's database."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import __version__
from orchestrator.cli.tracker import lane_file, main

LANE = "orch: lane/v1\nname: {}\nrun: run.yaml\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRACKER_DB", raising=False)
    return tmp_path


def test_a_lane_is_found_here_then_in_the_project_then_in_the_content(here: Path, monkeypatch):
    assert lane_file("samples") == Path("lanes/samples.yaml")
    (here / "orch.toml").write_text("")
    (here / "lanes").mkdir()
    (here / "lanes/other-name.yaml").write_text(LANE.format("samples"))
    assert lane_file("samples") == Path("lanes/other-name.yaml")
    inner = here / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert lane_file("samples") == here / "lanes/other-name.yaml"
    (inner / "samples.toml").write_text('orch = "lane/v1"\nname = "samples"\n')
    assert lane_file("samples") == Path("samples.toml")


def test_what_only_looks_like_the_lane_is_not_it(here: Path):
    (here / "lanes").mkdir()
    (here / "lanes/mine.yaml").write_text(LANE.format("yours"))
    (here / "lanes/mine.toml").write_text("not toml at all [")
    (here / "mine.yaml").mkdir()
    (here / "run.yaml").write_text("orch: run/v1\nname: mine\n")
    assert lane_file("mine") is None


def test_next_names_only_lanes_that_are_there(here: Path, capsys):
    (here / "programme.yaml").write_text(
        "orch: programme/v1\nmilestones: {M: m}\nitems:\n"
        "  A: {title: a, milestone: M, proof: {lane: samples, grade: host}}\n"
        "  B: {title: b, milestone: M, proof: {lane: nowhere, grade: physical}}\n"
    )
    assert main(["load", "programme.yaml"]) == 0
    assert capsys.readouterr().out == "1 milestone, 2 items\n"
    assert main(["next", "--json"]) == 0
    a, b = json.loads(capsys.readouterr().out)["items"]
    assert (a["command"], a["first"]) == ("orch run lanes/samples.yaml", [])
    assert b["command"] == ""
    assert [step.split(":")[0] for step in b["first"]] == [
        "there is no file of lane nowhere",
        "it needs pods",
    ]


def test_the_newest_bundle_is_looked_for_in_the_project(here: Path, capsys):
    assert main(["ingest", "last", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "usage"
    assert f"no bundle in {here / 'runs'}" in error["message"]


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tracker {__version__}\n"


def test_a_database_that_is_named_needs_no_project(here: Path, pytestconfig: pytest.Config):
    """Reading `orch.toml` costs as much as all the rest of `tracker status`."""
    (here / "orch.toml").write_text('owner = "ada"\n')
    (here / "programme.yaml").write_text("orch: programme/v1\nmilestones: {M: m}\nitems: {}\n")
    assert main(["--db", "t.sqlite3", "load", "programme.yaml"]) == 0
    code = (
        "import sys; from orchestrator.cli.tracker import main; assert main(sys.argv[1:]) == 0; "
        "heavy = {'pydantic', 'ruamel.yaml', 'rich', 'jinja2'} & set(sys.modules); assert not heavy, heavy"
    )
    argv = [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(pytestconfig.rootpath)!r}]; {code}"]
    subprocess.run([*argv, "--db", "t.sqlite3", "status"], check=True, capture_output=True, timeout=60)
