"""Trees of roles: the declared order of additions, manifests as a tree, labels across edges."""

from __future__ import annotations

import hashlib
import json
import signal

import pytest
import role_plans
import role_truth
from role_bench import ARM, X86, Setup, differing, each_role

SEVEN = (1, 0, 2, 0, 1, 0, 1)
SHAPES = {
    "three": ((2, 0, 3), 2),
    "five": ((1, 1, 1, 1, 1), 3),
    "seven": (SEVEN, 2),
}
ROLES = tuple(f"role{at}" for at in range(7))
ENDLESS = 2**40


def seven():
    return role_plans.among(role_plans.MOMENTUM, SEVEN, 2)


def alternating(names):
    return {name: (X86, ARM)[at % 2] for at, name in enumerate(names)}


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_tree_has_the_bits_of_its_order(bench, shape, mixed):
    counts, fan_out = SHAPES[shape]
    case = role_plans.among(role_plans.MOMENTUM, counts, fan_out)
    names = [role.name for role in case.plan.roles]
    run = bench(case)
    role_truth.check(run, run.run(Setup(target=5, targets=alternating(names) if mixed else {})), 5)


def test_the_order_of_a_tree_is_not_that_of_a_star():
    """So that equal bits say something."""
    tree, star = (role_plans.among(role_plans.MOMENTUM, SEVEN, fan_out) for fan_out in (2, 0))
    ends = [role_truth.versions(case, 5)[-1].words for case in (tree, star)]
    assert ends[0] != ends[1]


@pytest.mark.parametrize("shape", ["seven", "five"])
def test_a_publication_is_a_tree_of_manifests(bench, tmp_path, shape):
    counts, fan_out = SHAPES[shape]
    case = role_plans.among(role_plans.MOMENTUM, counts, fan_out)
    run = bench(case)
    run.run(Setup(target=2))
    folder = run.published(2, tmp_path / "two")
    root = json.loads((folder / "manifest.json").read_bytes())
    shards, parts = list(root["shards"]), list(root["manifests"])
    seen = []
    while parts:
        part = parts.pop(0)
        data = (folder / part["file"]).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (part["sha256"], part["size"])
        content = json.loads(data)
        assert data == json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
        assert content["schema"] == "orch-checkpoint-part/v1"
        capture = {key: root["capture"][key] for key in ("epoch", "plan", "run")}
        assert (content["capture"], content["version"]) == (capture, 2)
        seen.append(part["file"])
        shards += content["shards"]
        parts += content["manifests"]
    tree = case.plan.topology
    inner = [role.name for role in case.plan.roles[1:] if tree.children(role.index)]
    assert seen == [f"2.{name}.manifest.json" for name in inner]
    assert root["state"] == role_truth.state_digest(role_truth.versions(case, 2)[-1].words)
    named = {shard["file"] for shard in shards}
    assert named == {path.name for path in folder.glob("*.safetensors")}


OWNERS = {
    "one": (role_plans.MOMENTUM, (5,), 0),
    "pair": (role_plans.MOMENTUM, (2, 3), 0),
    "star": (role_plans.MOMENTUM, (1, 2, 0, 2), 0),
    "seven": (role_plans.MOMENTUM, SEVEN, 2),
}


@pytest.mark.parametrize("after", OWNERS)
@pytest.mark.parametrize("before", ["star", "seven"])
def test_a_checkpoint_goes_on_at_other_owners(bench, tmp_path, before, after):
    """The bits are those of the orders that ran: the oracle takes up the words where the first left them."""
    first = bench(role_plans.among(*OWNERS[before]))
    first.run(Setup(target=3))
    then = bench(role_plans.among(*OWNERS[after]))
    outcomes = then.run(Setup(target=5, epoch=2, restore=first.published(3, tmp_path / "three")))
    role_truth.check(then, outcomes, 5, start=3, before=first.case)
    evaluation = bench(role_plans.among(*OWNERS[before]))
    restore = then.published(5, tmp_path / "five")
    ends = evaluation.run(Setup(target=5, mode="evaluate", epoch=3, restore=restore))
    assert {outcome.results["version"] for outcome in ends.values()} == {5}


