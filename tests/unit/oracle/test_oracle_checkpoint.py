"""Checkpoint sets: sound ones in any cut are read; others are refused by the label that a role says."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import safetensors
from checkpoint_sets import (
    HALVES,
    SYSTEM,
    VERSION,
    WORDS,
    Region,
    Set,
    json_values,
    make,
    places,
    shard,
    tensor,
)
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import Label
from orchestrator.oracle.checkpoint import (
    Checkpoint,
    CheckpointError,
    manifest_name,
    part_name,
    read_set,
    set_names,
)
from orchestrator.oracle.manifest import Capture
from orchestrator.oracle.publication import write_set

ONE = Capture(epoch=2, plan="a" * 64, run="b" * 32)


def names(made: Set, manifest: bytes | None = None) -> tuple[str, ...]:
    return set_names(made.bytes if manifest is None else manifest, made.part_bytes.get)


def outcome(made: Set, manifest: bytes | None = None) -> Checkpoint | Label:
    """What is read, or the label of what is refused; any other error is the test's end."""
    try:
        return read_set(SYSTEM, made.files if manifest is None else {**made.files, "manifest.json": manifest})
    except CheckpointError as error:
        return error.label


def packed(words: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(words)}d", *words)


def test_a_set_says_its_state_and_its_capture() -> None:
    found = read_set(SYSTEM, make().files)
    assert packed(found.words) == packed(WORDS)
    assert (found.version, found.epoch, found.owners) == (VERSION, 2, 2)
    assert (found.plan, found.run, found.system) == ("a" * 64, "0189" * 8, SYSTEM.digest)
    assert names(make()) == ("7.root.safetensors", "7.other.safetensors")
    assert manifest_name(7) == "7.manifest.json"
    assert part_name(7, "inner") == "7.inner.manifest.json"


@st.composite
def cuts(draw: st.DrawFn) -> list[tuple[str, list[Region]]]:
    """The words dealt to any number of owners, field by field, in contiguous regions."""
    owners = draw(st.integers(1, 5))
    parts: list[list[Region]] = [[] for _ in range(owners)]
    for field in SYSTEM.state_fields:
        count = min(owners, field.size)
        inner = draw(
            st.lists(st.integers(1, field.size - 1), min_size=count - 1, max_size=count - 1, unique=True)
        )
        edges = [0, *sorted(inner), field.size]
        who = draw(st.permutations(range(owners)))
        for owner, (first, end) in zip(who, pairwise(edges), strict=False):
            parts[owner].append((field.name, first, end - first))
    return [(f"{VERSION}.r{owner}.safetensors", regions) for owner, regions in enumerate(parts) if regions]


@given(cuts(), st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=9, max_size=9))
def test_any_cut_of_any_state_is_read(parts: list[tuple[str, list[Region]]], words: list[float]) -> None:
    made = make(parts, words)
    assert packed(read_set(SYSTEM, made.files).words) == packed(tuple(words))
    for name, data in made.shards.items():
        tensors = {name for name, _ in safetensors.deserialize(data)}
        assert tensors == {tensor(region) for part, regions in parts if part == name for region in regions}


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=9, max_size=9),
    st.integers(0, 2**53 - 1),
)
def test_what_is_written_is_read(words: list[float], version: int) -> None:
    files = write_set(SYSTEM, version, array("d", words), ONE)
    files["manifest.json"] = files.pop(manifest_name(version))
    found = read_set(SYSTEM, files)
    assert (packed(found.words), found.version) == (packed(tuple(words)), version)
    (name,) = set_names(files["manifest.json"], files.get)
    tensors = dict(safetensors.deserialize(files[name]))
    assert {name: (tensor["dtype"], list(tensor["shape"])) for name, tensor in tensors.items()} == {
        f"{field.name}[0:{field.size}]": ("F64", [field.size]) for field in SYSTEM.state_fields
    }
    assert b"".join(bytes(tensors[name]["data"]) for name in ("w[0:3]", "B[0:2]", "v[0:4]")) == packed(
        tuple(words)
    )


