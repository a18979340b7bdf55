"""The two readers of checkpoint sets beside each other: the oracle says what a role program does."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import struct
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoint_sets import HALVES, SYSTEM, Region, Set, json_values, make, nested, places, shard
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.build.bind import bind
from orchestrator.build.binding import Binding
from orchestrator.build.compile import Made, build_program
from orchestrator.oracle.checkpoint import CheckpointError, read_set
from orchestrator.plan.model import Plan, Role
from orchestrator.plan.ownership import Ownership
from orchestrator.plan.topology import star

Reader = Callable[[dict[str, bytes]], str]


@pytest.fixture(scope="module")
def role_reads(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Gives the state that a role evaluates from a set, or the label that it refuses it by."""
    plan = Plan(SYSTEM, (Role("alone", 0, 0, 1),), star(1), Ownership(*["replicated"] * 3))
    program = build_program(plan, plan.roles[0], Made("x86_64-linux"), Path(__file__).parents[3], None)
    samples = struct.pack("<d", 1.0)
    binding = Binding(
        plan=plan.digest,
        run_id=str(uuid.UUID(int=1)),
        epoch=2**53 - 1,  # of no set: those end one before
        mode="evaluate",
        resume=True,
        restore_sha256=None,
        target=0,
        publish_at=0,
        data_sha256=hashlib.sha256(samples).hexdigest(),
        address="127.0.0.1",
        port=0,
        connect_ms=10_000,
        round_ms=10_000,
        run_ms=60_000,
        secret="5e" * 16,
    )
    folder = tmp_path_factory.mktemp("role")
    executable = folder / "role.elf"
    executable.write_bytes(bind(program, binding))
    executable.chmod(0o700)
    (folder / "samples").write_bytes(samples)

    def read(files: dict[str, bytes]) -> str:
        restore = folder / "restore"
        shutil.rmtree(restore, ignore_errors=True)
        restore.mkdir()
        for name, data in files.items():
            (restore / name).write_bytes(data)
        done = subprocess.run([executable, folder], capture_output=True, check=False, timeout=60)
        if done.returncode == 0:
            return str(json.loads(done.stdout)["state"])
        assert (done.returncode, done.stdout) == (1, b"")
        return done.stderr.decode().removesuffix("\n")

    return read


def oracle_reads(files: dict[str, bytes]) -> str:
    try:
        return read_set(SYSTEM, files).state
    except CheckpointError as error:
        return str(error.label)


def agree(role_reads: Reader, made: Set, manifest: bytes | None = None) -> str:
    files = made.files if manifest is None else {**made.files, "manifest.json": manifest}
    ours = oracle_reads(files)
    assert ours == role_reads(files), files
    return ours


def test_a_sound_set(role_reads: Reader) -> None:
    assert agree(role_reads, make()) == make().manifest["state"]


@settings(max_examples=200)
@given(st.data())
def test_a_manifest_with_a_byte_changed(role_reads: Reader, data: st.DataObject) -> None:
    whole = make().bytes
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 127) | st.sampled_from(b'0123456789abcdef"[]{},:'))
    agree(role_reads, make(), whole[:at] + bytes([byte]) + whole[at + 1 :])


@settings(max_examples=200)
@given(st.data())
def test_a_manifest_with_a_value_changed(role_reads: Reader, data: st.DataObject) -> None:
    made = make()
    container, key = data.draw(st.sampled_from(list(places(made.manifest))))
    container[key] = data.draw(
        json_values | st.sampled_from(["w", "v", "B", "a" * 64, 0, 1, 2, 3, HALVES[0][0]])
    )
    agree(role_reads, made)


@settings(max_examples=200)
@given(st.data())
def test_a_shard_with_a_byte_changed(role_reads: Reader, data: st.DataObject) -> None:
    made = make()
    name = data.draw(st.sampled_from(sorted(made.shards)))
    at = data.draw(st.integers(0, len(made.shards[name]) - 1))
    changed = bytearray(made.shards[name])
    changed[at] = data.draw(st.integers(0, 255))
    made.shards[name] = bytes(changed)
    if data.draw(st.booleans()):
        made.seal(name)
    agree(role_reads, made)


regions = st.lists(
    st.tuples(
        st.sampled_from(["w", "B", "v", "u"]), st.integers(0, 3), st.integers(1, 4), st.integers(1, 3)
    ).map(lambda region: region if region[2] > 1 else (*region[:3], 1)),
    min_size=1,
    max_size=4,
)


@settings(max_examples=200)
@given(st.lists(regions, min_size=1, max_size=3), st.booleans())
def test_regions_of_every_kind(role_reads: Reader, parts: list[list[Region]], in_order: bool) -> None:  # noqa: FBT001
    """Gaps, overlaps, ends past the field, unknown ones, repetitions; in a role's order or not."""
    if in_order:
        order = ["w", "u", *(field.name for field in SYSTEM.state_fields[1:])]
        parts = [sorted({r[0]: r for r in part}.values(), key=lambda r: order.index(r[0])) for part in parts]
    agree(role_reads, make([(f"{number}.safetensors", part) for number, part in enumerate(parts)]))


@settings(max_examples=50)
@given(st.integers(0, 1), st.integers(0, 3), st.sampled_from(["w", "B", "v", "u"]), st.integers(0, 4))
def test_a_region_too_many(role_reads: Reader, entry: int, at: int, field: str, first: int) -> None:
    """The shards stay as they are, and hold the whole state."""
    made = make()
    made.manifest["shards"][entry]["regions"].insert(
        at, {"count": 1, "field": field, "first": first, "stride": 1}
    )
    assert agree(role_reads, made) in ("checkpoint-coverage", "checkpoint-manifest")


@settings(max_examples=200)
@given(st.data())
def test_a_tree_of_manifests_with_a_value_changed(role_reads: Reader, data: st.DataObject) -> None:
    made = nested()
    which = data.draw(st.sampled_from([made.manifest, *made.parts.values()]))
    container, key = data.draw(st.sampled_from(list(places(which))))
    container[key] = data.draw(
        json_values | st.sampled_from(["w", "a" * 64, 1, 2, 3, HALVES[0][0], *made.parts])
    )
    if data.draw(st.booleans()) and all(isinstance(part["manifests"], list) for part in made.parts.values()):
        with contextlib.suppress(TypeError, KeyError, AttributeError):
            made.seal_parts()
    agree(role_reads, made)


@settings(max_examples=50)
@given(st.data())
def test_pieces_of_other_captures(role_reads: Reader, data: st.DataObject) -> None:
    made = nested()
    about = st.sampled_from([{}, {"epoch": "1"}, {"run": "f" * 32}, {"version": "6"}, {"system": "f" * 64}])
    name, regions = HALVES[1]
    made.shards[name] = shard([("w", 1, 1), *regions[1:]], **data.draw(about))
    if data.draw(st.booleans()):
        made.parts["7.inner1.manifest.json"]["shards"][0].update(
            sha256=hashlib.sha256(made.shards[name]).hexdigest(), size=len(made.shards[name])
        )
    made.seal_parts()
    agree(role_reads, made)


@settings(max_examples=50)
@given(st.lists(st.floats(), min_size=9, max_size=9))
def test_words_of_every_kind(role_reads: Reader, words: list[float]) -> None:
    agree(role_reads, make(words=words))
