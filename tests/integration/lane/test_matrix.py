"""A matrix over real cells: what passes and is compared, what a kill or a stop leaves, what a forger does."""

from __future__ import annotations

import json
import re
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from covering import some
from lane_workshop import ROOT, Workshop, events

from evidence.canonical import dumps, loads
from evidence.verify import verify
from orchestrator.qualify.matrix.judge import judge_cell, judge_matrix, judgement_of
from orchestrator.qualify.matrix.view import MatrixView, bundles_of
from tracker.sealed import read as read_sealed

SMALL = """\
orch: lane/v1
name: small
matrix:
  systems: {samples: ../specs/systems/samples.yaml, momentum: ../specs/systems/least-squares-momentum.yaml}
  shapes:
    pair: {topology: pair, shares: {coordinator: 1, worker: 2}}
  ownership:
    replicated: {}
    all: {parameters: partitioned, optimizer_state: partitioned, gradients: partitioned}
updates: UPDATES
split: 3
deadlines: {connect: 10s, round: 5s, run: 2m}
limits: {duration: DURATION}
"""
CELLS = ("samples/pair/replicated", "samples/pair/all", "momentum/pair/replicated", "momentum/pair/all")


def small(workshop: Workshop, *, updates: int = 5, duration: str = "10m") -> str:
    """A matrix of four cells, beside a copy of the specs."""
    shutil.copytree(ROOT / "specs", workshop.folder / "specs", dirs_exist_ok=True)
    (workshop.folder / "lanes").mkdir(exist_ok=True)
    text = SMALL.replace("UPDATES", str(updates)).replace("DURATION", duration)
    (workshop.folder / "lanes" / "small.yaml").write_text(text)
    return "lanes/small.yaml"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> tuple[Path, dict[str, Any], str]:
    """The bundle, result and complaints of a matrix that passed; do not write into it."""
    workshop = Workshop(tmp_path_factory.mktemp("matrix"), cache)
    run = workshop.orch("run", small(workshop), "--json", "--db", "t.sqlite3")
    assert run.returncode == 0, run.stderr
    assert workshop.strays() == []
    result = json.loads(run.stdout)
    return Path(result["bundle"]), result, run.stderr


@pytest.fixture
def copied(done: tuple[Path, dict[str, Any], str], tmp_path: Path) -> Path:
    return Path(shutil.copytree(done[0], tmp_path / "copied"))


def verdicts(bundle: Path, cell: str) -> dict[str, str]:
    view = MatrixView(bundle)
    outcome = judge_cell(view, next(each for each in view.cells if each.name == cell))
    return {check.name: str(check.verdict) for check in outcome.checks}


def test_every_cell_passes_under_one_seal(done: tuple[Path, dict[str, Any], str]):
    bundle, result, _ = done
    assert (result["verdict"], result["headline"]) == ("pass", "pass (4 of 4 cells passed)")
    assert [(step["name"], step["verdict"]) for step in result["steps"]] == [(cell, "pass") for cell in CELLS]
    assert verify(bundle, seal=result["seal"]) == ()
    assert [verify(each) for each in bundles_of(bundle)] == [()] * 4
    assert (bundle.parent / "t.sqlite3").exists() or (bundle.parent.parent / "t.sqlite3").exists()


def test_a_cell_is_compared_with_its_reference_and_with_the_oracle(done: tuple[Path, dict[str, Any], str]):
    checks = {step["name"]: [check["name"] for check in step["checks"]] for step in done[1]["steps"]}
    assert checks["samples/pair/replicated"] == ["as-declared", "sealed", "lane"]
    assert checks["samples/pair/all"][3:] == [
        "state-at-3-equals-replicated",
        "state-at-5-equals-replicated",
        "resumed-at-5-equals-replicated",
        "losses-equal-replicated",
    ]


def test_progress_in_plain_text_says_how_far_it_is(done: tuple[Path, dict[str, Any], str]):
    lines = [line for line in done[2].splitlines() if ": pass (" in line]
    assert [line.partition(":")[0] for line in lines] == list(CELLS)
    assert all("cells, 0:" in line for line in lines)
    assert [" left)" in line for line in lines] == [True, True, True, False]


def test_the_verdict_is_recomputed_from_the_bundle_alone(copied: Path):
    judgement = judgement_of(copied)
    assert judgement.differences == ()
    assert (judgement.verdict, judgement.grade, judgement.agrees) == ("pass", "host", True)


