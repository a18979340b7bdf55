"""A checkpoint set looked at as a whole: all that it says, and everything that is wrong with it.

Where `orchestrator.oracle.checkpoint` stops at the first rule broken, as a role program does, this goes
on and finds every fault. It needs no system: sizes and order of fields are then taken from the regions, whose
words the `state` digest covers. Knows bytes by name; must not know where they lie.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Literal

from orchestrator.errors import Label
from orchestrator.oracle.checkpoint import DEEPEST
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
from orchestrator.oracle.reference import encoded
from orchestrator.oracle.shards import captured, header, is_right, word_said, words_in
from orchestrator.plan.model import System
from orchestrator.plan.words import WordType

MOST_WORDS = 1 << 26  # of a state: what a manifest alone claims is not made room for beyond it

Read = Callable[[str], bytes | None]
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a set: its label, the file that it is about, and what is wrong."""

    label: Label
    file: str
    message: str


@dataclass(frozen=True)
class Outline:
    """What the manifests of a set say, before a shard is read.

    Attributes:
        file: name of the root manifest.
        manifest: what it says.
        parts: every part manifest that it and its parts name.
        shards: every shard that they name.
        sizes: field -> words, in the order of the state vector; the system's, or as far as regions reach.
        is_ordered: whether that order is certain.
        word: what its words are: the system's, or what its first shard says.
        faults: of the manifests, and of their regions against the sizes.
    """

    file: str
    manifest: Manifest
    parts: tuple[File, ...]
    shards: tuple[Shard, ...]
    sizes: Sizes
    is_ordered: bool
    word: WordType
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class Survey:
    """A set with its words.

    Attributes:
        outline: what its manifests say.
        words: field -> its words; whole only where there is no fault.
        faults: all that is wrong with it.
        is_decided: whether the `state` digest could be recomputed, if nothing else is wrong.
    """

    outline: Outline
    words: Mapping[str, array[float]]
    faults: tuple[Fault, ...]
    is_decided: bool


def outline(file: str, read: Read, system: System | None = None) -> Outline:
    """What a set's manifests say.

    Args:
        file: name of the root manifest.
        read: gives a file of the set; None where there is none.
        system: whose state it must be; None for whosever it says.

    Raises:
        CheckpointError: the root manifest is missing or unreadable, so that nothing can be said.
    """
    data = read(file)
    if data is None:
        raise CheckpointError(Label.CHECKPOINT_MISSING, f"no manifest (expected {file})")
    manifest = read_manifest(data)
    parts, faults = _parts(file, manifest, read)
    shards = tuple(shard for part in parts for shard in part.shards)
    if system is not None and manifest.system != system.digest:
        message = f"another system's (got {manifest.system}, expected {system.digest})"
        faults.append(Fault(Label.CHECKPOINT_SYSTEM, file, message))
        system = None  # what its own regions say is all that is known of its fields
    sizes, order = _sizes(shards)
    is_ordered = order == "certain"
    if system is None and order == "contradictory":
        message = f"shards of {file} do not keep one order of fields"
        faults.append(Fault(Label.CHECKPOINT_MANIFEST, file, message))
    if system is not None:
        sizes, is_ordered = {field.name: field.size for field in system.state_fields}, True
    faults += _order_faults(file, shards, sizes, is_ordered=is_ordered)
    faults += _cover_faults(file, shards, sizes)
    named = tuple(each for part in parts for each in part.parts)
    word = system.word if system is not None else _word_said(shards, read)
    return Outline(file, manifest, named, shards, sizes, is_ordered, word, tuple(faults))


def survey(file: str, read: Read, system: System | None = None) -> Survey:
    """A set read whole; arguments and errors as `outline`."""
    found = outline(file, read, system)
    faults = list(found.faults)
    words = _room(found)
    said = (_load(found, shard, read(shard.file), words) for shard in found.shards)
    faults += [fault for fault in said if fault]
    is_decided = found.is_ordered
    if not faults:
        if is_decided and (state := _digest(words.values())) != found.manifest.state:
            message = f"the state differs (got {state}, expected {found.manifest.state})"
            faults.append(Fault(Label.CHECKPOINT_CHUNK, file, message))
        faults += _finite_faults(file, words)
    return Survey(found, words, tuple(faults), is_decided)


def _parts(file: str, root: Manifest, read: Read) -> tuple[list[PartManifest], list[Fault]]:
    """The root's own part and all that are named below it, as far as they can be read, and what is wrong."""
    found, faults = [root.top], list[Fault]()
    waiting, seen = [(part, 1) for part in reversed(root.top.parts)], set()
    while waiting:
        named, depth = waiting.pop()
        if named.file in seen:
            faults.append(Fault(Label.CHECKPOINT_COVERAGE, file, f"a part twice (got {named.file})"))
            continue
        seen.add(named.file)
        part, fault = _part(root, named, read(named.file))
        if depth > DEEPEST:
            message = f"parts below {DEEPEST} parts (got {named.file})"
            fault = Fault(Label.CHECKPOINT_MANIFEST, file, message)
        faults += [fault] if fault else []
        if part is not None:
            found.append(part)
            waiting += ((below, depth + 1) for below in reversed(part.parts))
    return found, faults


def _part(root: Manifest, named: File, data: bytes | None) -> tuple[PartManifest | None, Fault | None]:
    """A part as far as it can be read, and what is wrong with it."""
    if data is None:
        return None, Fault(Label.CHECKPOINT_COVERAGE, named.file, "a part is missing")
    try:
        part = read_part(data)
    except CheckpointError as error:
        return None, Fault(error.label, named.file, str(error).removeprefix(f"{error.label}: "))
    got, expected = part.captured, root.top.captured
    if got != expected:
        message = f"it is of another capture (got {got}, expected {expected})"
        return part, Fault(Label.CHECKPOINT_CAPTURE, named.file, message)
    return part, _digest_fault(named, data)


