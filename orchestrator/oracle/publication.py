"""Writes checkpoint sets: of one shard, or the very files that the roles of a plan leave.

The second writer of the format, beside the role programs: what they publish is compared with it byte for
byte, and controls are made with it.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Mapping, Sequence

from evidence.canonical import dumps
from orchestrator.oracle.checkpoint import manifest_name, part_name
from orchestrator.oracle.manifest import Capture, File, Manifest, PartManifest, Region, Shard
from orchestrator.oracle.reference import state_digest
from orchestrator.oracle.shards import header, packed, regions_of, shard_name
from orchestrator.plan.model import Plan, System
from orchestrator.plan.ownership import part

Files = dict[str, bytes]


def write_set(system: System, version: int, words: array[float], capture: Capture) -> Files:
    """A set of one shard and one owner, captured at no time: file name -> bytes.

    Args:
        system: whose state it is.
        version: updates made.
        words: the state vector.
        capture: as the manifest will say it.
    """
    regions = tuple(Region(field.name, part(0, 1, field.size)) for field in system.state_fields)
    fields = _cut(system, words)
    name = shard_name(version, "all")
    files = {name: _shard_bytes(system, version, capture, regions, fields)}
    top = PartManifest(version, capture, (_shard(name, files[name], regions),), ())
    manifest = Manifest(top, state_digest(words), system.digest, owners=1, time_ms=0)
    return {**files, manifest_name(version): dumps(manifest.as_json())}


def write_as(plan: Plan, version: int, words: array[float], capture: Capture, *, time_ms: int) -> Files:
    """The files that the roles of a plan leave when they publish: file name -> bytes.

    A role with children names its own shard, those of its children without children, and the parts of the
    others; its part goes up to its parent, the root's is the manifest.
    """
    topology, fields = plan.topology, _cut(plan.system, words)
    files: Files = {}
    shards: dict[int, tuple[Shard, ...]] = {}
    parts: dict[int, tuple[File, ...]] = {}
    for role in reversed(plan.roles):  # a role's children come after it
        regions = regions_of(plan, role)
        name = shard_name(version, role.name)
        own: tuple[Shard, ...] = ()
        if regions:
            files[name] = _shard_bytes(plan.system, version, capture, regions, fields)
            own = (_shard(name, files[name], regions),)
        children = topology.children(role.index)
        below = (shards.pop(child) for child in children if not topology.children(child))
        shards[role.index] = (*own, *(shard for each in below for shard in each))
        parts[role.index] = tuple(each for child in children for each in parts.pop(child))
        if children and role.index:
            content = PartManifest(version, capture, shards.pop(role.index), parts[role.index])
            name = part_name(version, role.name)
            files[name] = dumps(content.as_json())
            parts[role.index] = (File(name, hashlib.sha256(files[name]).hexdigest(), len(files[name])),)
    top = PartManifest(version, capture, shards[0], parts[0])
    manifest = Manifest(top, state_digest(words), plan.system.digest, len(plan.roles), time_ms)
    return {**files, manifest_name(version): dumps(manifest.as_json())}


def _cut(system: System, words: array[float]) -> Mapping[str, array[float]]:
    """Field -> its words of a state vector."""
    fields, at = {}, 0
    for field in system.state_fields:
        fields[field.name] = words[at : at + field.size]
        at += field.size
    return fields


def _shard_bytes(
    system: System,
    version: int,
    capture: Capture,
    regions: Sequence[Region],
    fields: Mapping[str, array[float]],
) -> bytes:
    start = header(system.digest, version, capture, regions, system.word)
    return packed(start, [fields[region.field][region.words] for region in regions])


def _shard(name: str, data: bytes, regions: tuple[Region, ...]) -> Shard:
    return Shard(name, hashlib.sha256(data).hexdigest(), len(data), regions)