def test_every_changed_byte_of_a_shard_is_refused() -> None:
    for name, data in make().shards.items():
        for at in range(len(data)):
            made = make()
            made.shards[name] = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
            assert outcome(made) == Label.CHECKPOINT_CHUNK
            # even where the manifest agrees: the header is of one form, and the state has its own digest
            made.seal(name)
            assert outcome(made) == Label.CHECKPOINT_CHUNK


@given(st.data())
def test_a_changed_byte_of_a_manifest_changes_no_state(data: st.DataObject) -> None:
    made = make()
    whole = made.bytes
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255))
    found = outcome(made, whole[:at] + bytes([byte]) + whole[at + 1 :])
    if isinstance(found, Checkpoint):
        # epoch, owners, plan, run and time are the capture's alone: no digest in the set covers them
        assert (packed(found.words), found.version, found.system) == (packed(WORDS), VERSION, SYSTEM.digest)


@given(st.binary(max_size=200) | st.text(max_size=80).map(str.encode))
def test_bytes_that_are_no_manifest_are_refused(data: bytes) -> None:
    assert outcome(make(), data) == Label.CHECKPOINT_MANIFEST
    with pytest.raises(CheckpointError):
        set_names(data, lambda _name: None)


@given(st.data())
def test_a_manifest_with_one_value_replaced_is_refused_or_holds_the_same_state(data: st.DataObject) -> None:
    made = make()
    container, key = data.draw(st.sampled_from(list(places(made.manifest))))
    container[key] = data.draw(json_values)
    found = outcome(made)
    if isinstance(found, Checkpoint):
        assert packed(found.words) == packed(WORDS)


@given(st.data())
def test_a_manifest_with_a_key_too_many_or_too_few_is_refused(data: st.DataObject) -> None:
    made = make()
    container, key = data.draw(st.sampled_from(list(places(made.manifest))))
    if data.draw(st.booleans()) and isinstance(container, dict):
        container[data.draw(st.text("abcdefg", min_size=1, max_size=3))] = data.draw(json_values)
        assert outcome(made) == Label.CHECKPOINT_MANIFEST
    else:
        in_dict = isinstance(container, dict)
        del container[key]
        found = outcome(made)
        if in_dict:
            assert found == Label.CHECKPOINT_MANIFEST
        else:  # a region or a shard less, if not the last one of its list
            assert found in (Label.CHECKPOINT_MANIFEST, Label.CHECKPOINT_COVERAGE)


def change(*path: Any, to: Any) -> Callable[[Set], None]:
    def apply(made: Set) -> None:
        container: Any = made.manifest
        for key in path[:-1]:
            container = container[key]
        container[path[-1]] = to

    return apply


FIRST_REGION = ("shards", 0, "regions", 0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), -1),
        (("version",), 7.5),
        (("version",), True),
        (("version",), "7"),
        (("schema",), "orch-checkpoint/v2"),
        (("schema",), ["orch-checkpoint/v1"]),
        (("state",), "A" * 64),
        (("state",), "a" * 63),
        (("system",), None),
        (("capture",), []),
        (("capture", "run"), "b" * 31),
        (("capture", "owners"), ["root"]),
        (("capture", "owners"), 2),
        (("capture", "owners"), {}),
        (("capture", "owners", "count"), 0),
        (("capture", "owners", "count"), "2"),
        (("manifests",), {}),
        (("manifests",), [{"file": "a"}]),
        (("manifests",), [{"file": "../a", "sha256": "a" * 64, "size": 1}]),
        (("capture", "epoch"), -1),
        (("capture", "time_ms"), 1e300),
        (("shards",), {}),
        (("shards", 0), []),
        (("shards", 0, "regions"), []),
        (("shards", 0, "size"), -8),
        (("shards", 0, "sha256"), 5),
        ((*FIRST_REGION, "count"), 0),
        ((*FIRST_REGION, "count"), -2),
        ((*FIRST_REGION, "count"), False),
        ((*FIRST_REGION, "first"), -1),
        ((*FIRST_REGION, "first"), 0.5),
        ((*FIRST_REGION, "field"), ["w"]),
        ((*FIRST_REGION, "stride"), 0),
        ((*FIRST_REGION, "stride"), 1.5),
        (("shards", 0, "regions", 1, "stride"), 2),  # of a single word
        *(
            (("shards", 0, "file"), name)
            for name in ("", ".", "..", ".hidden", "../up", "a/b", "/etc/passwd")
        ),
        *((("shards", 0, "file"), name) for name in ("a\\b", "a b", "a\0b", "a\nb", "n\u00e4me", "a" * 256)),
    ],
    ids=repr,
)
def test_a_value_that_no_manifest_has_is_refused(path: tuple[Any, ...], value: Any) -> None:
    made = make()
    change(*path, to=value)(made)
    assert outcome(made) == Label.CHECKPOINT_MANIFEST
    with pytest.raises(CheckpointError):
        names(made)