def _digest_fault(named: File, data: bytes) -> Fault | None:
    got = hashlib.sha256(data).hexdigest()
    if got == named.sha256 and len(data) == named.size:
        return None
    sizes = f"(got {got} of {len(data)} bytes, expected {named.sha256} of {named.size})"
    return Fault(Label.CHECKPOINT_CHUNK, named.file, f"its bytes differ {sizes}")


def _sizes(shards: Iterable[Shard]) -> tuple[Sizes, Literal["certain", "open", "contradictory"]]:
    """Fields as regions tell them: sizes, in an order that all shards keep, and how sure that is."""
    ends: dict[str, int] = {}
    after: TopologicalSorter[str] = TopologicalSorter()
    for shard in shards:
        for region in shard.regions:
            ends[region.field] = max(ends.get(region.field, 0), region.words.stop)
            after.add(region.field)
        for left, right in pairwise(shard.regions):
            after.add(right.field, left.field)
    try:
        after.prepare()
    except CycleError:
        return ends, "contradictory"
    order: list[str] = []
    is_certain = True
    while after.is_active():
        ready = after.get_ready()
        is_certain = is_certain and len(ready) == 1
        order += sorted(ready)
        after.done(*ready)
    return {name: ends[name] for name in order}, "certain" if is_certain else "open"


def _order_faults(file: str, shards: Iterable[Shard], sizes: Sizes, *, is_ordered: bool) -> Iterable[Fault]:
    """Regions stand in field order, one a field; without a sure order only the latter can be said."""
    order = {name: place for place, name in enumerate(sizes)}
    for shard in shards:
        own = [order[region.field] for region in shard.regions if region.field in order]
        stands = all(left < right for left, right in pairwise(own)) if is_ordered else len({*own}) == len(own)
        if not stands:
            message = f"regions of {shard.file} do not stand in field order, one a field"
            yield Fault(Label.CHECKPOINT_MANIFEST, file, message)


def _cover_faults(file: str, shards: Sequence[Shard], sizes: Sizes) -> Iterable[Fault]:
    """Every word of every field stands in exactly one region."""
    if sum(sizes.values()) > MOST_WORDS:
        message = f"regions reach too far (got {sum(sizes.values())} words, expected at most {MOST_WORDS})"
        yield Fault(Label.CHECKPOINT_COVERAGE, file, message)
        return
    covered = {name: bytearray(size) for name, size in sizes.items()}
    for shard in shards:
        for region in shard.regions:
            if region.words.stop > sizes.get(region.field, 0):
                message = f"the system has no such words (got {region.tensor} in {shard.file})"
                yield Fault(Label.CHECKPOINT_COVERAGE, file, message)
                continue
            if any(covered[region.field][region.words]):
                message = f"words twice (got {region.tensor} in {shard.file})"
                yield Fault(Label.CHECKPOINT_COVERAGE, file, message)
            covered[region.field][region.words] = b"\1" * region.part.count
    for name, cover in covered.items():
        if missing := cover.count(0):
            message = f"{missing} words of {name} are in no region (the first is {name}[{cover.index(0)}])"
            yield Fault(Label.CHECKPOINT_COVERAGE, file, message)


def _word_said(shards: Iterable[Shard], read: Read) -> WordType:
    return word_said(next((data for shard in shards if (data := read(shard.file)) is not None), b""))


def _room(found: Outline) -> dict[str, array[float]]:
    """Zeros for every word; none where the sizes are not to be believed."""
    if sum(found.sizes.values()) > MOST_WORDS:
        return {}
    return {
        name: array(found.word.typecode, bytes(found.word.size * size)) for name, size in found.sizes.items()
    }


def _load(
    found: Outline, shard: Shard, data: bytes | None, words: Mapping[str, array[float]]
) -> Fault | None:
    """Places a shard's words; what is wrong with it instead, if anything is."""
    if data is None:
        return Fault(Label.CHECKPOINT_COVERAGE, shard.file, "shard is missing")
    top = found.manifest.top
    said, expected = captured(data), (top.capture.epoch, top.capture.run, top.version)
    if said is not None and said != expected:
        message = f"it is of another capture (got {capture_said(*said)}, expected {capture_said(*expected)})"
        return Fault(Label.CHECKPOINT_CAPTURE, shard.file, message)
    if fault := _digest_fault(shard, data):
        return fault
    demand = Fault(Label.CHECKPOINT_CHUNK, shard.file, "it is not the file that its regions demand")
    if sum(region.part.count for region in shard.regions) > len(data) // found.word.size:
        return demand  # whose numbers no header can hold
    start = header(found.manifest.system, top.version, top.capture, shard.regions, found.word)
    if not is_right(data, start, shard.regions, found.word):
        return demand
    for region, own in words_in(data, start, shard.regions, found.word):
        if region.words.stop <= len(words.get(region.field, ())):
            words[region.field][region.words] = own
    return None


def _digest(fields: Iterable[array[float]]) -> str:
    digest = hashlib.sha256()
    for words in fields:
        digest.update(encoded(words))
    return digest.hexdigest()


def _finite_faults(file: str, fields: Mapping[str, array[float]]) -> Iterable[Fault]:
    for name, words in fields.items():
        if not all(map(math.isfinite, words)):
            index = next(index for index, word in enumerate(words) if not math.isfinite(word))
            message = f"a word of the state is not finite (got {name}[{index}] = {words[index]})"
            yield Fault(Label.NON_FINITE, file, message)
