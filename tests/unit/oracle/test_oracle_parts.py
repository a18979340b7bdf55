"""Sets whose manifests are a tree, and strided regions: read whole, or refused by a role's label."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import safetensors
from checkpoint_sets import CAPTURE, HALVES, SYSTEM, VERSION, WORDS, Region, Set, make, nested, shard, tensor
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import Label
from orchestrator.oracle.checkpoint import Checkpoint, CheckpointError, read_set, set_names
from orchestrator.oracle.manifest import read_manifest, read_part
from orchestrator.oracle.publication import write_as
from orchestrator.oracle.reference import state_digest
from orchestrator.oracle.shards import captured
from orchestrator.plan.model import Plan
from orchestrator.plan.ownership import Holding, Ownership
from orchestrator.plan.roles import Role
from orchestrator.plan.topology import Topology, star

STATE = array("d", WORDS)
HOLDINGS: tuple[Holding, ...] = ("replicated", "partitioned")


def outcome(made: Set) -> Checkpoint | Label:
    try:
        return read_set(SYSTEM, made.files)
    except CheckpointError as error:
        return error.label


def is_read(made: Set) -> bool:
    found = outcome(made)
    return isinstance(found, Checkpoint) and found.words.tobytes() == STATE.tobytes()


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_a_tree_of_manifests_is_one_set(depth: int) -> None:
    made = nested(depth)
    assert is_read(made)
    inner = tuple(f"7.inner{level}.manifest.json" for level in range(depth))
    assert set_names(made.bytes, made.part_bytes.get) == (
        *inner,
        "7.root.safetensors",
        "7.other.safetensors",
    )


def test_parts_go_only_so_deep() -> None:
    assert is_read(nested(32))
    assert outcome(nested(33)) == Label.CHECKPOINT_MANIFEST


def test_a_part_may_name_no_shard_of_its_own() -> None:
    assert not nested(2).parts["7.inner0.manifest.json"]["shards"]
    assert is_read(nested(2))


def test_a_set_of_no_shard_leaves_every_word_out() -> None:
    made = make()
    made.manifest["shards"] = []
    assert outcome(made) == Label.CHECKPOINT_COVERAGE


def in_part(*path: Any, to: Any) -> Callable[[Set], None]:
    def change(made: Set) -> None:
        container: Any = made.parts["7.inner1.manifest.json"]
        for key in path[:-1]:
            container = container[key]
        container[path[-1]] = to

    return change


def missing(made: Set) -> None:
    del made.parts["7.inner1.manifest.json"]


def named_twice(made: Set) -> None:
    made.manifest["manifests"] *= 2


def a_root_as_a_part(made: Set) -> None:
    made.parts["7.inner1.manifest.json"] = dict(made.manifest)


def a_part_as_the_root(made: Set) -> None:
    made.manifest = made.parts["7.inner1.manifest.json"]


@pytest.mark.parametrize(
    ("change", "label"),
    [
        (missing, Label.CHECKPOINT_COVERAGE),
        (named_twice, Label.CHECKPOINT_COVERAGE),
        (a_root_as_a_part, Label.CHECKPOINT_MANIFEST),
        (a_part_as_the_root, Label.CHECKPOINT_MANIFEST),
        (in_part("version", to=8), Label.CHECKPOINT_CAPTURE),
        (in_part("capture", "epoch", to=3), Label.CHECKPOINT_CAPTURE),
        (in_part("capture", "run", to="0" * 32), Label.CHECKPOINT_CAPTURE),
        (in_part("capture", "plan", to="b" * 64), Label.CHECKPOINT_CAPTURE),
        (in_part("capture", "time_ms", to=1), Label.CHECKPOINT_MANIFEST),
        (in_part("state", to="a" * 64), Label.CHECKPOINT_MANIFEST),
        (in_part("schema", to="orch-checkpoint/v1"), Label.CHECKPOINT_MANIFEST),
        (in_part("shards", to=[]), Label.CHECKPOINT_COVERAGE),
        (in_part("shards", 0, "regions", to=[]), Label.CHECKPOINT_MANIFEST),
        (in_part("shards", 0, "sha256", to="c" * 64), Label.CHECKPOINT_CHUNK),
    ],
    ids=lambda value: str(value) if isinstance(value, Label) else "",
)
def test_a_part_that_is_not_the_roots_is_refused(change: Callable[[Set], None], label: Label) -> None:
    made = nested()
    change(made)
    made.seal_parts()
    assert outcome(made) == label


def test_a_part_with_other_bytes_than_named_is_damaged() -> None:
    made = nested()
    made.parts["7.inner1.manifest.json"]["shards"][0]["size"] += 1
    assert outcome(made) == Label.CHECKPOINT_CHUNK
    # of another capture it is so whatever was named
    made.parts["7.inner1.manifest.json"]["capture"]["epoch"] = 1
    assert outcome(made) == Label.CHECKPOINT_CAPTURE


def test_a_part_of_another_capture_is_told_in_words() -> None:
    made = nested()
    made.parts["7.inner1.manifest.json"]["capture"]["epoch"] = 1
    with pytest.raises(
        CheckpointError, match=r"\(got version 7, epoch 1, run [0-9a-f]{32}, plan [0-9a-f]{64}, exp"
    ):
        read_set(SYSTEM, made.files)


@pytest.mark.parametrize("about", [{"epoch": "1"}, {"run": "f" * 32}, {"version": "6"}])
@pytest.mark.parametrize("is_named", [True, False])
def test_a_shard_of_another_capture_is_refused_as_such(about: dict[str, str], is_named: bool) -> None:  # noqa: FBT001
    made = make()
    name, regions = HALVES[1]
    made.shards[name] = shard(regions, **about)
    if is_named:
        made.seal(name)
    assert outcome(made) == Label.CHECKPOINT_CAPTURE


def test_words_are_dealt_by_stride() -> None:
    parts: list[tuple[str, list[Region]]] = [
        ("a", [("w", 0, 2, 2), ("B", 0, 1), ("v", 0, 2, 2)]),
        ("b", [("w", 1, 1), ("B", 1, 1), ("v", 1, 2, 2)]),
    ]
    made = make(parts)
    assert is_read(made)
    assert {name for name, _ in safetensors.deserialize(made.shards["a"])} == {
        "w[0:3:2]",
        "B[0:1]",
        "v[0:3:2]",
    }
    # a stride that meets another's words, and one that leaves a word out
    for changed in ([("w", 0, 2), ("B", 0, 1), ("v", 0, 2, 2)], [("B", 0, 1), ("v", 0, 2, 2)]):
        assert outcome(make([("a", changed), parts[1]])) == Label.CHECKPOINT_COVERAGE


@given(st.integers(1, 6), st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=9, max_size=9))
def test_any_deal_by_stride_is_read(owners: int, words: Sequence[float]) -> None:
    parts: list[tuple[str, list[Region]]] = []
    for owner in range(owners):
        own: list[Region] = []
        for field in SYSTEM.state_fields:
            count = len(range(owner, field.size, owners))
            if count:
                own.append((field.name, owner, count, owners if count > 1 else 1))
        if own:
            parts.append((f"7.r{owner}.safetensors", own))
    made = make(parts, words)
    found = read_set(SYSTEM, made.files)
    assert found.words.tobytes() == struct.pack("<9d", *words)
    for name, regions in parts:
        assert {name for name, _ in safetensors.deserialize(made.shards[name])} == set(map(tensor, regions))


def plan(topology: Topology, *how: Holding) -> Plan:
    parameters, state = how
    roles = tuple(Role(f"r{index}", index, 0, int(index == 0)) for index in range(topology.roles))
    return Plan(SYSTEM, roles, topology, Ownership(parameters, state, "replicated"))


TOPOLOGIES = (star(1), star(2), star(4), star(16), *(Topology("hierarchy", 7, k) for k in (1, 2, 3, 6)))


def written(of: Plan) -> dict[str, bytes]:
    files = write_as(of, VERSION, STATE, read_manifest(make().bytes).top.capture, time_ms=5)
    return {"manifest.json" if name == "7.manifest.json" else name: data for name, data in files.items()}


@pytest.mark.parametrize("parameters", HOLDINGS)
@pytest.mark.parametrize("state", HOLDINGS)
@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
def test_what_a_plans_roles_write_is_one_set(topology: Topology, parameters: Holding, state: Holding) -> None:
    of = plan(topology, parameters, state)
    files = written(of)
    found = read_set(SYSTEM, files)
    assert found.words.tobytes() == STATE.tobytes()
    assert (found.owners, found.epoch, found.time_ms) == (topology.roles, CAPTURE["epoch"], 5)
    assert found.state == state_digest(STATE)
    assert {"manifest.json", *set_names(files["manifest.json"], files.get)} == set(files)
    for role in of.roles:
        data = files.get(f"7.{role.name}.safetensors")
        owned = [(field.name, of.published(field, role)) for field in SYSTEM.state_fields]
        regions = [(name, own.first, own.count, own.stride) for name, own in owned if own.count]
        assert data == (shard(regions) if regions else None)
        assert data is None or captured(data) == (2, CAPTURE["run"], VERSION)


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
def test_a_manifest_names_no_more_than_a_role_has_children_and_itself(topology: Topology) -> None:
    of = plan(topology, "partitioned", "partitioned")
    files = written(of)
    root = read_manifest(files["manifest.json"]).top
    parts = {role: files.get(f"7.{role.name}.manifest.json") for role in of.roles}
    for role, data in parts.items():
        children = topology.children(role.index)
        assert (data is not None) == (role.index > 0 and len(children) > 0)
        if role.index == 0 or data is not None:
            said = root if role.index == 0 else read_part(data or b"")
            inner = [child for child in children if topology.children(child)]
            assert [part.file for part in said.parts] == [f"7.r{child}.manifest.json" for child in inner]
            leaves = [role.index, *(child for child in children if child not in inner)]
            there = [f"7.r{each}.safetensors" for each in leaves]
            assert [each.file for each in said.shards] == [name for name in there if name in files]


def test_a_star_names_every_shard_in_the_one_manifest() -> None:
    files = written(plan(star(4), "replicated", "replicated"))
    assert read_manifest(files["manifest.json"]).top.parts == ()
    assert len(files) == 1 + 4
