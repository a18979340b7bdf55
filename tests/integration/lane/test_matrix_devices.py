"""A matrix with device roles, on stand-ins: what its cells run on and keep, and what it says of itself."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lane_workshop import ROOT, Workshop, events

from evidence.stream import Stream
from evidence.verify import read_qualification, verify
from orchestrator.qualify.matrix.judge import judge_cell, judgement_of
from orchestrator.qualify.matrix.view import MatrixView, bundles_of
from orchestrator.spec.read import read_lane
from tracker.sealed import read as read_sealed

OWN, OTHER = "our-card", "nvidia-geforce-rtx-3090"
MATRIX = f"""\
orch: lane/v1
name: cards
matrix:
  systems: {{samples: ../specs/systems/samples.yaml}}
  shapes:
    mixed: {{topology: pair, shares: {{coordinator: 1, worker: 2}}, devices: [host, {OWN}]}}
    bare: {{topology: pair, shares: {{coordinator: 1, worker: 2}}}}
  ownership: {{replicated: {{}}, all: {{parameters: partitioned, optimizer_state: partitioned}}}}
updates: 2
split: 1
swap: {{{OWN}: {OTHER}}}
deadlines: {{connect: 10s, round: 5s, run: 2m}}
"""
MIXED, ALL, BARE = CELLS = ("samples/mixed/replicated", "samples/mixed/all", "samples/bare/replicated")
SIMULATED = ("--pods", "simulated")


def written(workshop: Workshop, text: str = MATRIX) -> str:
    """The matrix beside a copy of the specs, with a profile of the project's own."""
    shutil.copytree(ROOT / "specs", workshop.folder / "specs", dirs_exist_ok=True)
    devices = workshop.folder / "specs" / "devices"
    profile = (devices / "nvidia-geforce-rtx-3070.yaml").read_text()
    (devices / f"{OWN}.yaml").write_text(re.sub(r"(?m)^name: .*$", f"name: {OWN}", profile))
    (devices / f"{OTHER}.yaml").unlink(missing_ok=True)  # of this there is the one that came with orch
    (workshop.folder / "lanes").mkdir(exist_ok=True)
    (workshop.folder / "lanes" / "cards.yaml").write_text(text)
    return "lanes/cards.yaml"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> tuple[Path, dict[str, Any]]:
    """The bundle and result of the matrix, whose project is there no more; do not write into it."""
    workshop = Workshop(tmp_path_factory.mktemp("cards"), cache)
    only = ("--only", "samples/mixed/all", "--only", "samples/bare/replicated")
    code, result = workshop.run(written(workshop), *SIMULATED, *only, "--db", "t.sqlite3")
    assert code == 0, result
    assert workshop.strays() == []
    shutil.rmtree(workshop.folder / "specs")
    return Path(result["bundle"]), result


def begun(bundle: Path, cell: str) -> dict[str, Any]:
    """What the first event of a cell's bundle says."""
    (inner,) = (bundle / "cells" / cell).glob("*/stream.jsonl")
    data: dict[str, Any] = events(inner.parent)[0]["data"]
    return data


def test_the_least_grade_of_a_cell_is_the_matrix_s_and_is_said_everywhere(done: tuple[Path, dict[str, Any]]):
    bundle, result = done
    assert [(step["name"], step["verdict"]) for step in result["steps"]] == [(cell, "pass") for cell in CELLS]
    assert (result["grade"], result["headline"]) == (
        "simulated",
        "pass (3 of 4 cells passed; simulated: no card was there)",
    )
    assert verify(bundle, seal=result["seal"]) == ()
    assert read_qualification(bundle)["grade"] == read_sealed(bundle).grade == "simulated"
    judgement = judgement_of(bundle)
    assert (judgement.grade, judgement.differences) == ("simulated", ())
    assert sorted(read_qualification(each)["grade"] for each in bundles_of(bundle)) == [
        "host",
        "simulated",
        "simulated",
    ]


def test_a_cell_without_a_card_is_not_simulated(done: tuple[Path, dict[str, Any]]):
    bundle, _ = done
    assert [begun(bundle, cell)["pods"] for cell in CELLS] == ["simulated", "simulated", "local"]
    assert [event["data"]["pods"] for event in events(bundle)[:1]] == ["simulated"]


def test_each_cell_keeps_the_profiles_of_its_cards(done: tuple[Path, dict[str, Any]]):
    bundle, _ = done
    lane = read_lane(bundle / "cells" / ALL / "lane.yaml")
    assert [device and device.name for device in lane.run.devices] == [None, OWN]
    assert (lane.swap, list(lane.profiles)) == ({OWN: OTHER}, [OTHER])
    assert read_lane(bundle / "cells" / BARE / "lane.yaml").swap == {}
    for inner in bundles_of(bundle):
        kept = {path.stem for path in inner.rglob("specs/**/devices/*.yaml")}
        assert kept == (set() if BARE in inner.as_posix() else {OWN, OTHER})


def test_the_resumed_part_is_on_the_other_card(done: tuple[Path, dict[str, Any]]):
    (inner,) = (done[0] / "cells" / ALL).glob("*/binding.json")
    said = json.loads(inner.read_bytes())
    profiles = [said[key]["worker"]["device"]["profile"] for key in ("roles", "swapped")]
    assert profiles == [OWN, OTHER]
    stdout = "steps/host-shadow/1/shadowed/worker/stdout"
    assert json.loads((inner.parent / stdout).read_bytes())["device"]["shadowed"] is True


def in_a_profile(bundle: Path) -> None:
    kept = bundle / "cells" / "samples" / "mixed" / "devices" / f"{OWN}.yaml"
    kept.write_text(kept.read_text() + "# changed\n")


def in_the_place(bundle: Path) -> None:
    """Of the matrix: then no cell of it had stand-ins."""
    path, before = bundle / "stream.jsonl", events(bundle)
    path.unlink()
    with Stream.create(path, before[0]["source"]) as stream:
        for event in before:
            at = {"pods": "local"} if "pods" in event["data"] else {}
            stream.append(event["type"], event["subject"], event["data"] | at)


@pytest.mark.parametrize("spoil", [in_a_profile, in_the_place])
def test_a_cell_on_other_cards_is_not_as_declared(
    done: tuple[Path, dict[str, Any]], tmp_path: Path, spoil: Callable[[Path], None]
):
    bundle = Path(shutil.copytree(done[0], tmp_path / "copied"))
    spoil(bundle)
    view = MatrixView(bundle)
    outcome = judge_cell(view, next(each for each in view.cells if each.name == ALL))
    assert [check.name for check in outcome.checks if check.verdict == "fail"] == ["as-declared"]


def test_a_plan_says_whose_card_is_which(workshop: Workshop):
    said = workshop.orch("plan", written(workshop)).stdout
    assert f"\ndevices   mixed: coordinator host, worker {OWN}\n\n" in said


def test_without_a_card_the_way_out_is_named_before_anything_is_begun(workshop: Workshop):
    run = workshop.orch("run", written(workshop))
    assert run.returncode == 1
    assert "local: device-absent: " in run.stderr
    assert "--pods simulated" in run.stderr
    assert "`--only` names the cells" in run.stderr
    assert "`--pods FILE` names machines" not in run.stderr
    assert workshop.bundles() == []


def test_where_no_cell_has_a_card_there_is_nothing_to_simulate(workshop: Workshop):
    run = workshop.orch("run", written(workshop), *SIMULATED, "--only", "samples/bare/*")
    assert run.returncode == 1
    assert "pods-unsupported: there is nothing to simulate" in run.stderr
    assert workshop.bundles() == []
