"""A secret of the controller's environment is in nothing that a command prints, keeps or records."""

from __future__ import annotations

import json
import os
import subprocess
import sys

CANARY = "canary-7f3a9d52e1"
ENV = {"LAB_TOKEN": CANARY}


def test_a_lane_with_a_secret_in_a_file_leaves_no_bundle(orch, project):
    (run,) = (project / "specs" / "runs").iterdir()
    run.write_text(run.read_text(encoding="utf-8") + f"# {CANARY}\n", encoding="utf-8")
    for verb in ("run", "validate"):
        done = orch(verb, "lanes/first.yaml", "--json", cwd=project, **ENV)
        assert done.returncode == 1
        (refusal,) = json.loads(done.stdout)["refusals"]
        assert refusal["label"] == "secret-in-file"
        assert refusal["path"].endswith(run.name)
        assert CANARY not in done.stdout + done.stderr
        assert not list((project / "runs").glob("*/stream.jsonl"))
    assert orch("validate", "lanes/first.yaml", cwd=project).returncode == 0


def test_a_name_of_the_project_is_secret_too(orch, project):
    toml = project / "orch.toml"
    toml.write_text(toml.read_text(encoding="utf-8") + 'secrets = ["LAB_LOGIN"]\n', encoding="utf-8")
    system = next((project / "specs" / "systems").iterdir())
    system.write_text(system.read_text(encoding="utf-8") + f"# {CANARY}\n", encoding="utf-8")
    done = orch("validate", "lanes/first.yaml", cwd=project, LAB_LOGIN=CANARY)
    assert done.returncode == 1
    assert "secret-in-file" in done.stderr
    assert "LAB_LOGIN" in done.stderr


def test_a_programme_with_a_secret_is_not_loaded(orch, project):
    path = project / "programme.yaml"
    path.write_text(path.read_text(encoding="utf-8") + f"# {CANARY}\n", encoding="utf-8")
    done = orch("load", "programme.yaml", cwd=project, module="orchestrator.cli.tracker", **ENV)
    assert done.returncode == 1
    assert "secret-in-file" in done.stderr


def test_what_a_command_line_holds_is_neither_shown_nor_kept(orch, project):
    done = orch("show", CANARY, cwd=project, module="orchestrator.cli.tracker", **ENV)
    assert CANARY not in done.stdout + done.stderr
    done = orch("judge", CANARY, cwd=project, **ENV)
    assert done.returncode == 2
    assert CANARY not in done.stdout + done.stderr
    assert "[redacted]" in done.stderr


def test_the_log_of_a_bug_holds_none(project, tmp_path):
    cache = tmp_path / "cache"
    code = (
        "import sys\n"
        "from orchestrator.cli import boundary\n"
        "def broken(): raise RuntimeError('saw ' + sys.argv[1])\n"
        "sys.exit(boundary.guard(broken, command='orch', as_json=True))\n"
    )
    script = tmp_path / "broken.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script, CANARY],
        cwd=project,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": str(cache), **ENV},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    (log,) = (cache / "orch").glob("orch-bug-*.log")
    text = log.read_text(encoding="utf-8")
    assert "saw [redacted]" in text
    assert CANARY not in text + done.stdout + done.stderr


def test_a_passing_lane_with_a_canary_in_its_environment(orch, project):
    done = orch("run", "lanes/first.yaml", cwd=project, **ENV)
    assert done.returncode == 0, done.stderr
    for path in project.rglob("*"):
        if path.is_file():
            assert CANARY.encode() not in path.read_bytes(), path
