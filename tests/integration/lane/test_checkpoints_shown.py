"""`orch checkpoint` on the bundles of lanes that ran."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from orchestrator.cli.main import main

DIABETES = "lanes/diabetes.yaml"


@pytest.fixture
def orch(capsys: pytest.CaptureFixture[str]):
    def run(*arguments: object):
        code = main(["checkpoint", *map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert out, err
        return code, json.loads(out)

    return run


def test_every_checkpoint_of_a_bundle_is_listed_and_sound(orch, passed):
    bundle, _ = passed(DIABETES)
    code, shown = orch("show", bundle)
    assert code == 0
    names = {(each["name"], each["version"]) for each in shown["checkpoints"]}
    assert {("steps/uninterrupted/1/run-1", 60), ("steps/split/1/part-1", 36)} < names
    code, found = orch("verify", bundle)
    assert (code, found["sound"]) == (0, True)
    assert len(found["checkpoints"]) == len(names) > 4


def test_a_resumed_run_is_equal_and_said_to_be_of_another_epoch(orch, passed):
    bundle, _ = passed(DIABETES)
    through = f"{bundle}/steps/uninterrupted/1/run-1:checkpoint@60"
    code, found = orch("diff", through, f"{bundle}:checkpoint@60")
    assert (code, found["equal"]) == (0, True)
    assert found["right"].endswith("(steps/split/1/part-2)")
    assert found["apart"] == {"epoch": [1, 2]}
    code, found = orch("diff", through, f"{bundle}:checkpoint@36")
    assert (code, found["equal"]) == (1, False)
    (field,) = found["fields"]
    assert (field["field"], field["words"], field["first"]["word"]) == ("w", 10, "w[0]")


def test_a_bundles_own_specs_decide_what_a_set_must_hold(orch, passed, tmp_path):
    """A set that is sound by itself, in a bundle whose system is another."""
    bundle, _ = passed(DIABETES)
    other, _ = passed("lanes/samples.yaml")
    forged = tmp_path / "forged"
    shutil.copytree(bundle, forged)
    into = forged / "steps/split/1/part-2"
    for path in into.glob("*/checkpoint/60.*"):
        path.unlink()
    source = other / "steps/split/1/part-2/coordinator/checkpoint"
    for path in source.iterdir():
        shutil.copy(path, into / "coordinator" / "checkpoint" / path.name)
    assert orch("verify", source)[0] == 0
    code, found = orch("verify", f"{forged}:checkpoint@5")
    assert (code, [each["label"] for each in found["faults"]]) == (1, ["checkpoint-system"])


def test_a_broken_set_is_shown_where_no_whole_one_is(orch, copied):
    for shard in copied.glob("steps/split/*/*/*/checkpoint/5.*.safetensors"):
        shard.write_bytes(b"")
    for launch in copied.glob("steps/uninterrupted/*/*/*/checkpoint"):
        shutil.rmtree(launch)
    code, found = orch("verify", f"{copied}:checkpoint@5")
    assert (code, [each["label"] for each in found["faults"]]) == (1, ["checkpoint-chunk"])


def test_a_hierarchy_has_parts_of_a_manifest_and_controls_systems_of_their_own(orch, passed, tmp_path):
    bundle, _ = passed("lanes/hierarchy.yaml")
    code, found = orch("verify", bundle)
    assert (code, found["faults"]) == (0, [])
    code, shown = orch("show", f"{bundle}:checkpoint@5")
    assert (code, shown["owners"], len(shown["shards"])) == (0, 7, 7)
    assert [each["file"] for each in shown["manifests"]] == [
        "5.worker1.manifest.json",
        "5.worker2.manifest.json",
    ]
    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy)
    launch = copy / "steps/split/1/part-2"
    part, other = (launch / f"worker{n}/checkpoint/5.worker{n}.manifest.json" for n in (1, 2))
    part.write_bytes((copy / f"steps/uninterrupted/1/run-1/worker1/checkpoint/{part.name}").read_bytes())
    other.unlink()
    code, found = orch("verify", launch)
    labels = [each["label"] for each in found["faults"]]
    assert code == 1
    assert labels[:2] == ["checkpoint-capture", "checkpoint-coverage"]


def test_tensors_of_a_program_of_ones_own(orch, passed, tmp_path):
    bundle, _ = passed("lanes/own-script.yaml")
    code, shown = orch("show", bundle)
    assert code == 0
    first, last = (
        min(shown["checkpoints"], key=version)["version"],
        max(shown["checkpoints"], key=version)["version"],
    )
    code, shown = orch("show", f"{bundle}:checkpoint@{last}")
    assert code == 0
    assert shown["fields"]
    code, found = orch("diff", f"{bundle}:checkpoint@{first}", f"{bundle}:checkpoint@{last}")
    assert (code, found["equal"]) == (1, False)
    code, found = orch("diff", f"{bundle}:checkpoint@{last}", f"{bundle}:checkpoint@{last}")
    assert (code, found["equal"], found["apart"]) == (0, True, {})
    target = tmp_path / "own.safetensors"
    assert orch("export", f"{bundle}:checkpoint@{last}", target)[0] == 0
    from safetensors.numpy import load_file

    assert {name: list(array.shape) for name, array in load_file(target).items()} == {
        field["name"]: field["shape"] for field in shown["fields"]
    }


def test_a_damaged_tensor_of_a_program_of_ones_own(orch, passed, tmp_path):
    bundle, _ = passed("lanes/own-script.yaml")
    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy)
    state = copy / "steps/split/1/part-2/trainer/checkpoint/state"
    state.write_bytes(state.read_bytes()[:20])
    code, found = orch("verify", copy)
    assert (code, [(each["label"], Path(each["path"])) for each in found["faults"]]) == (
        1,
        [("checkpoint-chunk", state)],
    )


def version(row):
    return row["version"]