def test_only_the_canonical_form_is_a_manifest() -> None:
    made = make()
    for other in (made.bytes + b"\n", b" " + made.bytes, made.bytes.replace(b'"epoch":2', b'"epoch":2.0')):
        assert outcome(made, other) == Label.CHECKPOINT_MANIFEST
    assert (
        outcome(made, made.bytes.replace(b'"epoch":2', b'"epoch":9007199254740992'))
        == Label.CHECKPOINT_MANIFEST
    )
    assert outcome(made, b'{"state":1,' + made.bytes[1:]) == Label.CHECKPOINT_MANIFEST


@pytest.mark.parametrize(
    ("parts", "label"),
    [
        ([("a", [("w", 0, 3), ("B", 0, 2)])], Label.CHECKPOINT_COVERAGE),
        ([("a", [("w", 0, 3), ("B", 0, 2), ("v", 0, 3)])], Label.CHECKPOINT_COVERAGE),
        ([("a", [("w", 0, 3), ("B", 0, 2), ("v", 1, 3)])], Label.CHECKPOINT_COVERAGE),
        ([("a", [("w", 0, 3), ("B", 0, 2), ("v", 0, 5)])], Label.CHECKPOINT_COVERAGE),
        ([("a", [("w", 0, 3), ("B", 0, 2), ("v", 0, 2**50)])], Label.CHECKPOINT_COVERAGE),
        ([("a", [("w", 0, 3), ("B", 0, 2), ("v", 2**52, 2**52)])], Label.CHECKPOINT_COVERAGE),
        ([("a", [("w", 0, 3), ("B", 0, 2), ("v", 0, 4), ("u", 0, 1)])], Label.CHECKPOINT_COVERAGE),
        ([("a", [("u", 0, 1), ("w", 0, 3), ("B", 0, 2), ("v", 0, 4)])], Label.CHECKPOINT_COVERAGE),
        ([("a", [("w", 0, 3), ("B", 0, 2), ("v", 0, 4)]), ("b", [("u", 0, 1)])], Label.CHECKPOINT_COVERAGE),
        ([("a", [("w", 0, 3), ("B", 0, 2), ("v", 0, 4)]), ("b", [("w", 3, 1)])], Label.CHECKPOINT_COVERAGE),
        ([("a", [("w", 3, 1), ("w", 0, 3), ("B", 0, 2), ("v", 0, 4)])], Label.CHECKPOINT_MANIFEST),
        ([("a", [("w", 0, 3), ("B", 0, 2), ("v", 0, 4)]), ("b", [("v", 3, 1)])], Label.CHECKPOINT_COVERAGE),
        ([("a", [("w", 0, 2), ("B", 0, 2), ("v", 0, 4)]), ("b", [("w", 1, 2)])], Label.CHECKPOINT_COVERAGE),
        # a role reads regions in field order, one a field
        ([("a", [("B", 0, 2), ("w", 0, 3), ("v", 0, 4)])], Label.CHECKPOINT_MANIFEST),
        ([("a", [("w", 0, 1), ("w", 1, 2), ("B", 0, 2), ("v", 0, 4)])], Label.CHECKPOINT_MANIFEST),
        # one file cannot hold what two entries demand of it
        ([("a", [("w", 0, 3), ("B", 0, 2)]), ("a", [("v", 0, 4)])], Label.CHECKPOINT_CHUNK),
        ([("a", [("w", 0, 3), ("B", 0, 2), ("v", 0, 4)])] * 2, Label.CHECKPOINT_COVERAGE),
    ],
    ids=repr,
)
def test_regions_are_the_whole_state_once(parts: list[tuple[str, list[Region]]], label: Label) -> None:
    small = [
        (
            name,
            [
                (field, first, count) if first + count < 100 else (field, 0, 1)
                for field, first, count in regions
            ],
        )
        for name, regions in parts
    ]
    made = make(small)
    for entry, (_, regions) in zip(made.manifest["shards"], parts, strict=True):
        for region, (_, first, count) in zip(entry["regions"], regions, strict=True):
            region.update(first=first, count=count)
    assert outcome(made) == label


