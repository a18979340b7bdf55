"""Lanes run once a session, and folders to run more of them in."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lane_workshop import Workshop
from once import Once


@pytest.fixture
def workshop(tmp_path: Path, cache: Path) -> Workshop:
    return Workshop(tmp_path, cache)


@pytest.fixture(scope="session")
def passed(once: Once, cache: Path) -> Callable[..., tuple[Path, dict[str, Any]]]:
    """The bundle and result of a lane that passed, run once for all tests; do not write into it."""

    def give(lane: str, *more: str) -> tuple[Path, dict[str, Any]]:
        def make(folder: Path) -> dict[str, Any]:
            workshop = Workshop(folder, cache)
            code, result = workshop.run(lane, *more)
            assert code == 0, result
            assert workshop.strays() == []
            return result

        result = once(Path(lane).stem, make)
        return Path(result["bundle"]), result

    return give


@pytest.fixture
def copied(passed: Callable[[str], tuple[Path, dict[str, Any]]], tmp_path: Path) -> Path:
    """A copy of the samples lane's bundle, to damage."""
    bundle, _ = passed("lanes/samples.yaml")
    target = tmp_path / bundle.name
    shutil.copytree(bundle, target)
    return target
