"""What roles yield: the very bits, whoever runs them, whether in one go or resumed."""

from __future__ import annotations

import hashlib
import json
import struct

import pytest
import role_plans
from role_bench import ARM, X86, Setup, altered_content
from safetensors import deserialize

TARGETS = [(X86, X86), (ARM, ARM), (X86, ARM), (ARM, X86)]


def state_digest(*words: float) -> str:
    return hashlib.sha256(role_plans.words_bytes(words)).hexdigest()


def bits(word: float) -> str:
    return struct.pack(">d", word).hex()


def on(*targets: str) -> dict[str, str]:
    return dict(zip(("coordinator", "worker"), targets, strict=True))


@pytest.mark.parametrize("targets", TARGETS)
def test_the_first_update_of_the_pair_gives_one_half(bench, targets):
    outcomes = bench(role_plans.pair()).run(Setup(target=1, targets=on(*targets)))
    for name, samples in (("coordinator", 1), ("worker", 2)):
        assert outcomes[name].results == {
            "epoch": 1,
            "held": 1,
            "mode": "train",
            "results": {"loss": bits(1.75)},
            "role": name,
            "samples": samples,
            "state": state_digest(0.5),
            "version": 1,
        }


def test_results_are_canonical_json(bench):
    out = bench(role_plans.pair()).run(Setup(target=1))["worker"].out
    assert out == json.dumps(json.loads(out), sort_keys=True, separators=(",", ":")) + "\n"


def test_a_mean_that_ignores_the_sample_counts_gives_nine_sixteenths(bench, tmp_path):
    """The mean of the roles' means is what a wrong program would give, so 1/2 says something."""
    content = altered_content(
        tmp_path / "content",
        "native/rounds.c",
        "    learner_contribute(replica_contribute(version), total);\n",
        "    learner_contribute(replica_contribute(version), total);\n"
        "    for (uint32_t i = 0; i < COMBINED_WORDS; i++)\n"
        "        total[i] /= (word)ROLE_SAMPLES;\n",
    )
    setup = Setup(target=1, content=dict.fromkeys(("coordinator", "worker"), content))
    outcomes = bench(role_plans.pair()).run(setup)
    assert outcomes["worker"].results["state"] == state_digest(9 / 16)


@pytest.mark.parametrize("targets", TARGETS)
def test_a_resumed_run_repeats_the_uninterrupted_one(bench, tmp_path, targets):
    whole = bench(role_plans.pair())
    outcomes = whole.run(Setup(target=5, publish_at=3, targets=on(*targets)))
    restore = whole.published(3, tmp_path / "three")
    resumed = bench(role_plans.pair())
    again = resumed.run(Setup(target=5, epoch=2, restore=restore, targets=on(*targets)))
    for name in again:
        assert again[name].results == {**outcomes[name].results, "epoch": 2}
        assert resumed.progress(name) == whole.progress(name)[3:]
    assert len(whole.progress("worker")) == 5


@pytest.mark.parametrize("targets", TARGETS)
def test_an_evaluation_changes_and_writes_nothing(bench, tmp_path, targets):
    whole = bench(role_plans.pair())
    trained = whole.run(Setup(target=2, targets=on(*targets)))
    evaluation = bench(role_plans.pair())
    restore = whole.published(2, tmp_path / "two")
    setup = Setup(target=9, mode="evaluate", epoch=2, restore=restore, targets=on(*targets))
    for name, outcome in evaluation.run(setup).items():
        assert outcome.results["state"] == trained[name].results["state"]
        assert (outcome.results["mode"], outcome.results["version"]) == ("evaluate", 2)
        # w = 3/4: residuals -3/4, -1/4, 1/4
        assert outcome.results["results"] == {"loss": bits(0.5 * 0.5625 + 0.5 * 0.0625 * 2)}
        assert evaluation.progress(name) == []
    assert evaluation.committed() == []


@pytest.mark.parametrize("target", [X86, ARM])
@pytest.mark.parametrize("made", [role_plans.star, role_plans.single])
def test_every_update_is_the_declared_arithmetic(bench, made, target):
    case = made()
    names = [role.name for role in case.plan.roles]
    run = bench(case)
    outcomes = run.run(Setup(target=7, targets=dict.fromkeys(names, target)))
    expected = role_plans.momentum_trajectory(case.plan.roles, 7)
    lines = [f"{at} {state_digest(*state)} {bits(loss)}" for at, (state, loss) in enumerate(expected, 1)]
    for name in names:
        assert run.progress(name) == lines
        assert outcomes[name].results["results"] == {
            "loss": bits(expected[-1][1]),
            "square": outcomes[names[0]].results["results"]["square"],
        }


def test_a_published_checkpoint_is_whole_and_readable(bench, tmp_path):
    case = role_plans.star()
    run = bench(case)
    run.run(Setup(target=4, publish_at=2))
    folder = run.published(2, tmp_path / "two")
    data = (folder / "manifest.json").read_bytes()
    manifest = json.loads(data)
    state, _ = role_plans.momentum_trajectory(case.plan.roles, 2)[-1]
    assert data == json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    assert manifest["capture"]["owners"] == {"count": 3}
    assert manifest["capture"]["plan"] == case.plan.digest
    assert (manifest["state"], manifest["system"]) == (state_digest(*state), case.plan.system.digest)
    words = {}
    for shard in manifest["shards"]:
        content = (folder / shard["file"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (shard["size"], shard["sha256"])
        for name, tensor in deserialize(content):
            assert tensor["dtype"] == "F64"
            words[name] = tuple(struct.unpack(f"<{tensor['shape'][0]}d", tensor["data"]))
    assert words == {f"W[{i}:{i + 1}]": (state[i],) for i in range(3)} | {
        f"v[{i}:{i + 1}]": (state[3 + i],) for i in range(3)
    }
    assert run.committed() == sorted(
        f"{version}.{rest}"
        for version in (2, 4)
        for rest in ("root.safetensors", "idle.safetensors", "worker.safetensors", "manifest.json")
    )


def test_a_checkpoint_is_restored_onto_other_numbers_of_owners(bench, tmp_path):
    many, alone = bench(role_plans.star()), bench(role_plans.single())
    before = many.run(Setup(target=3))["worker"].results["state"]
    gathered = alone.run(
        Setup(target=3, mode="evaluate", epoch=2, restore=many.published(3, tmp_path / "many"))
    )
    assert gathered["alone"].results["state"] == before
    onward = bench(role_plans.single())
    onward.run(Setup(target=4, epoch=2, restore=tmp_path / "many"))
    back = bench(role_plans.star())
    setup = Setup(target=4, mode="evaluate", epoch=3, restore=onward.published(4, tmp_path / "one"))
    assert back.run(setup)["idle"].results["version"] == 4


def test_roles_meet_over_ipv6(bench):
    outcomes = bench(role_plans.pair()).run(Setup(target=1, address="::1"))
    assert outcomes["worker"].results["state"] == state_digest(0.5)


def test_the_work_folder_may_be_relative(bench, monkeypatch):
    run = bench(role_plans.single())
    run.place(Setup(target=1))
    monkeypatch.chdir(run.folder)
    run.folder = run.folder.relative_to(run.folder)
    run.start(executable=str((run.work("alone") / "role.elf").resolve()))
    assert run.end("alone").results["version"] == 1
