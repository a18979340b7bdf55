from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from orchestrator.cli.project import find_bundle, find_project
from orchestrator.errors import RefusedError, UsageError


def bundle(folder: Path, name: str, time: str) -> Path:
    made = folder / name
    made.mkdir(parents=True)
    (made / "stream.jsonl").write_text(json.dumps({"time": time, "type": "orch.lane.started"}) + "\n")
    return made


def test_without_a_file_the_working_folder_is_used_and_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    project = find_project()
    assert (project.root, project.bundles, project.file) == (tmp_path, tmp_path / "runs", None)
    assert project.tracker_url == f"sqlite:///{tmp_path}/tracker.sqlite3"
    assert f"no orch.toml here or above: using {tmp_path}" in capsys.readouterr().err


def test_the_file_is_found_upward_and_its_paths_are_beside_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "orch.toml").write_text(
        'bundles = "kept"\nowner = "ada"\ntracker = "sqlite:///db/t.sqlite3"\n'
    )
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    project = find_project()
    assert project.file == tmp_path / "orch.toml"
    assert project.bundles == tmp_path / "kept"
    assert project.tracker_url == f"sqlite:///{tmp_path}/db/t.sqlite3"
    assert project.owner == "ada"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("url", "means"),
    [
        ("t.sqlite3", "sqlite:///{root}/t.sqlite3"),
        ("/srv/t.sqlite3", "sqlite:////srv/t.sqlite3"),
        ("sqlite:////srv/t.sqlite3", "sqlite:////srv/t.sqlite3"),
        ("postgresql://team/db", "postgresql://team/db"),
    ],
)
def test_a_database_is_beside_the_file_unless_it_says_where(url, means, tmp_path, monkeypatch):
    (tmp_path / "orch.toml").write_text(f'tracker = "{url}"\n')
    monkeypatch.chdir(tmp_path)
    assert find_project().tracker_url == means.format(root=tmp_path)


def test_a_wrong_file_is_refused_with_its_place(tmp_path, monkeypatch):
    (tmp_path / "orch.toml").write_text('bundels = "runs"\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError) as refused:
        find_project()
    assert [(refusal.label, refusal.where.line) for refusal in refused.value.refusals] == [("key-unknown", 1)]


def test_last_is_the_bundle_begun_last_whatever_its_name_and_file_times(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old = bundle(tmp_path / "runs", "z-lane", "2026-01-01T00:00:00.000000Z")
    new = bundle(tmp_path / "runs", "a-lane", "2026-01-02T00:00:00.000000Z")
    (tmp_path / "runs" / "no-bundle").mkdir()
    shutil.copytree(old, tmp_path / "runs" / "copy-made-later")
    assert find_bundle("last") == new


def test_a_bundle_is_named_by_path_or_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = bundle(tmp_path / "runs", "lane-1", "2026-01-01T00:00:00.000000Z")
    assert find_bundle("lane-1") == made
    assert find_bundle("runs/lane-1") == Path("runs/lane-1")
    assert find_bundle("last", tmp_path / "runs") == made


@pytest.mark.parametrize("name", ["last", "other"])
def test_no_bundle_is_said(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"no bundle|no such bundle"):
        find_bundle(name)
