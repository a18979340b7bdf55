"""Device roles on stand-ins: whole lanes, the controls, and that nothing of it can pass for a real card."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lane_workshop import Workshop, events
from test_mutants import content, failed

from evidence import bundle as bundles
from evidence.canonical import dumps
from evidence.digest import sha256_file
from evidence.stream import Stream
from evidence.verify import read_qualification, verify
from orchestrator.build.standin import Card, build_standin, calls, cards_text
from orchestrator.oracle.checkpoint import MANIFEST, read_set
from orchestrator.oracle.kinds import reference_of
from orchestrator.plan.derive import derive
from orchestrator.qualify import card_checks
from orchestrator.qualify.checks import STEPS
from orchestrator.qualify.grade import grade_of
from orchestrator.qualify.judge import judge_bundle, judge_step
from orchestrator.qualify.steps import preflight, split
from orchestrator.qualify.traces import stand_in_traces
from orchestrator.qualify.view import View
from orchestrator.spec.read import read_lane

Passed = Callable[..., tuple[Path, dict[str, Any]]]
ROOT = Path(__file__).resolve().parents[3]
SIMULATED = ("--pods", "simulated")
LANES = ("lanes/samples-gpu.yaml", "lanes/adam-gpu.yaml")
SHORT = "{refusals: shown elsewhere, split: shown elsewhere, evaluate: shown elsewhere}"


def lines(bundle: Path, launch: str) -> dict[str, dict[str, Any]]:
    return {
        path.parent.name: json.loads(path.read_bytes()) for path in bundle.glob(f"steps/{launch}/*/stdout")
    }


@pytest.mark.parametrize("lane", LANES)
def test_a_device_lane_passes_whole_and_says_that_it_is_simulated(passed: Passed, lane: str):
    bundle, result = passed(lane, *SIMULATED)
    assert (result["verdict"], result["grade"], result["omitted"]) == ("pass", "simulated", {})
    assert result["headline"] == "pass (simulated: no card was there)"
    assert tuple(step["name"] for step in result["steps"]) == STEPS
    assert {step["verdict"] for step in result["steps"]} == {"pass"}
    assert verify(bundle, seal=result["seal"]) == ()
    assert judge_bundle(bundle).agrees
    bound = json.loads((bundle / "binding.json").read_bytes())["roles"]
    said = lines(bundle, "host-shadow/1/shadowed")
    cards = {role: line["device"] for role, line in said.items() if "device" in line}
    assert sorted(cards) == sorted(role for role, each in bound.items() if each["device"])
    for role, card in cards.items():
        device = bound[role]["device"]
        assert (card["simulated"], card["shadowed"], device["simulated"]) == (True, True, True)
        assert {key: card[key] for key in ("minor", "uuid", "product")} == {
            key: device[key] for key in ("minor", "uuid", "product")
        }
    assert len({card["uuid"] for card in cards.values()}) == len(cards)


@pytest.mark.parametrize("lane", LANES)
def test_checkpoints_of_cards_are_the_references(passed: Passed, lane: str):
    bundle, _ = passed(lane, *SIMULATED)
    spec = read_lane(ROOT / lane)
    planned = derive(spec.run)
    expected = reference_of(planned.plan, planned.words).at(spec.updates)
    for launch in ("uninterrupted/1/run-1", "split/1/part-2", "host-shadow/1/shadowed"):
        files = {
            MANIFEST if path.name == f"{spec.updates}.manifest.json" else path.name: path.read_bytes()
            for path in bundle.glob(f"steps/{launch}/*/checkpoint/{spec.updates}.*")
        }
        assert read_set(planned.plan.system, files).words == expected.words


def test_cards_and_hosts_publish_the_same_words(passed: Passed):
    """The same plan on two hosts: nothing of plan or progress says what computed it."""
    hosts, cards = passed("lanes/samples.yaml")[0], passed(LANES[0], *SIMULATED)[0]
    assert sha256_file(hosts / "plan.json") == sha256_file(cards / "plan.json")
    for role in ("coordinator", "worker"):
        progress = [
            (each / f"steps/uninterrupted/1/run-1/{role}/progress").read_bytes() for each in (hosts, cards)
        ]
        assert progress[0] == progress[1]


def test_roles_exchange_their_cards_when_profiles_are_swapped(workshop: Workshop):
    lane = workshop.lane("coordinates-swap", omit="{refusals: shown elsewhere}")
    code, result = workshop.run(lane, *SIMULATED, "--db", "t.sqlite3")
    assert (code, result["verdict"], result["grade"]) == (0, "pass", "simulated")
    bundle = Path(result["bundle"])
    first, second = (lines(bundle, f"split/1/part-{part}") for part in (1, 2))
    uuids = [[line["device"]["uuid"] for line in each.values()] for each in (first, second)]
    assert uuids[0] == uuids[1][::-1]
    assert first["coordinator"]["device"]["product"] != second["coordinator"]["device"]["product"]
    assert judge_bundle(bundle).agrees


CONTROLS = {
    "device-uuid": 0,
    "device-minor": 0,
    "nvidia-plan-host": 0,
    "device-minor-twice": 0,
    "device-library": 0,
    "device-memory": 1,
    "device-lost": 1,
}


@pytest.mark.parametrize("control", CONTROLS)
def test_a_wrong_card_is_refused_by_its_label_and_no_other_is_touched(passed: Passed, control: str):
    bundle, _ = passed(LANES[1], *SIMULATED)
    folder = bundle / "steps/refusals/1" / control
    launched = {path.parent.name for path in folder.glob("*/stderr")}
    bound = json.loads((bundle / "binding.json").read_bytes())["roles"]
    devices = {role: each["device"] for role, each in bound.items() if each["device"]}
    says = dict.fromkeys(devices, control)
    if control == "device-lost":
        says = {role: control if role == "worker2" else "peer-lost" for role in bound}
    assert launched == set(says)
    for role, label in says.items():
        assert (folder / role / "stderr").read_text() == f"{label}\n"
        assert (folder / role / "stdout").read_bytes() == b""
        assert not (folder / role / "checkpoint").exists()
        counted = folder / role / "standin-calls"
        touched = [each for each in calls(counted.read_text()) if each.calls] if counted.exists() else []
        assert {each.minor for each in touched} <= {(devices.get(role) or {}).get("minor")}
        if not CONTROLS[control]:
            assert not any(each.allocations or each.launches for each in touched)


def test_four_owners_of_coordinates_on_four_cards(workshop: Workshop):
    code, result = workshop.run(workshop.lane("independent", omit=SHORT), *SIMULATED, "--db", "t.sqlite3")
    assert (code, result["verdict"], result["grade"]) == (0, "pass", "simulated")
    said = lines(Path(result["bundle"]), "uninterrupted/1/run-1")
    cards = {line["device"]["uuid"] for line in said.values()}
    assert len(cards) == 4


def test_a_build_that_reads_its_hosts_copy_fails_the_shadow_control_alone(workshop: Workshop):
    def reads_the_copy(text: str) -> str:
        text = text.replace(
            "void learner_contribute(",
            "static word captured;\nstatic int is_captured;\n\nvoid learner_contribute(",
        )
        text = text.replace(
            "    combined[MASS_WORD] = (word)ROLE_MASS;",
            "    if (is_captured)\n        combined[0] += learner_field(0)[0] - captured;\n"
            "    combined[MASS_WORD] = (word)ROLE_MASS;",
        )
        return text.replace(
            "    read(learner_field(0), STATE, HELD_WORDS);",
            "    read(learner_field(0), STATE, HELD_WORDS);\n"
            "    captured = learner_field(0)[0];\n    is_captured = 1;",
        )

    lane = workshop.lane("samples-gpu", omit=SHORT)
    mutant = content(workshop, "native/learner_device.c", reads_the_copy)
    code, result = workshop.run(lane, *SIMULATED, "--content", mutant, "--db", "t.sqlite3")
    assert (code, result["verdict"]) == (1, "fail")
    assert {step["name"]: step["verdict"] for step in result["steps"]}["uninterrupted"] == "pass"
    assert {step for step, _ in failed(result)} == {"host-shadow"}
    assert "shadowed-trajectory" in {check["name"] for _, check in failed(result)}


def test_without_a_card_the_way_out_is_named(workshop: Workshop):
    done = workshop.orch("run", "lanes/samples-gpu.yaml")
    assert done.returncode == 1
    for role, product in (("coordinator", "RTX 3070"), ("worker", "RTX 3090")):
        assert f"local: device-absent: no card is left for {role} on this machine" in done.stderr
        assert f"expected NVIDIA GeForce {product})" in done.stderr
    assert "--pods simulated" in done.stderr
    assert "--pods FILE" in done.stderr
    assert workshop.bundles() == []


def test_a_stand_in_in_the_path_is_no_card_of_this_machine(
    workshop: Workshop, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
):
    cards = (
        Card(3, "GPU-" + "1" * 8 + "-1111" * 3 + "-" + "1" * 12, "0000:01:00.0", "8.6", 8192, 0, "1.2", "X"),
    )
    (tmp_path / "cards").write_text(cards_text(cards))
    (tmp_path / "smi").write_bytes(build_standin(ROOT, cache, f"{os.uname().machine}-linux").nvidia_smi)
    (tmp_path / "nvidia-smi").write_text(f'#!/bin/sh\ncd {tmp_path} && exec ./smi "$@"\n')
    for name in ("smi", "nvidia-smi"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    done = workshop.orch("run", "lanes/samples-gpu.yaml")
    assert done.returncode == 1
    assert "local: device-simulated: " in done.stderr
    assert workshop.bundles() == []


def test_a_checkpoint_of_one_pair_of_profiles_goes_on_with_another(passed: Passed, workshop: Workshop):
    bundle, _ = passed(LANES[0], *SIMULATED)
    lane = workshop.lane("samples-gpu", updates="8", split="6", omit=SHORT)
    run = workshop.folder / "specs/runs/samples-gpu.yaml"
    text = run.read_text().replace("3070", "there").replace("3090", "3070").replace("there", "3090")
    run.write_text(text)
    origin = f"{bundle}:checkpoint@5"
    code, result = workshop.run(lane, *SIMULATED, "--from", origin, "--db", "t.sqlite3")
    assert (code, result["verdict"]) == (0, "pass")
    before, after = (
        {role: line["device"]["product"] for role, line in lines(each, "uninterrupted/1/run-1").items()}
        for each in (bundle, Path(result["bundle"]))
    )
    assert before == {"coordinator": after["worker"], "worker": after["coordinator"]}


def test_a_card_that_is_another_by_now_is_refused_before_a_step(passed: Passed, tmp_path: Path):
    bundle = Path(shutil.copytree(passed(LANES[0], *SIMULATED)[0], tmp_path / "copied"))
    card = json.loads((bundle / "binding.json").read_bytes())["roles"]["worker"]["device"]
    other = "GPU-00000000-0000-0000-0000-000000000000"
    edit(
        bundle,
        "steps/split/1/cards/local/*",
        lambda data: data.replace(card["uuid"].encode(), other.encode()),
    )
    view = View(bundle)
    (refusal,) = card_checks.refusals(view, "steps/split/1")
    assert (refusal.label, refusal.where.path) == ("device-uuid", "local")
    assert f"got {other}, expected {card['uuid']}" in refusal.message
    assert card_checks.refusals(view, "steps/uninterrupted/1") == ()
    wrong = {check.name for check in judge_step(view, split).checks if check.verdict == "fail"}
    assert wrong == {"cards", "journal", "judged-before"}


def test_a_card_that_would_not_hold_its_role_is_refused_in_preflight(passed: Passed, tmp_path: Path):
    """Its profile knows of less, under every driver, than the role has been given."""
    bundle = Path(shutil.copytree(passed(LANES[0], *SIMULATED)[0], tmp_path / "copied"))
    edit(
        bundle, "specs/**/nvidia-geforce-rtx-3090.yaml", lambda data: data.replace(b"24576 MiB", b"1000 MiB")
    )
    rows = {check.name: check for check in preflight.judge(View(bundle))}
    assert rows["coordinator-video-memory"].verdict == "pass"
    assert rows["worker-video-memory"].verdict == "fail"
    assert rows["worker-video-memory"].got.startswith("capacity-exceeded: video memory of local/GPU-")


def test_a_run_whose_cards_were_exchanged_is_not_taken_up(passed: Passed, workshop: Workshop, tmp_path: Path):
    bundle = Path(shutil.copytree(passed(LANES[0], *SIMULATED)[0], tmp_path / "copied"))
    bundles_journal_as_it_is(bundle)
    edit(bundle, "cards.json", lambda data: data.replace(b'"minor":3', b'"minor":1'))
    done = workshop.orch("run", "--resume", str(bundle))
    assert done.returncode == 1
    assert "cards.json: file-unreadable: the run's cards are not to be read" in done.stderr


def test_a_simulated_run_does_not_go_on_as_another(passed: Passed, workshop: Workshop, tmp_path: Path):
    bundle = Path(shutil.copytree(passed(LANES[0], *SIMULATED)[0], tmp_path / "copied"))
    bundles_journal_as_it_is(bundle)
    for pods in ("local", "pods.yaml"):
        done = workshop.orch("run", "--resume", str(bundle), "--pods", pods)
        assert done.returncode == 1
        assert f"pod-changed: the run was begun elsewhere (got {pods}, expected simulated)" in done.stderr


def test_a_cleared_temporary_folder_does_not_take_the_stand_ins_along(workshop: Workshop):
    lane = workshop.lane("samples-gpu", omit=SHORT)
    controller = workshop.start("run", lane, *SIMULATED, "--db", "t.sqlite3")
    while controller.poll() is None and not any(
        event["type"] == "orch.step.judged" and event["data"]["step"] == "build"
        for bundle in workshop.bundles()
        for event in events(bundle)
    ):
        time.sleep(0.002)
    assert controller.poll() is None
    controller.kill()
    controller.communicate()
    (bundle,) = workshop.bundles()
    pinned = (bundle / "cards.json").read_bytes()
    shutil.rmtree(
        next(event["data"]["path"] for event in events(bundle) if event["type"] == "orch.remote.root")
    )
    code, result = workshop.run("--resume", "last", "--db", "t.sqlite3")
    assert (code, result["verdict"], result["grade"]) == (0, "pass", "simulated"), result
    assert (bundle / "cards.json").read_bytes() == pinned
    assert verify(bundle, seal=result["seal"]) == ()


def edit(bundle: Path, pattern: str, change: Callable[[bytes], bytes]) -> None:
    for path in bundle.glob(pattern):
        path.write_bytes(change(path.read_bytes()))


def in_journal(bundle: Path) -> None:
    """Begun on this machine with its own cards, where nobody put a stand-in; the journal is whole again."""
    path = bundle / "stream.jsonl"
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    path.unlink()
    with Stream.create(path, events[0]["source"]) as stream:
        for event in events[:-1]:
            data = event["data"]
            if "standin" in json.dumps(data):
                continue
            if "cards_sha256" in data:
                data = {**data, "pods": "local", "cards_sha256": sha256_file(bundle / "cards.json")}
            stream.append(event["type"], event["subject"], data)


def in_pinned_cards(bundle: Path) -> None:
    told = json.loads((bundle / "cards.json").read_bytes())
    (bundle / "cards.json").write_bytes(dumps({**told, "simulated": False, "files": {}}))


def in_binding(bundle: Path) -> None:
    edit(bundle, "binding.json", lambda data: data.replace(b'"simulated":true', b'"simulated":false'))


def in_launches(bundle: Path) -> None:
    def change(data: bytes) -> bytes:
        told = json.loads(data)
        for start in told["starts"]:
            start["files"] = [file for file in start["files"] if not file["name"].startswith("standin")]
            start["binding"]["device"]["is_simulated"] = False
        return dumps(told)

    edit(bundle, "steps/*/*/*/launch.json", change)


def in_results(bundle: Path) -> None:
    edit(bundle, "steps/*/*/*/*/stdout", lambda data: data.replace(b'"simulated":true', b'"simulated":false'))


def in_counts(bundle: Path) -> None:
    for path in bundle.glob("steps/*/*/*/*/standin-calls"):
        path.unlink()


def in_looks(bundle: Path) -> None:
    edit(bundle, "steps/*/*/cards/*/*", lambda data: re.sub(rb"(?i)simulated|stand-in", b"", data))


def in_files(bundle: Path) -> None:
    shutil.rmtree(bundle / "standin")


EDITS = (in_pinned_cards, in_binding, in_launches, in_results, in_counts, in_looks, in_files, in_journal)


@pytest.mark.parametrize("kept", EDITS, ids=lambda edit: edit.__name__)
def test_one_trace_of_a_stand_in_is_enough(passed: Passed, tmp_path: Path, kept: Callable[[Path], None]):
    """All of it edited away but for one place, and sealed again as physical: it is simulated, and fails."""
    bundle = Path(shutil.copytree(passed(LANES[0], *SIMULATED)[0], tmp_path / "forged"))
    told = read_qualification(bundle)
    for each in EDITS:
        if each is not kept:
            each(bundle)
    if kept is in_journal:  # else the journal was made anew, and has to name these cards
        bundles_journal_as_it_is(bundle)
    for name in ("qualification.json", "SHA256SUMS"):
        (bundle / name).unlink()
    with Stream.reopen(bundle / "stream.jsonl", told["run_id"]) as stream:
        record = {key: value for key, value in told.items() if key not in ("stream", "files")}
        bundles.seal(bundle, stream, "pass", {**record, "grade": "physical"})
    assert verify(bundle) == ()
    view = View(bundle)
    assert next(stand_in_traces(view)), "the edit is found"
    assert grade_of(view) == "simulated"
    assert judge_step(view, preflight).verdict == "fail"


def bundles_journal_as_it_is(bundle: Path) -> None:
    """The journal without its sealing record, which is made anew."""
    path = bundle / "stream.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def test_a_bundle_without_any_trace_left_is_at_least_no_simulation_for_the_judge(
    passed: Passed, tmp_path: Path
):
    """So the edits above are all that there is: what they leave has no trace, and one less has."""
    bundle = Path(shutil.copytree(passed(LANES[0], *SIMULATED)[0], tmp_path / "forged"))
    for each in EDITS:
        each(bundle)
    assert tuple(stand_in_traces(View(bundle))) == ()
    assert grade_of(View(bundle)) == "physical"
