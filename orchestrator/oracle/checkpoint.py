"""Reads and writes a checkpoint set without the role programs: the second opinion on what they publish.

A set is one manifest and the shards that it names. Regions are logical (field, first coordinate, count),
never rank or address; together they cover every field of the system exactly once. Accepts what a role program
accepts, and names the same label where it refuses; which epoch a set may be loaded in is not known here.
"""

from __future__ import annotations

import hashlib
import math
import struct
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import safetensors

from evidence.canonical import dumps
from orchestrator.errors import Label
from orchestrator.oracle.manifest import SCHEMA, CheckpointError, Region, Shard, read_manifest
from orchestrator.oracle.reference import decoded, encoded, state_digest
from orchestrator.plan.model import System

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "manifest_name",
    "read_set",
    "shard_names",
    "write_set",
]


@dataclass(frozen=True)
class Checkpoint:
    """A published state.

    Attributes:
        version: updates made.
        words: the state vector.
        state: its digest as the manifest gives it.
        system: digest of the system.
        epoch: membership epoch of the capture.
        owners: role names of the capture, in order.
        plan: digest of the plan that wrote it.
        run: run id, 32 hexadecimal digits.
    """

    version: int
    words: array[float]
    state: str
    system: str
    epoch: int
    owners: tuple[str, ...]
    plan: str
    run: str


def manifest_name(version: int) -> str:
    """File name under which version N's manifest is published."""
    return f"{version}.manifest.json"


def shard_names(manifest: bytes) -> tuple[str, ...]:
    """The shard files that a manifest names: plain names, that lead into no other folder.

    Raises:
        CheckpointError: the manifest cannot be read.
    """
    return tuple(shard.file for shard in read_manifest(manifest).shards)


def read_set(system: System, manifest: bytes, shards: Mapping[str, bytes]) -> Checkpoint:
    """The state that a set holds, every digest checked.

    Args:
        system: whose state it must be.
        manifest: bytes of the manifest.
        shards: file name -> bytes.

    Raises:
        CheckpointError: with the label of the first rule broken.
    """
    content = read_manifest(manifest)
    for shard in content.shards:
        _check_order(system, shard)
    if content.system != system.digest:
        raise CheckpointError(
            Label.CHECKPOINT_SYSTEM, f"another system's (got {content.system}, expected {system.digest})"
        )
    _check_cover(system, content.shards, shards)
    words = _load(system, content.version, content.shards, shards)
    if (state := state_digest(words)) != content.state:
        raise CheckpointError(
            Label.CHECKPOINT_CHUNK, f"the state differs (got {state}, expected {content.state})"
        )
    if not all(math.isfinite(word) for word in words):
        raise CheckpointError(Label.NON_FINITE, "a word of the state is not finite")
    return Checkpoint(
        version=content.version,
        words=words,
        state=content.state,
        system=content.system,
        epoch=content.epoch,
        owners=content.owners,
        plan=content.plan,
        run=content.run,
    )


def _check_order(system: System, shard: Shard) -> None:
    """Regions of the system's fields stand in field order, one a field."""
    order = {field.name: place for place, field in enumerate(system.state_fields)}
    own = [order[region.field] for region in shard.regions if region.field in order]
    if any(place >= following for place, following in pairwise(own)):
        raise CheckpointError(
            Label.CHECKPOINT_MANIFEST, f"regions of {shard.file} do not stand in field order, one a field"
        )


def _check_cover(system: System, entries: Sequence[Shard], shards: Mapping[str, bytes]) -> None:
    covered = {field.name: bytearray(field.size) for field in system.state_fields}
    for entry in entries:
        if entry.file not in shards:
            raise CheckpointError(Label.CHECKPOINT_COVERAGE, f"shard is missing (expected {entry.file})")
        for region in entry.regions:
            cover = covered.get(region.field, bytearray())
            if region.end > len(cover):
                raise CheckpointError(
                    Label.CHECKPOINT_COVERAGE, f"the system has no such words (got {region.tensor})"
                )
            if any(cover[region.first : region.end]):
                raise CheckpointError(Label.CHECKPOINT_COVERAGE, f"words twice (got {region.tensor})")
            cover[region.first : region.end] = b"\1" * region.count
    if not all(all(cover) for cover in covered.values()):
        raise CheckpointError(Label.CHECKPOINT_COVERAGE, "some words are in no region")


def _load(
    system: System, version: int, entries: Sequence[Shard], shards: Mapping[str, bytes]
) -> array[float]:
    fields = {field.name: array("d", bytes(8 * field.size)) for field in system.state_fields}
    for entry in entries:
        data = shards[entry.file]
        got = hashlib.sha256(data).hexdigest()
        if got != entry.sha256 or len(data) != entry.size:
            raise CheckpointError(
                Label.CHECKPOINT_CHUNK,
                f"{entry.file} differs"
                f" (got {got} of {len(data)} bytes, expected {entry.sha256} of {entry.size})",
            )
        header = shard_header(system.digest, version, entry.regions)
        if not data.startswith(header) or len(data) != len(header) + 8 * sum(r.count for r in entry.regions):
            raise CheckpointError(
                Label.CHECKPOINT_CHUNK, f"{entry.file} is not the file that its regions demand"
            )
        # read as its users would: nothing in it can surprise the library any more
        tensors = dict(safetensors.deserialize(data))  # type: ignore[no-untyped-call]  # compiled, without stubs
        for region in entry.regions:
            fields[region.field][region.first : region.end] = decoded(bytes(tensors[region.tensor]["data"]))
    state = array("d")
    for field in system.state_fields:
        state += fields[field.name]
    return state


def write_set(
    system: System, version: int, words: array[float], capture: Mapping[str, Any]
) -> dict[str, bytes]:
    """A set of one shard, as files by name; the manifest is under `manifest.json`.

    Args:
        system: whose state it is.
        version: updates made.
        words: the state vector.
        capture: `epoch`, `owners`, `plan`, `run` and `time_ms`, as the manifest will say them.
    """
    regions = tuple(Region(field.name, 0, field.size) for field in system.state_fields)
    shard = shard_header(system.digest, version, regions) + encoded(words)
    name = f"{version}.all.safetensors"
    manifest = {
        "capture": dict(capture),
        "schema": SCHEMA,
        "shards": [
            {
                "file": name,
                "regions": [
                    {"count": region.count, "field": region.field, "first": region.first}
                    for region in regions
                ],
                "sha256": hashlib.sha256(shard).hexdigest(),
                "size": len(shard),
            }
        ],
        "state": state_digest(words),
        "system": system.digest,
        "version": version,
    }
    return {"manifest.json": dumps(manifest), name: shard}


def shard_header(system: str, version: int, regions: Sequence[Region]) -> bytes:
    """The one safetensors header of these regions: keys sorted, data in field order, 8 bytes aligned."""
    header: dict[str, Any] = {"__metadata__": {"format": SCHEMA, "system": system, "version": str(version)}}
    at = 0
    for region in regions:
        end = at + 8 * region.count
        header[region.tensor] = {"data_offsets": [at, end], "dtype": "F64", "shape": [region.count]}
        at = end
    text = dumps(header)
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text
