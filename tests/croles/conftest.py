from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from role_bench import CONTENT, Bench, benches
from role_plans import Case
from standin_bench import CARD, HOST, OTHER, Driver, sanitized

from orchestrator.build.standin import LIBCUDA, Card, StandIn, build_standin


@pytest.fixture
def bench(tmp_path: Path, program_cache: Path) -> Iterator[Callable[[Case], Bench]]:
    yield from benches(tmp_path, program_cache)


@pytest.fixture(scope="session")
def standin(program_cache: Path) -> StandIn:
    return build_standin(CONTENT, program_cache, HOST)


@pytest.fixture(params=["as-shipped", "sanitized"])
def driver(
    request: pytest.FixtureRequest, program_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Driver]:
    """A stand-in's driver in this process, with its work folder as the current one."""
    standin = request.getfixturevalue("standin")
    libcuda = standin.libcuda if request.param == "as-shipped" else sanitized(LIBCUDA, program_cache)

    def begin(cards: Sequence[Card] = (OTHER, CARD)) -> Driver:
        monkeypatch.chdir(tmp_path)
        return Driver(tmp_path, libcuda, cards)

    return begin


@pytest.fixture
def ready(driver: Callable[..., Driver]) -> Driver:
    """A driver with a context on the second of two cards."""
    made = driver()
    made.begin()
    return made