def test_the_tracker_reads_it_as_a_run(done: tuple[Path, dict[str, Any], str]):
    sealed = read_sealed(done[0])
    assert (sealed.lane, sealed.verdict, sealed.grade) == ("small", "pass", "host")
    assert sealed.plan == done[1]["plan"]


def test_a_cells_lane_runs_by_itself(copied: Path, workshop: Workshop):
    code, result = workshop.run(str(copied / "cells" / CELLS[1] / "lane.yaml"))
    assert (code, result["verdict"]) == (0, "pass")
    assert set(result["omitted"]) == {"refusals", "evaluate"}


def test_a_cell_of_other_files_is_not_as_declared(copied: Path):
    run = copied / "cells" / CELLS[1] / "run.yaml"
    run.write_text(run.read_text().replace('"worker": 2', '"worker": 3'))
    assert verdicts(copied, CELLS[1])["as-declared"] == "fail"


def test_another_cells_bundle_in_its_place_is_seen(copied: Path):
    """Same plan, same states, sound in itself: and yet not the one that the journal has the seal of."""
    first, second = (copied / "cells" / cell for cell in CELLS[:2])
    (own,), (other,) = second.glob("*/"), first.glob("*/")
    shutil.rmtree(own)
    shutil.copytree(other, second / own.name)
    found = verdicts(copied, CELLS[1])
    assert (found["as-declared"], found["sealed"]) == ("fail", "fail")


def test_a_second_bundle_of_a_cell_is_seen(copied: Path):
    (own,) = (copied / "cells" / CELLS[0]).glob("*/")
    shutil.copytree(own, own.with_name("a-second-one"))
    assert verdicts(copied, CELLS[0])["as-declared"] == "fail"


def test_a_cell_that_ran_cannot_be_taken_out_of_the_matrix(copied: Path):
    """An axis is shortened when its cells have run: what is left is whole, and the journal knows better."""
    declared = copied / "specs" / "lanes" / "small.yaml"
    text = declared.read_text()
    declared.write_text(text.replace(", momentum: ../specs/systems/least-squares-momentum.yaml", ""))
    assert declared.read_text() != text
    shutil.rmtree(copied / "cells" / "momentum")
    judgement = judge_matrix(copied)
    assert [step.name for step in judgement.steps] == list(CELLS[:2])
    assert judgement.verdict == "fail"


def test_another_state_than_the_references_is_seen(copied: Path):
    """The reference's manifest says another state: its own judge sees that, and so does the other cell's."""
    (manifest,) = (copied / "cells" / CELLS[0]).glob(
        "*/steps/uninterrupted/1/run-1/*/checkpoint/5.manifest.json"
    )
    value = loads(manifest.read_bytes())
    manifest.write_bytes(dumps({**value, "state": "0" * 64}))
    assert verdicts(copied, CELLS[0])["sealed"] == "fail"
    found = verdicts(copied, CELLS[1])
    assert [name for name, verdict in found.items() if verdict == "fail"] == ["state-at-5-equals-replicated"]


def test_a_verdict_that_was_not_earned_is_a_difference(copied: Path):
    changed = loads((copied / "qualification.json").read_bytes())
    changed["steps"][1]["verdict"] = "unknown"
    (copied / "qualification.json").write_bytes(dumps(changed))
    assert "step samples/pair/all" in judge_matrix(copied).differences[0]


def test_cells_that_were_asked_for_and_what_they_are_compared_with(workshop: Workshop):
    code, result = workshop.run(small(workshop), "--only", "momentum/*/all")
    assert code == 0
    assert [step["name"] for step in result["steps"]] == ["momentum/pair/replicated", "momentum/pair/all"]
    assert result["headline"] == "pass (2 of 4 cells passed)"
    assert set(result["omitted"]) == set(CELLS[:2])
    assert judgement_of(Path(result["bundle"])).agrees


def test_no_such_cell_is_a_usage_error(workshop: Workshop):
    run = workshop.orch("run", small(workshop), "--only", "momentum/star/*")
    assert run.returncode == 2
    assert "no cell is named so" in run.stderr
    assert workshop.bundles() == []


COUPLED = """\
orch: system/v1
name: coupled
kind: data-parallel
parameters: {w: {size: 10, initial: 0}}
sample: {x: 10, y: 1}
contribution: ["e = dot(w, x) - y", "g[i] = e * x[i]"]
update: ["norm = sqrt(dot(mean_g, mean_g)) + 1", "w[i] = w[i] - rate * mean_g[i] / norm"]
evaluate: ["loss = e * e"]
rate: 0.5
samples: {file: ../data/diabetes.csv}
numerics: binary64-ordered
"""


