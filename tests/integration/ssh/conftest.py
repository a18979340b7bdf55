"""A desk to run `orch` at."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab.desk import Desk


@pytest.fixture
def desk(tmp_path: Path, cache: Path) -> Desk:
    (tmp_path / "desk").mkdir()
    return Desk(tmp_path / "desk", cache)
