from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from role_bench import Bench, benches
from role_plans import Case


@pytest.fixture(scope="session")
def program_cache(cache: Path) -> Path:
    """Programs that several tests run are compiled once; where `orch` would keep them."""
    return cache / "orch"


@pytest.fixture
def bench(tmp_path: Path, program_cache: Path) -> Iterator[Callable[[Case], Bench]]:
    yield from benches(tmp_path, program_cache)
