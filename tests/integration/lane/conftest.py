"""Lanes run once a session, and folders to run more of them in."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lane_workshop import Workshop


@pytest.fixture
def workshop(tmp_path: Path, cache: Path) -> Workshop:
    return Workshop(tmp_path, cache)


@pytest.fixture(scope="session")
def passed(
    tmp_path_factory: pytest.TempPathFactory, cache: Path
) -> Callable[[str], tuple[Path, dict[str, Any]]]:
    """The bundle and result of a lane that passed, run once a session; do not write into it."""
    known: dict[str, tuple[Path, dict[str, Any]]] = {}

    def give(lane: str) -> tuple[Path, dict[str, Any]]:
        if lane not in known:
            workshop = Workshop(tmp_path_factory.mktemp("lane"), cache)
            code, result = workshop.run(lane)
            assert code == 0, result
            assert workshop.strays() == []
            known[lane] = Path(result["bundle"]), result
        return known[lane]

    return give


@pytest.fixture
def copied(passed: Callable[[str], tuple[Path, dict[str, Any]]], tmp_path: Path) -> Path:
    """A copy of the samples lane's bundle, to damage."""
    bundle, _ = passed("lanes/samples.yaml")
    target = tmp_path / bundle.name
    shutil.copytree(bundle, target)
    return target