def test_a_cell_that_cannot_be_separated_is_shown_and_not_dropped(workshop: Workshop):
    lane = workshop.folder / small(workshop)
    (workshop.folder / "specs/systems/coupled.yaml").write_text(COUPLED)
    lane.write_text(
        lane.read_text().replace("systems: {", "systems: {coupled: ../specs/systems/coupled.yaml, ")
    )
    run = workshop.orch("run", "lanes/small.yaml", "--only", "coupled/*/*")
    assert run.returncode == 0, run.stderr
    assert "verdict: pass (1 of 5 cells passed; 1 not admitted)" in run.stdout
    assert "not admitted: coupled/pair/all\n  separability: " in run.stdout
    (bundle,) = workshop.bundles()
    judgement = judgement_of(bundle)
    assert judgement.agrees
    assert [(step.name, str(step.verdict)) for step in judgement.steps] == [
        ("coupled/pair/replicated", "pass"),
        ("coupled/pair/all", "not-applicable"),
    ]


KINDS = """\
  systems:
    narrow: ../specs/systems/least-squares-narrow.yaml
    coordinates: ../specs/systems/coordinates.yaml
    correlations: ../specs/systems/correlations.yaml
  shapes:
    pair: {topology: pair, shares: {coordinator: 1, worker: 2}}
    star: {topology: star, shares: {coordinator: 1, worker1: 0, worker2: 2}}
  ownership:
"""


def of_all_kinds(workshop: Workshop) -> str:
    """Small words, owners of coordinates, and coordinates by themselves, on two shapes."""
    lane = workshop.folder / small(workshop)
    axes = SMALL.partition("matrix:\n")[2].partition("    replicated")[0]
    lane.write_text(lane.read_text().replace(axes, KINDS))
    return "lanes/small.yaml"


def test_a_system_of_each_kind_is_held_to_what_it_must_be_the_equal_of(workshop: Workshop):
    run = workshop.orch("run", of_all_kinds(workshop))
    assert run.returncode == 0, run.stderr
    assert "verdict: pass (8 of 8 cells passed; 4 not admitted)" in run.stdout
    for kind, system in {"coordinate-owned": "coordinates", "independent": "correlations"}.items():
        said = (
            f"not admitted: {system}/pair/replicated, {system}/star/replicated\n  value-choice: owners have"
        )
        assert f"{said} their coordinates alone (got replicated, expected partitioned: {kind})" in run.stdout
        assert re.search(rf"{system} +star +not admitted +pass", run.stdout)
    (bundle,) = workshop.bundles()
    judgement = judgement_of(bundle)
    assert judgement.agrees
    further = {step.name: [check.name for check in step.checks][3:] for step in judgement.steps}
    against = ["state-at-3-equals-{}", "state-at-5-equals-{}", "resumed-at-5-equals-{}"]
    replicated = [*(each.format("replicated") for each in against), "losses-equal-replicated"]
    assert further["narrow/pair/all"] == further["narrow/star/all"] == replicated
    assert further["coordinates/pair/all"] == further["coordinates/star/all"] == []
    assert further["correlations/pair/all"] == []
    assert further["correlations/star/all"] == [each.format("pair") for each in against]

    (manifest,) = bundle.glob(
        "cells/correlations/pair/all/*/steps/uninterrupted/1/run-1/*/checkpoint/5.manifest.json"
    )
    manifest.write_bytes(dumps({**loads(manifest.read_bytes()), "state": "0" * 64}))
    found = verdicts(bundle, "correlations/star/all")
    assert [name for name, verdict in found.items() if verdict == "fail"] == ["state-at-5-equals-pair"]


def test_cells_that_are_all_not_admitted_are_no_run(workshop: Workshop):
    run = workshop.orch("run", of_all_kinds(workshop), "--only", "coordinates/*/replicated")
    assert run.returncode == 2
    assert "no cell that is named so is admitted" in run.stderr
    assert workshop.bundles() == []


def test_a_matrix_without_a_cell_that_is_admitted_is_refused(workshop: Workshop):
    lane = workshop.folder / of_all_kinds(workshop)
    text = lane.read_text().replace("    narrow: ../specs/systems/least-squares-narrow.yaml\n", "")
    lane.write_text("".join(line for line in text.splitlines(keepends=True) if "    all: " not in line))
    run = workshop.orch("run", "lanes/small.yaml")
    assert run.returncode == 1
    assert "value-choice: coordinates/pair/replicated: owners have their coordinates alone" in run.stderr
    assert workshop.bundles() == []


