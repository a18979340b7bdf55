"""`orch stop` on this machine: by the controller, or in its stead."""

from __future__ import annotations

import json
import os
import signal

from test_cli_clean import orch, project, running  # noqa: F401 - fixtures

from orchestrator.cli.commands import stop
from orchestrator.cli.main import main


def test_the_controller_is_asked(running, project, pytestconfig):  # noqa: F811
    done = orch(project, pytestconfig, "stop", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["state"] == "stopped"
    assert f"process {running.pid}" in done.stderr
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 4
    assert json.loads(out)["seal"] == said["seal"]
    again = orch(project, pytestconfig, "stop")
    assert again.returncode == 0
    assert again.stdout.startswith("ended before: ")


def test_in_the_stead_of_a_controller_that_is_gone(running, project, pytestconfig):  # noqa: F811
    running.kill()
    running.wait(timeout=60)
    done = orch(project, pytestconfig, "stop")
    assert done.returncode == 0, done.stderr
    assert "no controller has it" in done.stderr
    judged = orch(project, pytestconfig, "judge", "last", "--json")
    assert json.loads(judged.stdout)["verdict"] == "unknown"
    assert orch(project, pytestconfig, "clean").stdout == "nothing is left\n"


def test_a_controller_that_does_not_answer_is_named(running, project, monkeypatch):  # noqa: F811
    os.kill(running.pid, signal.SIGSTOP)
    try:
        monkeypatch.chdir(project)
        monkeypatch.setattr(stop, "_PATIENCE_S", 1.0)
        assert main(["stop"]) == 4
    finally:
        os.kill(running.pid, signal.SIGCONT)
    running.communicate(timeout=120)
    assert running.returncode == 4


def test_there_is_nothing_to_stop(project, pytestconfig):  # noqa: F811
    assert orch(project, pytestconfig, "stop").returncode == 2
