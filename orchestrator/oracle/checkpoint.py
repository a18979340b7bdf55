"""Reads and writes a checkpoint set without the role programs: the second opinion on what they publish.

A set is one manifest and the shards that it names. Regions are logical (field, first coordinate, count), never
rank or address; together they cover every field of the system exactly once.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import safetensors
from evidence.canonical import CanonicalError, dumps, loads

from orchestrator.errors import Label
from orchestrator.oracle.reference import state_digest
from orchestrator.plan.model import System

SCHEMA = "orch-checkpoint/v1"
_MANIFEST_KEYS = {"capture", "schema", "shards", "state", "system", "version"}


class CheckpointError(Exception):
    """A set is not a whole checkpoint of its system; `label` is what a role program must say of it."""

    def __init__(self, label: Label, message: str) -> None:
        super().__init__(f"{label}: {message}")
        self.label = label


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
    words: tuple[float, ...]
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
    """The shard files that a manifest names.

    Raises:
        CheckpointError: the manifest cannot be read.
    """
    return tuple(shard["file"] for shard in _manifest(manifest)["shards"])


def read_set(system: System, manifest: bytes, shards: Mapping[str, bytes]) -> Checkpoint:
    """The state that a set holds, every digest checked.

    Args:
        system: whose state it must be.
        manifest: bytes of the manifest.
        shards: file name -> bytes.

    Raises:
        CheckpointError: with the label of the first rule broken.
    """
    content = _manifest(manifest)
    if content["system"] != system.digest:
        raise CheckpointError(
            Label.CHECKPOINT_SYSTEM, f"(got system {content['system']}, expected {system.digest})"
        )
    words = _assemble(system, content["shards"], shards)
    if state_digest(words) != content["state"]:
        raise CheckpointError(
            Label.CHECKPOINT_CHUNK, f"state differs (got {state_digest(words)}, expected {content['state']})"
        )
    capture = content["capture"]
    return Checkpoint(
        version=content["version"],
        words=words,
        state=content["state"],
        system=content["system"],
        epoch=capture["epoch"],
        owners=tuple(capture["owners"]),
        plan=capture["plan"],
        run=capture["run"],
    )


def _manifest(data: bytes) -> dict[str, Any]:
    try:
        content = loads(data, canonical=True)
        if set(content) != _MANIFEST_KEYS or content["schema"] != SCHEMA:
            raise CheckpointError(Label.CHECKPOINT_MANIFEST, f"not a manifest of {SCHEMA}")
        for shard in content["shards"]:
            if set(shard) != {"file", "regions", "sha256", "size"}:
                raise CheckpointError(Label.CHECKPOINT_MANIFEST, "a shard's entry is not whole")
    except (CanonicalError, TypeError, KeyError) as error:
        raise CheckpointError(Label.CHECKPOINT_MANIFEST, str(error)) from error
    return dict(content)


def _assemble(
    system: System, entries: Sequence[Mapping[str, Any]], shards: Mapping[str, bytes]
) -> tuple[float, ...]:
    fields: dict[str, list[float | None]] = {field.name: [None] * field.size for field in system.state_fields}
    for entry in entries:
        for region in entry["regions"]:
            words = fields.get(region["field"])
            first, count = region["first"], region["count"]
            if words is None or first < 0 or count < 1 or first + count > len(words):
                raise CheckpointError(Label.CHECKPOINT_COVERAGE, f"no such region (got {dict(region)})")
            if any(word is not None for word in words[first : first + count]):
                raise CheckpointError(Label.CHECKPOINT_COVERAGE, f"region twice (got {dict(region)})")
            words[first : first + count] = [0.0] * count
        if entry["file"] not in shards:
            raise CheckpointError(Label.CHECKPOINT_COVERAGE, f"shard is missing (expected {entry['file']})")
    if any(word is None for words in fields.values() for word in words):
        raise CheckpointError(Label.CHECKPOINT_COVERAGE, "some coordinates are in no region")
    for entry in entries:
        for region, values in _shard(entry, shards[entry["file"]]):
            fields[region["field"]][region["first"] : region["first"] + region["count"]] = values
    return tuple(word for field in system.state_fields for word in fields[field.name] if word is not None)


def _shard(
    entry: Mapping[str, Any], data: bytes
) -> list[tuple[Mapping[str, Any], list[float]]]:
    got = hashlib.sha256(data).hexdigest()
    if got != entry["sha256"] or len(data) != entry["size"]:
        raise CheckpointError(
            Label.CHECKPOINT_CHUNK, f"{entry['file']} differs (got {got}, expected {entry['sha256']})"
        )
    try:
        tensors = dict(safetensors.deserialize(data))  # type: ignore[no-untyped-call]  # compiled, without stubs
    except Exception as error:  # the library raises a type of its own for every malformed file
        raise CheckpointError(Label.CHECKPOINT_CHUNK, f"{entry['file']}: {error}") from error
    found = []
    for region in entry["regions"]:
        name = tensor_name(region["field"], region["first"], region["count"])
        tensor = tensors.pop(name, None)
        if tensor is None or tensor["dtype"] != "F64" or list(tensor["shape"]) != [region["count"]]:
            raise CheckpointError(
                Label.CHECKPOINT_CHUNK, f"{entry['file']} holds no {name} of {region['count']} binary64 words"
            )
        found.append((region, list(struct.unpack(f"<{region['count']}d", bytes(tensor["data"])))))
    if tensors:
        raise CheckpointError(
            Label.CHECKPOINT_CHUNK, f"{entry['file']} holds more than its regions (got {sorted(tensors)})"
        )
    return found


def tensor_name(field: str, first: int, count: int) -> str:
    """Name of a region's tensor in its shard: `w[0:3]`."""
    return f"{field}[{first}:{first + count}]"


def write_set(system: System, version: int, words: Sequence[float], capture: Mapping[str, Any]) -> dict[str, bytes]:
    """A set of one shard, as files by name; the manifest is under `manifest.json`."""
    regions = [{"count": field.size, "field": field.name, "first": 0} for field in system.state_fields]
    shard = _safetensors(system, version, words)
    name = f"{version}.all.safetensors"
    manifest = {
        "capture": dict(capture),
        "schema": SCHEMA,
        "shards": [
            {"file": name, "regions": regions, "sha256": hashlib.sha256(shard).hexdigest(), "size": len(shard)}
        ],
        "state": state_digest(words),
        "system": system.digest,
        "version": version,
    }
    return {"manifest.json": dumps(manifest), name: shard}


def _safetensors(system: System, version: int, words: Sequence[float]) -> bytes:
    """The safetensors file of all fields whole; the library's own writer wants NumPy arrays or raw addresses."""
    header: dict[str, Any] = {
        "__metadata__": {"format": SCHEMA, "system": system.digest, "version": str(version)}
    }
    at = 0
    for field in system.state_fields:
        offsets = [at * 8, (at + field.size) * 8]
        name = tensor_name(field.name, 0, field.size)
        header[name] = {"data_offsets": offsets, "dtype": "F64", "shape": [field.size]}
        at += field.size
    text = dumps(header)
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + struct.pack(f"<{len(words)}d", *words)
