"""A shard: one safetensors file of words. For its regions it has exactly one right header.

Knows one file; which shards make a set is said by manifests.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from evidence.canonical import dumps
from orchestrator.oracle.manifest import SCHEMA, Capture, Region
from orchestrator.oracle.reference import decoded, encoded
from orchestrator.plan.model import Plan, Role
from orchestrator.plan.words import BINARY32, BINARY64, WordType

_ALIGNED = 8
_BOUND = 2**53  # of numbers in a header
_LENGTH = struct.Struct("<Q")
_MOST_OF_A_HEADER = 1 << 20  # what a file says of its length is not believed beyond it
_METADATA = re.compile(
    rb'"__metadata__":\{"epoch":"(0|[1-9][0-9]{0,15})","format":"orch-checkpoint/v1",'
    rb'"run":"([0-9a-f]{32})","system":"[0-9a-f]{64}","version":"(0|[1-9][0-9]{0,15})"\}'
)


def shard_name(version: int, role: str) -> str:
    """File name under which a role publishes its words of version N."""
    return f"{version}.{role}.safetensors"


def regions_of(plan: Plan, role: Role) -> tuple[Region, ...]:
    """What a role of a plan publishes, in field order; nothing for a role without words."""
    parts = ((field.name, plan.published(field, role)) for field in plan.system.state_fields)
    return tuple(Region(name, part) for name, part in parts if part.count)


def header(system: str, version: int, capture: Capture, regions: Sequence[Region], word: WordType) -> bytes:
    """The one header of these regions: keys sorted, words in field order, padded to 8 bytes."""
    content: dict[str, Any] = {
        "__metadata__": {
            "epoch": str(capture.epoch),
            "format": SCHEMA,
            "run": capture.run,
            "system": system,
            "version": str(version),
        }
    }
    at = 0
    for region in regions:
        end = at + word.size * region.part.count
        content[region.tensor] = {
            "data_offsets": [at, end],
            "dtype": word.dtype,
            "shape": [region.part.count],
        }
        at = end
    text = dumps(content)
    text += b" " * (-len(text) % _ALIGNED)
    return _LENGTH.pack(len(text)) + text


def word_said(data: bytes) -> WordType:
    """The words that a shard's header says it holds; binary64 where it says nothing that is known."""
    end = (
        min(_LENGTH.size + _LENGTH.unpack_from(data)[0], _MOST_OF_A_HEADER)
        if len(data) >= _LENGTH.size
        else 0
    )
    return BINARY32 if f'"dtype":"{BINARY32.dtype}"'.encode() in data[:end] else BINARY64


def captured(data: bytes) -> tuple[int, str, int] | None:
    """Epoch, run and version that a shard's header says; None if it says nothing in the right form."""
    text, _, _ = data[_LENGTH.size : _MOST_OF_A_HEADER].partition(b"\0")
    for found in _METADATA.finditer(text):  # names of fields may stand before it
        epoch, run, version = int(found[1]), found[2].decode(), int(found[3])
        if max(epoch, version) < _BOUND:
            return epoch, run, version
    return None


def words_in(
    data: bytes, start: bytes, regions: Sequence[Region], word: WordType
) -> Iterator[tuple[Region, array[float]]]:
    """The words of each region of a shard that begins with its right header, `start`."""
    at = len(start)
    for region in regions:
        end = at + word.size * region.part.count
        yield region, decoded(data[at:end], word)
        at = end


def is_right(data: bytes, start: bytes, regions: Sequence[Region], word: WordType) -> bool:
    """Whether a file is what its regions demand: their header, and as many words as they have."""
    words = sum(region.part.count for region in regions)
    return data.startswith(start) and len(data) == len(start) + word.size * words


def packed(start: bytes, words: Sequence[array[float]]) -> bytes:
    """A shard of this header and these words."""
    return b"".join((start, *map(encoded, words)))
