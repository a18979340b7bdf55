from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from orchestrator.cli.main import main


def test_what_init_writes_is_valid(project, orch):
    files = [
        "orch.toml",
        "programme.yaml",
        "lanes/first.yaml",
        "specs/runs/first.yaml",
        "specs/systems/first.yaml",
    ]
    done = orch("validate", *files, cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"{name}: valid" for name in files]


def test_every_file_names_a_schema_that_is_there(project):
    named = 0
    for path in (*project.rglob("*.yaml"), project / "orch.toml"):
        first = path.read_text(encoding="utf-8").splitlines()[0]
        schema = first.rpartition("=")[2] if "=" in first else first.split()[-1]
        assert json.loads((path.parent / schema).read_text(encoding="utf-8"))["title"], path
        named += 1
    assert named == 5


@pytest.mark.parametrize("there", ["orch.toml", "lanes/first.yaml", "specs/schema/run.schema.json"])
def test_nothing_is_overwritten_and_then_nothing_is_written(there, tmp_path, capsys):
    mine = tmp_path / there
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    assert main(["init", str(tmp_path)]) == 2
    assert there in capsys.readouterr().err
    assert mine.read_text() == "mine"
    assert sorted(tmp_path.rglob("*")) == before


def test_what_runs_make_stays_out_of_the_users_repository(project, orch):
    def git(*arguments: str):
        command = ["git", "-C", str(project), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    git("init", "-q")
    assert orch("load", "programme.yaml", cwd=project, module="orchestrator.cli.tracker").returncode == 0
    (project / "runs" / "first-1").mkdir()
    (project / "runs" / "first-1" / "stream.jsonl").write_text("")
    (project / "pods.yaml").write_text("")
    seen = git("status", "--porcelain", "--untracked-files=all").split()
    assert not [name for name in seen if name.startswith(("runs/", "tracker", "pods"))]
    assert "orch.toml" in seen


def test_a_repositorys_own_gitignore_is_left_as_it_is(tmp_path, capsys):
    (tmp_path / ".gitignore").write_text("mine\n")
    assert main(["init", str(tmp_path)]) == 0
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    assert "add tracker.sqlite3* and pods*.yaml to it" in capsys.readouterr().err
    assert (tmp_path / "runs" / ".gitignore").is_file()


def test_the_programme_loads(project, orch):
    done = orch("load", "programme.yaml", cwd=project, module="orchestrator.cli.tracker")
    assert (done.returncode, done.stderr) == (0, "")
    assert (project / "tracker.sqlite3").is_file()
    status = orch("status", "--json", cwd=project, module="orchestrator.cli.tracker")
    assert status.returncode == 0
    assert "The line is learned" in status.stdout


def test_default_is_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert Path("orch.toml").is_file()


@pytest.mark.parametrize("name", ["programme.yaml", "specs/schema/run.schema.json", "lanes", "specs/schema"])
def test_nothing_is_written_where_a_link_leads_nowhere(name, tmp_path, capsys):
    folder = tmp_path / "project"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).symlink_to(tmp_path / "elsewhere")
    before = sorted(tmp_path.rglob("*"))
    assert main(["init", str(folder)]) == 2
    assert name in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before
