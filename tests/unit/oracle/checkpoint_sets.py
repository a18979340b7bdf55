"""Checkpoint sets of any shape, put together here without the oracle's own writer."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from orchestrator.plan.model import Field, System
from orchestrator.plan.tree import Assignment, Word

SYSTEM = System(
    name="set",
    kind="data-parallel",
    parameters=(Field("w", 3, (0.0,) * 3), Field("B", 2, (0.0,) * 2)),
    state=(Field("v", 4, (0.0,) * 4),),
    sample=(Field("x", 1),),
    contributions=(Field("g", 1),),
    contribution=(Assignment("g", 1, Word("x", 0), local=True),),
    update=(Assignment("B", 2, Word("mean_g", 0), local=False),),
    evaluate=(Assignment("loss", 1, Word("x", 0), local=True),),
    results=("loss",),
    rate=1.0,
    rows=1,
    samples_sha256="0" * 64,
    numerics="binary64-ordered",
)
WORDS = (1.0, -2.5, 3e-310, 0.1, -0.0, 4.0, 1e300, -7.0, 0.3)
FIRST = {"w": 0, "B": 3, "v": 5}
VERSION = 7
Region = tuple[str, int, int]  # field, first, count
HALVES = (
    ("7.root.safetensors", [("w", 0, 2), ("B", 0, 1), ("v", 0, 2)]),
    ("7.other.safetensors", [("w", 2, 1), ("B", 1, 1), ("v", 2, 2)]),
)


@dataclass
class Set:
    """A set as JSON and bytes, to be changed before it is read."""

    manifest: dict[str, Any]
    shards: dict[str, bytes] = field(default_factory=dict)

    @property
    def bytes(self) -> bytes:
        return canonical(self.manifest)

    def seal(self, name: str) -> None:
        """Makes the manifest agree with the bytes of a shard."""
        for entry in self.manifest["shards"]:
            if entry["file"] == name:
                entry["sha256"] = hashlib.sha256(self.shards[name]).hexdigest()
                entry["size"] = len(self.shards[name])


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def words_of(words: Sequence[float], region: Region) -> bytes:
    name, first, count = region
    at = FIRST.get(name, 0) + first
    return struct.pack(f"<{count}d", *(*words, *[0.0] * (at + count))[at : at + count])


def shard(
    regions: Sequence[Region], words: Sequence[float] = WORDS, version: int = VERSION, **metadata: str
) -> bytes:
    about = {"format": "orch-checkpoint/v1", "system": SYSTEM.digest, "version": str(version), **metadata}
    header: dict[str, Any] = {"__metadata__": about}
    data = b""
    for name, first, count in regions:
        piece = words_of(words, (name, first, count))
        offsets = [len(data), len(data) + len(piece)]
        tensor = {"data_offsets": offsets, "dtype": "F64", "shape": [count]}
        header[f"{name}[{first}:{first + count}]"] = tensor
        data += piece
    text = canonical(header)
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def make(
    parts: Sequence[tuple[str, list[Region]]] = HALVES, words: Sequence[float] = WORDS, version: int = VERSION
) -> Set:
    made = Set(
        {
            "capture": {
                "epoch": 2,
                "owners": ["root", "other"],
                "plan": "a" * 64,
                "run": "0189" * 8,
                "time_ms": 1764425119000,
            },
            "schema": "orch-checkpoint/v1",
            "shards": [
                {
                    "file": name,
                    "regions": [
                        {"count": count, "field": field, "first": first} for field, first, count in regions
                    ],
                    "sha256": "",
                    "size": 0,
                }
                for name, regions in parts
            ],
            "state": hashlib.sha256(struct.pack(f"<{len(words)}d", *words)).hexdigest(),
            "system": SYSTEM.digest,
            "version": version,
        }
    )
    for name, regions in parts:
        made.shards.setdefault(name, shard(regions, words, version))
        made.seal(name)
    return made


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 2) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with every key of it."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])
