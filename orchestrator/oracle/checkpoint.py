"""Reads a checkpoint set without the role programs: the second opinion on what they publish.

A set is the root's manifest, the part manifests below it, and the shards that all of them name. Regions are
logical (field, coordinates), never rank or address; together they cover every field of the system exactly
once. Accepts what a role program accepts, and names the same label where it refuses, in the same order; which
epoch a set may be loaded in is not known here.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from orchestrator.errors import Label
from orchestrator.oracle.manifest import (
    CheckpointError,
    File,
    Manifest,
    PartManifest,
    Shard,
    capture_said,
    read_manifest,
    read_part,
)
from orchestrator.oracle.reference import state_digest
from orchestrator.oracle.shards import captured, header, is_right, words_in
from orchestrator.plan.model import System

__all__ = ["MANIFEST", "Checkpoint", "CheckpointError", "manifest_name", "part_name", "read_set", "set_names"]

MANIFEST = "manifest.json"
"""The root's manifest in a set that is to be restored; all other files bear their own names."""
DEEPEST = 32  # where a role has two children, a tree of more roles than anyone has
Read = Callable[[str], bytes | None]


@dataclass(frozen=True)
class Checkpoint:
    """A published state.

    Attributes:
        version: updates made.
        words: the state vector.
        state: its digest as the manifest gives it.
        system: digest of the system.
        epoch: membership epoch of the capture.
        owners: how many roles captured it.
        plan: digest of the plan that wrote it.
        run: run id, 32 hexadecimal digits.
        time_ms: when, by the root's clock, since 1970.
    """

    version: int
    words: array[float]
    state: str
    system: str
    epoch: int
    owners: int
    plan: str
    run: str
    time_ms: int


def manifest_name(version: int) -> str:
    """File name under which version N's manifest is published by the root."""
    return f"{version}.manifest.json"


def part_name(version: int, role: str) -> str:
    """File name under which another role publishes its part of version N's manifest."""
    return f"{version}.{role}.manifest.json"


def set_names(manifest: bytes, read: Read) -> tuple[str, ...]:
    """The other files of a set: parts, then shards. Plain names, that lead into no other folder.

    Args:
        manifest: bytes of the root's manifest.
        read: name -> bytes of a part; None if it is not there.

    Raises:
        CheckpointError: a manifest cannot be read, is not there, or is of another capture.
    """
    parts = tuple(parts_of(read_manifest(manifest), read))
    names = [each.file for part in parts for each in part.parts]
    return (*names, *(shard.file for part in parts for shard in part.shards))


def read_set(system: System, files: Mapping[str, bytes]) -> Checkpoint:
    """The state that a set holds, every digest checked.

    Args:
        system: whose state it must be.
        files: name -> bytes; the root's manifest is `manifest.json`. Files that nobody names are no matter.

    Raises:
        CheckpointError: with the label of the first rule broken.
    """
    content = read_manifest(files.get(MANIFEST, b""))
    _check_order(system, content.top)
    if content.system != system.digest:
        raise CheckpointError(
            Label.CHECKPOINT_SYSTEM, f"another system's (got {content.system}, expected {system.digest})"
        )
    shards = [
        shard
        for part in parts_of(content, files.get, lambda part: _check_order(system, part))
        for shard in part.shards
    ]
    _check_cover(system, shards, files)
    words = _load(system, content.top, shards, files)
    if (state := state_digest(words)) != content.state:
        raise CheckpointError(
            Label.CHECKPOINT_CHUNK, f"the state differs (got {state}, expected {content.state})"
        )
    if not all(map(math.isfinite, words)):
        raise CheckpointError(Label.NON_FINITE, "a word of the state is not finite")
    capture = content.top.capture
    return Checkpoint(
        version=content.top.version,
        words=words,
        state=content.state,
        system=content.system,
        epoch=capture.epoch,
        owners=content.owners,
        plan=capture.plan,
        run=capture.run,
        time_ms=content.time_ms,
    )


