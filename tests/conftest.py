"""What tests of several rooms share, made once for all of them; modules that they share lie beside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from once import Once


@pytest.fixture(scope="session")
def everyones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this session that all workers have in common."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def cache(everyones: Path) -> Path:
    """What `XDG_CACHE_HOME` may be: a program is compiled once for all tests, those in other workers too."""
    shared = everyones / "compiled"
    shared.mkdir(mode=0o700, exist_ok=True)
    return shared


@pytest.fixture(scope="session")
def program_cache(cache: Path) -> Path:
    """Where `orch` would keep programs."""
    return cache / "orch"


@pytest.fixture(scope="session")
def once(everyones: Path) -> Once:
    return Once(everyones / "once")