def test_a_tree_resumed_equals_the_uninterrupted_one(bench, tmp_path):
    whole, resumed = bench(seven()), bench(seven())
    names = dict.fromkeys(ROLES, ARM)
    whole.run(Setup(target=5, publish_at=3))
    outcomes = resumed.run(
        Setup(target=5, epoch=2, restore=whole.published(3, tmp_path / "three"), targets=names)
    )
    role_truth.check(resumed, outcomes, 5, start=3)


@pytest.mark.parametrize("odd", ["role1", "role2", "role4"])
def test_a_mismatched_edge_is_named_at_both_ends(bench, odd):
    run = bench(seven())
    run.place(Setup(bind={odd: {"run_id": "01920000-0000-7000-8000-00000000abcd"}}))
    run.start()
    labels = run.labels()
    tree = run.case.plan.topology
    at = ROLES.index(odd)
    edges = {at, tree.parent(at), *tree.children(at)}
    assert {name for name, label in labels.items() if label == "frame-identity"} == {
        ROLES[each] for each in edges
    }
    assert set(labels.values()) == {"frame-identity", "peer-lost"}
    assert run.committed() == []


@pytest.mark.parametrize("victim", ["role0", "role1", "role6"])
def test_a_role_of_a_tree_that_is_killed(bench, victim):
    run = bench(seven())
    run.place(Setup(target=ENDLESS))
    run.start()
    for name in ROLES:
        run.wait_for(name, "progress", size=1000)
    run.processes[victim].kill()
    outcomes = run.ends()
    assert outcomes.pop(victim).code == -signal.SIGKILL
    assert {outcome.label for outcome in outcomes.values()} == {"peer-lost"}
    assert run.committed() == []


@pytest.mark.parametrize("odd", ["role0", "role2", "role3"])
def test_replicas_of_a_tree_that_differ(bench, tmp_path, odd):
    run = bench(seven())
    outcomes = run.run(Setup(target=1, content={odd: differing(tmp_path / "content")}))
    assert {name: outcome.label for name, outcome in outcomes.items()} == each_role(
        ROLES, "replica-divergence"
    )
    assert run.committed() == []


def broken_part(change, *, named=True):
    """A part manifest with other content; what names it is made to fit if `named`."""

    def spoil(folder):
        path = folder / "2.role1.manifest.json"
        content = json.loads(path.read_bytes())
        change(content)
        data = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
        path.write_bytes(data)
        root = folder / "manifest.json"
        manifest = json.loads(root.read_bytes())
        (part,) = (part for part in manifest["manifests"] if part["file"] == path.name)
        if named:
            part.update(sha256=hashlib.sha256(data).hexdigest(), size=len(data))
        root.write_text(json.dumps(manifest, sort_keys=True, separators=(",", ":")))

    return spoil


PARTS = {
    "missing": ("checkpoint-coverage", lambda folder: (folder / "2.role1.manifest.json").unlink()),
    "empty": ("checkpoint-manifest", lambda folder: (folder / "2.role1.manifest.json").write_bytes(b"")),
    "another-digest": ("checkpoint-chunk", broken_part(lambda part: part["shards"].clear(), named=False)),
    "no-shards": ("checkpoint-coverage", broken_part(lambda part: part["shards"].clear())),
    "twice": ("checkpoint-coverage", broken_part(lambda part: part["shards"].extend(part["shards"][:1]))),
    "of-another-version": ("checkpoint-capture", broken_part(lambda part: part.update(version=1))),
    "of-another-epoch": ("checkpoint-capture", broken_part(lambda part: part["capture"].update(epoch=9))),
    "of-another-run": ("checkpoint-capture", broken_part(lambda part: part["capture"].update(run="0" * 32))),
    "a-root": ("checkpoint-manifest", broken_part(lambda part: part.update(schema="orch-checkpoint/v1"))),
}


@pytest.mark.parametrize("what", PARTS)
def test_a_part_that_is_not_right(bench, tmp_path, what):
    label, spoil = PARTS[what]
    first = bench(seven())
    first.run(Setup(target=2))
    restore = first.published(2, tmp_path / "two")
    spoil(restore)
    outcomes = bench(role_plans.single()).run(Setup(target=4, epoch=2, restore=restore))
    assert outcomes["alone"].label == label