def parts_of(
    root: Manifest, read: Read, check: Callable[[PartManifest], object] = id
) -> Iterator[PartManifest]:
    """The root's own part, then those below it, depth first in the order in which they are named.

    Args:
        root: the root's manifest.
        read: name -> bytes of a part; None if it is not there.
        check: what its regions must be besides; raises CheckpointError.

    Raises:
        CheckpointError: one is missing, cannot be read, is of another capture, or not the one that is named.
    """
    yield root.top
    waiting, seen = [(part, 1) for part in reversed(root.top.parts)], set()
    while waiting:
        named, depth = waiting.pop()
        if depth > DEEPEST:
            raise CheckpointError(Label.CHECKPOINT_MANIFEST, f"parts below {DEEPEST} parts ({named.file})")
        if named.file in seen:  # else a small set could name the same part without end
            raise CheckpointError(Label.CHECKPOINT_COVERAGE, f"a part twice (got {named.file})")
        seen.add(named.file)
        data = read(named.file)
        if data is None:
            raise CheckpointError(Label.CHECKPOINT_COVERAGE, f"a part is missing (expected {named.file})")
        part = read_part(data)
        check(part)
        got, expected = part.captured, root.top.captured
        if got != expected:
            message = f"{named.file} is of another capture (got {got}, expected {expected})"
            raise CheckpointError(Label.CHECKPOINT_CAPTURE, message)
        _check_digest(named, data)
        yield part
        waiting += ((below, depth + 1) for below in reversed(part.parts))


def _check_digest(named: File, data: bytes) -> None:
    got = hashlib.sha256(data).hexdigest()
    if got != named.sha256 or len(data) != named.size:
        what = f"(got {got} of {len(data)} bytes, expected {named.sha256} of {named.size})"
        raise CheckpointError(Label.CHECKPOINT_CHUNK, f"{named.file} differs {what}")


def _check_order(system: System, part: PartManifest) -> None:
    """Regions of the system's fields stand in field order, one a field."""
    order = {field.name: place for place, field in enumerate(system.state_fields)}
    for shard in part.shards:
        own = [order[region.field] for region in shard.regions if region.field in order]
        if any(place >= following for place, following in pairwise(own)):
            raise CheckpointError(
                Label.CHECKPOINT_MANIFEST, f"regions of {shard.file} do not stand in field order, one a field"
            )


def _check_cover(system: System, shards: Sequence[Shard], files: Mapping[str, bytes]) -> None:
    covered = {field.name: bytearray(field.size) for field in system.state_fields}
    for shard in shards:
        if shard.file not in files:
            raise CheckpointError(Label.CHECKPOINT_COVERAGE, f"shard is missing (expected {shard.file})")
        for region in shard.regions:
            cover = covered.get(region.field, bytearray())
            if region.words.stop > len(cover):
                raise CheckpointError(
                    Label.CHECKPOINT_COVERAGE, f"the system has no such words (got {region.tensor})"
                )
            if any(cover[region.words]):
                raise CheckpointError(Label.CHECKPOINT_COVERAGE, f"words twice (got {region.tensor})")
            cover[region.words] = b"\1" * region.part.count
    if any(0 in cover for cover in covered.values()):
        raise CheckpointError(Label.CHECKPOINT_COVERAGE, "some words are in no region")


def _load(
    system: System, root: PartManifest, shards: Sequence[Shard], files: Mapping[str, bytes]
) -> array[float]:
    """The state vector out of shards that cover it, each of them checked first."""
    word = system.word
    fields = {
        field.name: array(word.typecode, bytes(word.size * field.size)) for field in system.state_fields
    }
    capture = (root.capture.epoch, root.capture.run, root.version)
    for shard in shards:
        data = files[shard.file]
        got = captured(data)
        if got is not None and got != capture:
            said = f"(got {capture_said(*got)}, expected {capture_said(*capture)})"
            raise CheckpointError(Label.CHECKPOINT_CAPTURE, f"{shard.file} is of another capture {said}")
        _check_digest(shard, data)
        start = header(system.digest, root.version, root.capture, shard.regions, word)
        if not is_right(data, start, shard.regions, word):
            raise CheckpointError(
                Label.CHECKPOINT_CHUNK, f"{shard.file} is not the file that its regions demand"
            )
        for region, words in words_in(data, start, shard.regions, word):
            fields[region.field][region.words] = words
    state = array(word.typecode)
    for field in system.state_fields:
        state += fields[field.name]
    return state