@pytest.mark.parametrize(
    "region",
    [
        {"count": 1, "field": "u", "first": 0, "stride": 1},
        {"count": 2, "field": "v", "first": 3, "stride": 1},
        {"count": 2, "field": "v", "first": 1, "stride": 3},
        {"count": 2, "field": "v", "first": 1, "stride": 2**52},
    ],
)
def test_regions_of_no_words_are_refused_though_no_file_holds_them(region: dict[str, Any]) -> None:
    """The rest is the whole state, and every file is what its other regions demand."""
    made = make([*HALVES, ("7.empty.safetensors", [])])
    made.manifest["shards"][2]["regions"] = [region]
    assert outcome(made) == Label.CHECKPOINT_COVERAGE
    made.manifest["system"] = "0" * 64
    assert outcome(made) == Label.CHECKPOINT_SYSTEM


def test_a_missing_shard_is_a_missing_part_of_the_state() -> None:
    for name, _ in HALVES:
        made = make()
        del made.shards[name]
        assert outcome(made) == Label.CHECKPOINT_COVERAGE


def test_a_shard_that_no_entry_names_is_no_part_of_the_set() -> None:
    made = make()
    made.shards["8.root.safetensors"] = b"another version's"
    assert isinstance(outcome(made), Checkpoint)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        struct.pack("<Q", 2**63) + b"{}",
        shard(HALVES[0][1])[:-1],
        shard(HALVES[0][1]) + b"\0",
        shard(HALVES[0][1], system="f" * 64),
        shard(HALVES[0][1], format="orch-checkpoint/v2"),
        shard(HALVES[0][1], epoch="02"),
        shard(HALVES[0][1], more="said"),
        shard([*HALVES[0][1], ("u", 0, 1)]),
        shard(HALVES[0][1][:-1]),
        shard([("w", 0, 2), ("v", 0, 2), ("B", 0, 1)]),
        shard(HALVES[0][1]).replace(b'"F64"', b'"I64"'),
        shard(HALVES[1][1]),
    ],
)
def test_a_shard_is_exactly_what_its_regions_demand(data: bytes) -> None:
    made = make()
    made.shards[HALVES[0][0]] = data
    made.seal(HALVES[0][0])
    assert outcome(made) == Label.CHECKPOINT_CHUNK


@pytest.mark.parametrize("word", [float("inf"), float("-inf"), float("nan")])
def test_a_state_that_is_not_finite_is_refused_as_such(word: float) -> None:
    assert outcome(make(words=(*WORDS[:-1], word))) == Label.NON_FINITE


def test_the_first_broken_rule_is_said_in_a_roles_order() -> None:
    """Manifest, system, coverage, chunk: each hides what comes after it."""
    made = make(words=(*WORDS[:-1], float("nan")))
    made.manifest["state"] = "0" * 64
    assert outcome(made) == Label.CHECKPOINT_CHUNK
    del made.shards[HALVES[1][0]]
    assert outcome(made) == Label.CHECKPOINT_COVERAGE
    made.manifest["system"] = "0" * 64
    assert outcome(made) == Label.CHECKPOINT_SYSTEM
    made.manifest["version"] = -1
    assert outcome(made) == Label.CHECKPOINT_MANIFEST


def test_another_systems_set_is_refused_though_it_is_whole() -> None:
    files = write_set(replace(SYSTEM, rate=2.0), 1, array("d", WORDS), ONE)
    files["manifest.json"] = files.pop(manifest_name(1))
    with pytest.raises(CheckpointError) as refused:
        read_set(SYSTEM, files)
    assert refused.value.label == Label.CHECKPOINT_SYSTEM
