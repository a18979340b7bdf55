from __future__ import annotations

from pathlib import Path

import pytest

from tracker.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "tracker.sqlite3"))
