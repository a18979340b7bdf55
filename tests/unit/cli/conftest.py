from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Orch = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def cache_of_the_tests(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of provoked bugs, and programs, go where the tests' other files go."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


@pytest.fixture
def orch(tmp_path: Path, pytestconfig: pytest.Config) -> Orch:
    """The real command in a process of its own, in an empty folder unless another is given."""

    def run(*arguments: str, cwd: Path = tmp_path, module: str = "orchestrator", **env: str):
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(pytestconfig.rootpath), "TERM": "dumb", **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture
def project(tmp_path: Path, orch: Orch) -> Path:
    """A folder as `orch init` leaves it."""
    folder = tmp_path / "project"
    done = orch("init", str(folder))
    assert done.returncode == 0, done.stderr
    return folder
