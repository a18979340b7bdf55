"""The shipped lanes: what they must show, read from their bundles."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evidence.verify import verify
from orchestrator.oracle.checkpoint import MANIFEST, read_set
from orchestrator.oracle.reference import Reference
from orchestrator.plan.derive import derive
from orchestrator.qualify.checks import STEPS
from orchestrator.qualify.judge import judge_bundle
from orchestrator.spec.read import read_lane

Passed = Callable[[str], tuple[Path, dict[str, Any]]]
ROOT = Path(__file__).resolve().parents[3]
LANES = tuple(
    f"lanes/{name}.yaml" for name in ("samples", "diabetes", "mixed-isa", "adam", "logistic", "hierarchy")
)
needs_emulator = pytest.mark.skipif(
    shutil.which("qemu-aarch64-static") is None, reason="Debian's qemu-user-static is not installed"
)
EVERY_LANE = [pytest.param(lane, marks=[needs_emulator] if "mixed" in lane else []) for lane in LANES]


def manifest(bundle: Path, launch: str, version: int) -> dict[str, Any]:
    (found,) = bundle.glob(f"steps/{launch}/*/checkpoint/{version}.manifest.json")
    return json.loads(found.read_bytes())


@pytest.mark.parametrize("lane", EVERY_LANE)
def test_a_shipped_lane_passes_whole(passed: Passed, lane: str):
    bundle, result = passed(lane)
    assert (result["verdict"], result["omitted"]) == ("pass", {})
    assert result["grade"] == ("emulated" if "mixed" in lane else "host")
    assert tuple(step["name"] for step in result["steps"]) == STEPS
    verdicts = {step["name"]: step["verdict"] for step in result["steps"]}
    assert verdicts.pop("host-shadow") == "not-applicable"
    assert set(verdicts.values()) == {"pass"}
    assert verify(bundle, seal=result["seal"]) == ()


@pytest.mark.parametrize("lane", EVERY_LANE)
def test_published_states_are_the_references(passed: Passed, lane: str):
    """Read with the `safetensors` library, against the reference run from the checkout's own specs."""
    bundle, _ = passed(lane)
    spec = read_lane(ROOT / lane)
    planned = derive(spec.run)
    reference = Reference(planned.plan, planned.words)
    for launch, version in (
        ("refusals/1/base", 1),
        ("uninterrupted/1/run-1", spec.split),
        ("uninterrupted/1/run-1", spec.updates),
        ("uninterrupted/1/run-2", spec.updates),
        ("split/1/part-1", spec.split),
        ("split/1/part-2", spec.updates),
    ):
        files = {
            MANIFEST if path.name == f"{version}.manifest.json" else path.name: path.read_bytes()
            for path in bundle.glob(f"steps/{launch}/*/checkpoint/{version}.*")
        }
        found = read_set(planned.plan.system, files)
        expected = reference.at(version)
        assert found.words == expected.words
        assert found.state == expected.state


@pytest.mark.parametrize("lane", EVERY_LANE)
def test_a_split_run_advances_the_epoch_and_changes_nothing_else(passed: Passed, lane: str):
    bundle, _ = passed(lane)
    spec = read_lane(ROOT / lane)
    before, after = (
        manifest(bundle, "split/1/part-1", spec.split),
        manifest(bundle, "split/1/part-2", spec.updates),
    )
    assert (before["capture"]["epoch"], after["capture"]["epoch"]) == (1, 2)
    whole = [manifest(bundle, "uninterrupted/1/run-1", version) for version in (spec.split, spec.updates)]
    assert [before["state"], after["state"]] == [each["state"] for each in whole]
    assert [shard["sha256"] for shard in before["shards"]] == [
        shard["sha256"] for shard in whole[0]["shards"]
    ]


@needs_emulator
def test_both_instruction_sets_yield_the_same_states(passed: Passed):
    states = []
    for lane in ("lanes/diabetes.yaml", "lanes/mixed-isa.yaml"):
        bundle, result = passed(lane)
        progress = [
            path.read_bytes() for path in sorted(bundle.glob("steps/uninterrupted/1/run-1/*/progress"))
        ]
        states.append((result["plan"], result["system"], progress))
    assert states[0] == states[1]
    binding = json.loads((passed("lanes/mixed-isa.yaml")[0] / "binding.json").read_bytes())
    assert [role["emulator"] for role in binding["roles"].values()] == [None, *["qemu-aarch64-static"] * 3]


def test_one_owner_has_no_samples_and_is_counted(passed: Passed):
    bundle, _ = passed("lanes/diabetes.yaml")
    said = {
        path.parent.name: json.loads(path.read_bytes())
        for path in bundle.glob("steps/uninterrupted/1/run-1/*/stdout")
    }
    counts = {role: line["samples"] for role, line in said.items()}
    assert sorted(counts) == ["coordinator", "worker1", "worker2", "worker3"]
    assert 0 in counts.values()
    assert len(set(counts.values())) == 4
    assert sum(counts.values()) == 442
    assert len({line["state"] for line in said.values()}) == 1


def test_the_verdict_is_recomputed_from_the_bundle_alone(passed: Passed, tmp_path: Path):
    """Moved elsewhere, with the original out of reach by name."""
    bundle, result = passed("lanes/samples.yaml")
    moved = tmp_path / "elsewhere"
    shutil.copytree(bundle, moved)
    judgement = judge_bundle(moved)
    assert judgement.differences == ()
    assert (judgement.verdict, judgement.grade, judgement.agrees) == (
        result["verdict"],
        result["grade"],
        True,
    )


@pytest.mark.parametrize("lane", EVERY_LANE)
def test_no_path_or_name_of_this_machine_is_in_a_bundle(passed: Passed, lane: str):
    import platform

    bundle, _ = passed(lane)
    words = [str(ROOT).encode(), str(Path.home()).encode(), platform.node().encode()]
    for path in bundle.rglob("*"):
        if path.is_file() and not path.name.endswith(".elf"):
            data = path.read_bytes()
            assert not [word for word in words if len(word) > 6 and word in data], path
