"""Programs compiled ahead: there when a cell begins, in nobody's way where they cannot be made or used."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.build.compile import Made, build_programs
from orchestrator.plan.derive import Planned, derive
from orchestrator.qualify.matrix.ahead import Ahead
from orchestrator.spec.read import read_native_run

ROOT = Path(__file__).parents[3]


class StopError(Exception):
    pass


def never() -> None:
    raise StopError


@pytest.fixture(scope="module")
def planned() -> Planned:
    return derive(read_native_run(ROOT / "specs/runs/samples.yaml"))


def test_what_was_compiled_ahead_is_what_the_build_finds(planned: Planned, tmp_path: Path) -> None:
    pairings = tuple((role, Made("x86_64-linux")) for role in planned.plan.roles)
    with Ahead({"a/b/c": (planned.plan, pairings)}, ROOT, tmp_path) as ahead:
        ahead.wait("a/b/c", lambda: None)
    assert len(list((tmp_path / "programs").iterdir())) == len(pairings)
    build_programs(planned.plan, pairings, ROOT, tmp_path, check=never)


def test_what_cannot_be_built_is_left_to_the_cell_to_say(planned: Planned, tmp_path: Path) -> None:
    pairings = tuple((role, Made("no-such-target")) for role in planned.plan.roles)
    with Ahead({"a/b/c": (planned.plan, pairings)}, ROOT, tmp_path) as ahead:
        ahead.wait("a/b/c", lambda: None)
    assert not (tmp_path / "programs").exists()


def test_nothing_is_done_ahead_where_nothing_is_kept(planned: Planned) -> None:
    with Ahead({"a/b/c": (planned.plan, ())}, ROOT, None) as ahead:
        ahead.wait("a/b/c", never)


def test_a_wait_ends_when_the_lane_does(planned: Planned, tmp_path: Path) -> None:
    pairings = tuple((role, Made("x86_64-linux")) for role in planned.plan.roles)
    wanted = dict.fromkeys(("a", "b"), (planned.plan, pairings))
    with Ahead(wanted, ROOT, tmp_path) as ahead, pytest.raises(StopError):
        ahead.wait("b", never)