def finished(bundle: Path) -> list[str]:
    return [event["data"]["cell"] for event in events(bundle) if event["type"] == "orch.cell.finished"]


def wait_for_cell(workshop: Workshop, number: int) -> Path:
    """Until the roles of this many cells have been started; the matrix's bundle."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for bundle in workshop.bundles():
            streams = [each.read_bytes() for each in bundle.glob("cells/*/*/*/*/stream.jsonl")]
            if sum(b"orch.job.started" in stream for stream in streams) >= number:
                return bundle
        time.sleep(0.005)
    raise AssertionError("the cell did not begin")


@pytest.mark.parametrize("number", some([1, 2, 4], lambda number: number == 2))
def test_a_killed_matrix_goes_on_and_runs_no_cell_twice(workshop: Workshop, number: int):
    controller = workshop.start("run", small(workshop, updates=400))
    bundle = wait_for_cell(workshop, number)
    controller.kill()
    controller.communicate()
    before = finished(bundle)
    code, result = workshop.run("--resume", "last")
    assert (code, result.get("verdict")) == (0, "pass"), result
    assert workshop.bundles() == [bundle]
    assert finished(bundle)[: len(before)] == before
    assert Counter(finished(bundle)) == Counter(CELLS)
    assert [len(list(bundle.glob(f"cells/{cell}/*/stream.jsonl"))) for cell in CELLS] == [1] * 4
    assert judgement_of(bundle).agrees
    assert workshop.strays() == []


def test_one_interrupt_ends_the_cell_and_seals_as_unknown(workshop: Workshop):
    controller = workshop.start("run", small(workshop, updates=9_000_000), "--json")
    bundle = wait_for_cell(workshop, 1)
    controller.send_signal(signal.SIGINT)
    out, err = controller.communicate(timeout=60)
    assert controller.returncode == 4, err
    result = json.loads(out)
    assert [step["verdict"] for step in result["steps"]] == ["unknown"] * 4
    assert [step["reason"] for step in result["steps"]][1:] == ["not run: interrupted by SIGINT"] * 3
    assert verify(bundle, seal=result["seal"]) == ()
    assert judgement_of(bundle).agrees
    assert workshop.strays() == []


def test_the_limit_of_the_matrix_ends_the_cell_that_runs(workshop: Workshop):
    code, result = workshop.run(small(workshop, updates=9_000_000, duration="3s"))
    assert (code, result["verdict"]) == (4, "unknown")
    assert "limit-duration" in result["steps"][-1]["reason"]
    assert workshop.strays() == []


def test_stop_in_the_stead_of_a_controller_that_is_gone(workshop: Workshop):
    controller = workshop.start("run", small(workshop, updates=9_000_000))
    bundle = wait_for_cell(workshop, 1)
    controller.kill()
    controller.communicate()
    assert workshop.strays() != []
    assert "run-1" in workshop.orch("logs").stderr
    assert workshop.orch("stop").returncode == 0
    assert verify(bundle) == ()
    assert judgement_of(bundle).verdict == "unknown"
    assert workshop.strays() == []
    assert workshop.orch("clean").stdout == "nothing is left\n"


def test_a_matrix_is_planned_and_validated_without_a_bundle(workshop: Workshop):
    path = small(workshop)
    plan = json.loads(workshop.orch("plan", path, "--json").stdout)
    assert list(plan["plans"]) == list(CELLS)
    assert plan["devices"] == {"pair": {"coordinator": None, "worker": None}}
    assert workshop.orch("validate", path).returncode == 0
    assert "cells     4; each " in workshop.orch("plan", path).stdout


def test_a_matrix_is_for_this_machine_alone(workshop: Workshop, tmp_path: Path):
    run = workshop.orch("run", small(workshop), "--pods", str(tmp_path / "pods.yaml"))
    assert run.returncode == 1
    assert "pods-unsupported" in run.stderr


def test_a_matrix_that_was_begun_without_stand_ins_does_not_go_on_with_them(
    done: tuple[Path, dict[str, Any], str], workshop: Workshop
):
    run = workshop.orch("run", "--resume", str(done[0]), "--pods", "simulated")
    assert run.returncode == 1
    assert "pod-changed: the run was begun elsewhere (got simulated, expected local)" in run.stderr
