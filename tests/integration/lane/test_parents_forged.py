"""Bundles that go on from a checkpoint, edited and sealed again so that it seems another run's."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lane_workshop import Workshop
from test_forged_bundles import seal_again
from test_never_happened import edit, journal

from evidence.digest import sha256_bytes
from evidence.verify import read_qualification
from orchestrator.qualify.judge import judge_bundle

PARENT = "parent/parent.json"


@pytest.fixture(scope="module")
def gone_on(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A bundle of a run that goes on from another run's checkpoint; made once."""
    workshop = Workshop(tmp_path_factory.mktemp("parents"), cache)
    code, first = workshop.run(workshop.lane("samples", updates="30", split="10"))
    assert code == 0, first
    code, result = workshop.run("lanes/changed.yaml", "--from", f"{first['bundle']}:checkpoint@10")
    assert code == 0, result
    return Path(result["bundle"])


@pytest.mark.parametrize(
    "changed",
    [
        {"run_id": "01a22874-c5cf-7274-9fa5-3a3ce3995489"},
        {"plan": "0" * 64},
        {"version": 9},
        {"epoch": 7},
        {"system": "0" * 64},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_parent_is_the_run_that_published_the_set(gone_on: Path, tmp_path: Path, changed: dict[str, Any]):
    bundle = tmp_path / gone_on.name
    shutil.copytree(gone_on, bundle)
    assert judge_bundle(bundle).agrees
    edit(bundle / PARENT, lambda value: value.update(changed))
    digest = sha256_bytes((bundle / PARENT).read_bytes())

    def begun(events: list[Any]) -> list[Any]:
        return [replace(events[0], data={**events[0].data, "parent_sha256": digest}), *events[1:]]

    journal(bundle, begun)
    told = read_qualification(bundle)["parent"]
    seal_again(bundle, parent={**told, **{key: changed[key] for key in told.keys() & changed.keys()}})
    judgement = judge_bundle(bundle)
    assert judgement.verdict != "pass"
    assert not judgement.agrees
