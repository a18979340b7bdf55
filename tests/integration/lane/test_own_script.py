"""A program of the user's own: the shipped one passes; a broken one is refused by the check made for it."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from covering import each
from lane_workshop import Workshop, events
from own_programs import BROKEN, LANE, RUN, SCRIPT, change, own

from orchestrator.qualify.judge import judge_bundle

SHORT = {"updates": "12", "split": "7"}


def failed(result: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Name -> check, of all checks that did not pass."""
    return {
        check["name"]: check
        for step in result["steps"]
        for check in step["checks"]
        if check["verdict"] not in ("pass", "not-applicable")
    }


def test_the_shipped_script_passes_with_its_own_setup(passed: Callable[[str], tuple[Path, Any]]) -> None:
    bundle, result = passed(LANE)
    assert result["verdict"] == "pass"
    assert len(result["losses"]) == 60
    assert (bundle / "steps/build/1/setup-2/trainer/exit").read_text() == "0\n"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """The bundle of a sound script's lane; do not write into it."""
    workshop = Workshop(tmp_path_factory.mktemp("own"), cache)
    own(workshop, lane=SHORT)
    code, result = workshop.run(LANE)
    assert code == 0, failed(result)
    return Path(result["bundle"])


def test_it_is_judged_elsewhere_with_all_else_gone(sound: Path, workshop: Workshop) -> None:
    shutil.copytree(sound, workshop.folder / "bundle")
    done = workshop.orch("judge", "bundle", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert workshop.orch("evidence", "verify", "bundle").returncode == 0


EXPECTED = {
    "unseeded noise": ("deterministic", "not deterministic: first at update 5: trainer: w[3] = "),
    "forgotten optimizer state": (
        "part-2-equals-uninterrupted",
        "state is lost at resume: first at update 8: trainer: v[0] = ",
    ),
    "forgotten data position": (
        "part-2-equals-uninterrupted",
        "state is lost at resume: first at update 8: trainer: position[0] = ",
    ),
    "written in place": ("cut-left-nothing-torn", "trainer: torn: "),
    "refusal that exits 0": ("changed-byte-refused", "trainer: exit 0"),
}


@pytest.mark.parametrize("variant", BROKEN)
def test_a_broken_script_is_refused_by_the_check_made_for_it(variant: str, workshop: Workshop) -> None:
    own(workshop, *BROKEN[variant], lane=SHORT)
    code, result = workshop.run(LANE)
    wrong = failed(result)
    name, said = EXPECTED[variant]
    assert code == 1
    assert result["verdict"] == "fail"
    assert name in wrong, wrong
    assert wrong[name]["got"].startswith(said), wrong[name]
    judgement = judge_bundle(Path(result["bundle"]))
    assert (judgement.verdict, judgement.agrees) == ("fail", True)
    assert workshop.strays() == []


@pytest.mark.parametrize("at", each(2, range(6, 78, 9)))
def test_a_killed_controller_is_no_loss(at: int, workshop: Workshop) -> None:
    own(workshop, lane=SHORT)
    controller = workshop.start("run", LANE)
    while controller.poll() is None and lines(workshop) < at:
        time.sleep(0.001)
    controller.send_signal(signal.SIGKILL)
    controller.communicate()
    code, result = workshop.run("--resume", "last")
    assert code == 0, failed(result)
    started = [
        (event["data"]["step"], event["data"]["attempt"], event["data"]["launch"])
        for event in events(Path(result["bundle"]))
        if event["type"] == "orch.launch.started"
    ]
    assert len(started) == len(set(started)), "a launch was started twice"
    assert workshop.strays() == []


def lines(workshop: Workshop) -> int:
    bundles = workshop.bundles()
    return (bundles[0] / "stream.jsonl").read_bytes().count(b"\n") if bundles else 0


def replace(bundle: Path, name: str, old: bytes, new: bytes) -> None:
    data = (bundle / name).read_bytes()
    assert old in data, name
    (bundle / name).write_bytes(data.replace(old, new, 1))


PART = "steps/split/1/part-2/trainer"
FORGERIES: dict[str, Callable[[Path], None]] = {
    "another loss": lambda b: replace(b, f"{PART}/progress", b" 0.", b" 1."),
    "another word": lambda b: replace(b, f"{PART}/checkpoint/state", b"sha256", b"sha255"),
    "another exit": lambda b: replace(b, "steps/refusals/1/changed-byte/trainer/exit", b"3", b"1"),
    "a cut that was none": lambda b: replace(
        b, "steps/refusals/1/cut/launch.json", b'"file_blocks":', b'"file_blocks":9'
    ),
    "a reference that was another": lambda b: replace(
        b, "steps/uninterrupted/1/reference/trainer/checkpoint/state", b'"w"', b'"v"'
    ),
    "another input": lambda b: replace(b, "steps/uninterrupted/1/run-1/launch.json", b"data", b"else"),
    "another script": lambda b: replace(b, f"specs/{SCRIPT}", b"KEEP = 32, 0.9", b"KEEP = 32, 0.8"),
    "no second run": lambda b: shutil.rmtree(b / "steps/uninterrupted/1/run-2"),
    "no cut": lambda b: shutil.rmtree(b / "steps/refusals/1/cut"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_bundle_is_no_pass(forgery: str, sound: Path, workshop: Workshop) -> None:
    bundle = workshop.folder / "bundle"
    shutil.copytree(sound, bundle)
    FORGERIES[forgery](bundle)
    assert judge_bundle(bundle).verdict != "pass"
    assert not judge_bundle(bundle).agrees


@pytest.mark.parametrize("where", [" >&2", ""])
def test_a_setup_that_fails_is_told_by_its_last_lines(where: str, workshop: Workshop) -> None:
    own(workshop)
    fails = f"echo no such package{where}; exit 7"
    setup = f'setup: [[sh, -c, "mkdir -p {{setup}}/made"], [sh, -c, "{fails}"], [touch, x]]'
    change(workshop.folder / RUN, ("  checkpoint: tensors\n", f"  checkpoint: tensors\n  {setup}\n"))
    code, result = workshop.run(LANE)
    assert code == 1
    assert failed(result)["setup-2-ended"]["got"] == "setup-failed: local: exit 7: no such package"
    assert not (Path(result["bundle"]) / "steps/build/1/setup-3").exists()
    assert workshop.strays() == []


def test_a_lane_that_is_stopped_in_its_setup_leaves_nothing(workshop: Workshop) -> None:
    own(workshop)
    change(
        workshop.folder / RUN,
        ("  checkpoint: tensors\n", "  checkpoint: tensors\n  setup: [[sleep, '600']]\n"),
    )
    controller = workshop.start("run", LANE)
    while not any(
        event["type"] == "orch.job.started" for bundle in workshop.bundles() for event in events(bundle)
    ):
        assert controller.poll() is None
        time.sleep(0.01)
    controller.send_signal(signal.SIGINT)
    controller.communicate()
    assert controller.returncode == 4
    assert workshop.strays() == []


def test_a_run_goes_on_from_another_runs_checkpoint(sound: Path, workshop: Workshop) -> None:
    own(workshop, lane={"updates": "16", "split": "7"})
    code, result = workshop.run(LANE, "--from", f"{sound}:checkpoint@12")
    assert code == 0, failed(result)
    bundle = Path(result["bundle"])
    first = (bundle / "steps/uninterrupted/1/run-1/trainer/progress").read_text().splitlines()[0]
    assert first.startswith("13 ")
    assert judge_bundle(bundle).agrees
    held = bundle / "parent/checkpoint/trainer/state"
    held.write_bytes(held.read_bytes()[:-1] + b"\1")
    assert judge_bundle(bundle).verdict != "pass"


def test_a_checkpoint_of_another_script_is_not_gone_on_from(sound: Path, workshop: Workshop) -> None:
    own(workshop, ("KEEP = 32, 0.9", "KEEP = 32, 0.8"), lane={"updates": "16", "split": "7"})
    done = workshop.orch("run", LANE, "--from", f"{sound}:checkpoint@12")
    assert done.returncode == 1
    assert "checkpoint-system" in done.stderr
    done = workshop.orch("run", LANE, "--from", f"{sound}:checkpoint@11")
    assert done.returncode == 1


def test_a_script_that_forgets_is_told_past_another_runs_checkpoint_too(workshop: Workshop) -> None:
    own(workshop, *BROKEN["forgotten optimizer state"], lane=SHORT)
    code, before = workshop.run(LANE)
    assert code == 1
    change(workshop.folder / LANE, ("updates: 12", "updates: 16"), ("split: 7", "split: 14"))
    code, result = workshop.run(LANE, "--from", f"{before['bundle']}:checkpoint@12")
    assert code == 1
    told = failed(result)["run-1-equals-reference"]["got"]  # the reference began at the beginning
    assert told.startswith("v[0] = "), told
