"""Surveys of checkpoint sets: every fault at once, and never another opinion than the reader's."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from typing import Any

import pytest
from checkpoint_sets import HALVES, SYSTEM, WORDS, Set, canonical, json_values, make, nested, places, shard
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import Label
from orchestrator.oracle.checkpoint import CheckpointError, read_set
from orchestrator.oracle.survey import Survey, outline, survey

ROOT = "7.manifest.json"


def look(made: Set, system: Any = SYSTEM, manifest: bytes | None = None) -> Survey:
    files = {ROOT: made.bytes if manifest is None else manifest, **made.shards, **made.part_bytes}
    return survey(ROOT, files.get, system)


def labels(made: Set, system: Any = SYSTEM) -> list[tuple[Label, str]]:
    return [(fault.label, fault.file) for fault in look(made, system).faults]


@pytest.mark.parametrize("system", [SYSTEM, None])
def test_a_sound_set_is_its_words(system: Any) -> None:
    found = look(make(), system)
    assert (found.faults, found.is_decided) == ((), True)
    assert list(found.words) == ["w", "B", "v"]
    held = b"".join(words.tobytes() for words in found.words.values())
    assert held == struct.pack("<9d", *WORDS)


def test_every_fault_is_named_at_once() -> None:
    parts = [
        ("7.a.safetensors", [("w", 0, 2), ("v", 0, 3)]),
        ("7.b.safetensors", [("w", 1, 1), ("v", 4, 2)]),
        ("7.c.safetensors", [("B", 0, 1)]),
        ("7.d.safetensors", [("B", 1, 1)]),
    ]
    made = make(parts)
    made.shards["7.c.safetensors"] += b"\0"
    del made.shards["7.d.safetensors"]
    assert labels(made) == [
        (Label.CHECKPOINT_COVERAGE, ROOT),  # w[1] twice
        (Label.CHECKPOINT_COVERAGE, ROOT),  # v[5] is not there
        (Label.CHECKPOINT_COVERAGE, ROOT),  # w[2]
        (Label.CHECKPOINT_COVERAGE, ROOT),  # v[3]
        (Label.CHECKPOINT_CHUNK, "7.c.safetensors"),
        (Label.CHECKPOINT_COVERAGE, "7.d.safetensors"),
    ]


def _flipped(made: Set) -> None:
    data = made.shards["7.root.safetensors"]
    made.shards["7.root.safetensors"] = data[:-1] + bytes([data[-1] ^ 1])


def _stated(made: Set) -> None:
    made.manifest["state"] = "ab" * 32


def _of_another(made: Set) -> None:
    made.manifest["system"] = "cd" * 32


def _unlike_its_regions(made: Set) -> None:
    made.shards["7.root.safetensors"] = shard([*HALVES[0][1], ("u", 0, 1)])
    made.seal("7.root.safetensors")


def _infinite(made: Set) -> None:
    words = (float("inf"), *WORDS[1:])
    made.shards["7.root.safetensors"] = shard(HALVES[0][1], words)
    made.seal("7.root.safetensors")
    made.manifest["state"] = hashlib.sha256(struct.pack("<9d", *words)).hexdigest()


def _disordered(made: Set) -> None:
    made.manifest["shards"][0]["regions"].reverse()


FAULTS: dict[str, tuple[Callable[[Set], None], Label]] = {
    "flipped": (_flipped, Label.CHECKPOINT_CHUNK),
    "stated": (_stated, Label.CHECKPOINT_CHUNK),
    "of-another": (_of_another, Label.CHECKPOINT_SYSTEM),
    "unlike-its-regions": (_unlike_its_regions, Label.CHECKPOINT_CHUNK),
    "infinite": (_infinite, Label.NON_FINITE),
    "disordered": (_disordered, Label.CHECKPOINT_MANIFEST),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_by_its_label(what: str) -> None:
    change, label = FAULTS[what]
    made = make()
    change(made)
    assert label in [found for found, _ in labels(made)]


@pytest.mark.parametrize("what", sorted(FAULTS.keys() - {"of-another"}))
def test_a_fault_is_found_without_the_system(what: str) -> None:
    change, label = FAULTS[what]
    made = make()
    change(made)
    assert label in [found for found, _ in labels(made, None)]


def test_words_that_no_region_reaches_are_missed_by_the_digest() -> None:
    parts = [(name, [region for region in regions if region[0] != "v"]) for name, regions in HALVES]
    assert labels(make(parts), None) == [(Label.CHECKPOINT_CHUNK, ROOT)]


def test_an_order_that_the_set_does_not_tell_is_no_state() -> None:
    made = make(
        [(f"7.{field}.safetensors", [(field, 0, size)]) for field, size in (("w", 3), ("B", 2), ("v", 4))]
    )
    assert look(made, SYSTEM).is_decided
    found = look(made, None)
    assert (found.faults, found.is_decided) == ((), False)


def test_a_claim_is_given_no_room() -> None:
    made = make()
    made.manifest["shards"][0]["regions"][0]["first"] = 2**52
    assert (Label.CHECKPOINT_COVERAGE, ROOT) in labels(made, None)
    assert (Label.CHECKPOINT_COVERAGE, ROOT) in labels(made)


def _another_capture(made: Set) -> None:
    made.shards["7.other.safetensors"] = shard([("w", 1, 1), *HALVES[1][1][1:]], epoch="1")
    part = made.parts["7.inner1.manifest.json"]["shards"][0]
    part["sha256"] = hashlib.sha256(made.shards["7.other.safetensors"]).hexdigest()
    made.seal_parts()


def _part_of_another_capture(made: Set) -> None:
    made.parts["7.inner1.manifest.json"]["capture"]["epoch"] = 1
    made.seal_parts()


def _part_gone(made: Set) -> None:
    del made.parts["7.inner1.manifest.json"]


def _part_changed(made: Set) -> None:
    made.parts["7.inner1.manifest.json"]["shards"][0]["size"] += 1


@pytest.mark.parametrize("system", [SYSTEM, None], ids=["known", "unknown"])
@pytest.mark.parametrize(
    ("change", "label"),
    [
        (_another_capture, Label.CHECKPOINT_CAPTURE),
        (_part_of_another_capture, Label.CHECKPOINT_CAPTURE),
        (_part_gone, Label.CHECKPOINT_COVERAGE),
        (_part_changed, Label.CHECKPOINT_CHUNK),
    ],
)
def test_a_tree_of_manifests_is_looked_through(
    change: Callable[[Set], None], label: Label, system: Any
) -> None:
    made = nested()
    found = look(made, system)
    assert found.faults == ()
    assert [shard.file for shard in found.outline.shards] == ["7.root.safetensors", "7.other.safetensors"]
    change(made)
    assert label in [said for said, _ in labels(made, system)]


@pytest.mark.parametrize("data", [None, b"", b"{}", b"[]", canonical({"schema": "x"})])
def test_without_a_manifest_nothing_is_said(data: bytes | None) -> None:
    with pytest.raises(CheckpointError) as caught:
        outline(ROOT, {ROOT: data}.get)
    assert caught.value.label == (Label.CHECKPOINT_MISSING if data is None else Label.CHECKPOINT_MANIFEST)


@given(st.data())
def test_a_survey_finds_what_a_reader_refuses(data: st.DataObject) -> None:
    made = make()
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(list(places(made.manifest))))
        container[key] = data.draw(json_values)
    try:
        read_set(SYSTEM, made.files)
        refused = None
    except CheckpointError as error:
        refused = error.label
    try:
        found = {fault.label for fault in look(made).faults}
    except CheckpointError as error:
        found = {error.label}
    assert refused in found if refused else not found


def test_every_part_of_a_manifest_is_looked_at() -> None:
    made = nested(3)
    assert labels(made) == []
    made.parts["7.inner0.manifest.json"]["capture"]["epoch"] += 1
    made.parts["7.inner1.manifest.json"]["version"] += 1
    made.seal_parts()
    made.parts["7.inner2.manifest.json"]["shards"] *= 2
    assert labels(made) == [
        (Label.CHECKPOINT_CAPTURE, "7.inner0.manifest.json"),
        (Label.CHECKPOINT_CAPTURE, "7.inner1.manifest.json"),
        (Label.CHECKPOINT_CHUNK, "7.inner2.manifest.json"),
        *[(Label.CHECKPOINT_COVERAGE, ROOT)] * 3,  # each of its regions twice
    ]


def test_a_part_that_cannot_be_read_hides_no_other_fault() -> None:
    made = nested()
    files = {ROOT: made.bytes, **made.shards, **made.part_bytes, "7.inner1.manifest.json": b"{}"}
    del files["7.root.safetensors"]
    found = [(fault.label, fault.file) for fault in survey(ROOT, files.get, SYSTEM).faults]
    assert (Label.CHECKPOINT_MANIFEST, "7.inner1.manifest.json") in found
    assert (Label.CHECKPOINT_COVERAGE, "7.root.safetensors") in found
