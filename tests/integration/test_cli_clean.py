"""What a killed controller leaves on this machine, and `orch clean`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def project(
    tmp_path: Path, pytestconfig: pytest.Config, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    folder = tmp_path / "project"
    done = subprocess.run(
        **command(tmp_path, pytestconfig.rootpath, "init", "project"), timeout=60, check=False
    )
    assert done.returncode == 0
    # long enough that a signal finds it running
    lane = folder / "lanes" / "first.yaml"
    lane.write_text(lane.read_text().replace("updates: 30", "updates: 30000"), encoding="utf-8")
    return folder


def command(cwd: Path, checkout: Path, *arguments: str):
    temporary = cwd.parent if cwd.name == "project" else cwd
    own = {"PYTHONPATH": str(checkout), "TMPDIR": str(temporary)}
    return {
        "args": [sys.executable, "-m", "orchestrator", *arguments],
        "cwd": cwd,
        "env": {**os.environ, "TERM": "dumb", **own},
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
    }


@pytest.fixture
def running(project: Path, pytestconfig: pytest.Config) -> Iterator[subprocess.Popen[str]]:
    """A run whose uninterrupted step has begun."""
    with subprocess.Popen(
        **command(project, pytestconfig.rootpath, "run", "lanes/first.yaml", "--json")
    ) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if line == "uninterrupted: started\n":
                break
        assert run.poll() is None
        yield run
        if run.poll() is None:
            run.kill()


def orch(project: Path, pytestconfig: pytest.Config, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(**command(project, pytestconfig.rootpath, *arguments), timeout=300, check=False)


def test_clean_leaves_what_may_be_gone_on_with_unless_told(running, project, pytestconfig):
    running.kill()
    running.wait(timeout=60)
    deadline = time.monotonic() + 90
    while (state := _state(project, pytestconfig)) == "running" and time.monotonic() < deadline:
        time.sleep(0.2)  # the roles of a dead controller come to their own end
    assert state == "open"
    assert _state(project, pytestconfig, "--open") == "removed"
    assert orch(project, pytestconfig, "clean", "--open").stdout == "nothing is left\n"


def _state(project: Path, pytestconfig: pytest.Config, *arguments: str) -> str:
    (left,) = json.loads(orch(project, pytestconfig, "clean", "--json", *arguments).stdout)["left"]
    return left["state"]
