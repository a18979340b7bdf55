"""A desk to run `orch` at, and a compiler's cache that all of them share."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab.desk import Desk


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def desk(tmp_path: Path, cache: Path) -> Desk:
    (tmp_path / "desk").mkdir()
    return Desk(tmp_path / "desk", cache)
