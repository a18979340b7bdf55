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
Region = tuple[str, int, int] | tuple[str, int, int, int]  # field, first, count, stride
CAPTURE = {"epoch": 2, "plan": "a" * 64, "run": "0189" * 8}
Parts = Sequence[tuple[str, list[Region]]]
HALVES: Parts = (
    ("7.root.safetensors", [("w", 0, 2), ("B", 0, 1), ("v", 0, 2)]),
    ("7.other.safetensors", [("w", 2, 1), ("B", 1, 1), ("v", 2, 2)]),
)


@dataclass
class Set:
    """A set as JSON and bytes, to be changed before it is read."""

    manifest: dict[str, Any]
    shards: dict[str, bytes] = field(default_factory=dict)
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def bytes(self) -> bytes:
        return canonical(self.manifest)

    @property
    def files(self) -> dict[str, bytes]:
        """As a role finds them."""
        return {**self.shards, **self.part_bytes, "manifest.json": self.bytes}

    @property
    def part_bytes(self) -> dict[str, bytes]:
        return {name: canonical(content) for name, content in self.parts.items()}

    def seal_parts(self) -> None:
        """Makes every manifest agree with the parts that it names, the deepest first."""
        for content in (*reversed(self.parts.values()), self.manifest):
            for named in content["manifests"]:
                if named["file"] in self.parts:
                    data = canonical(self.parts[named["file"]])
                    named.update(sha256=hashlib.sha256(data).hexdigest(), size=len(data))

    def seal(self, name: str) -> None:
        """Makes the manifest agree with the bytes of a shard."""
        for entry in self.manifest["shards"]:
            if entry["file"] == name:
                entry["sha256"] = hashlib.sha256(self.shards[name]).hexdigest()
                entry["size"] = len(self.shards[name])


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def words_of(words: Sequence[float], region: Region) -> bytes:
    name, first, count, *more = region
    at, stride = FIRST.get(name, 0) + first, more[0] if more else 1
    own = (*words, *[0.0] * (at + count * stride))[at : at + count * stride : stride]
    return struct.pack(f"<{count}d", *own)


def tensor(region: Region) -> str:
    name, first, count, *more = region
    if not more or more[0] == 1:
        return f"{name}[{first}:{first + count}]"
    return f"{name}[{first}:{first + (count - 1) * more[0] + 1}:{more[0]}]"


def region_json(region: Region) -> dict[str, Any]:
    name, first, count, *more = region
    return {"count": count, "field": name, "first": first, "stride": more[0] if more else 1}


def shard(
    regions: Sequence[Region], words: Sequence[float] = WORDS, version: int = VERSION, **metadata: str
) -> bytes:
    about = {
        "epoch": str(CAPTURE["epoch"]),
        "format": "orch-checkpoint/v1",
        "run": CAPTURE["run"],
        "system": SYSTEM.digest,
        "version": str(version),
        **metadata,
    }
    header: dict[str, Any] = {"__metadata__": about}
    data = b""
    for region in regions:
        piece = words_of(words, region)
        offsets = [len(data), len(data) + len(piece)]
        header[tensor(region)] = {"data_offsets": offsets, "dtype": "F64", "shape": [region[2]]}
        data += piece
    text = canonical(header)
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def make(
    parts: Sequence[tuple[str, list[Region]]] = HALVES, words: Sequence[float] = WORDS, version: int = VERSION
) -> Set:
    made = Set(
        {
            "capture": {**CAPTURE, "owners": {"count": 2}, "time_ms": 1764425119000},
            "manifests": [],
            "schema": "orch-checkpoint/v1",
            "shards": [
                {
                    "file": name,
                    "regions": [region_json(region) for region in regions],
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


def nested(depth: int = 2) -> Set:
    """The halves and then some in a tree: the root's shard, and parts below parts."""
    own = make(
        [
            ("7.root.safetensors", [("w", 0, 2, 2), ("B", 0, 1), ("v", 0, 2)]),
            ("7.other.safetensors", [("w", 1, 1), ("B", 1, 1), ("v", 2, 2)]),
        ]
    )
    shards = own.manifest["shards"]
    above = own.manifest
    for level in range(depth):
        name = f"7.inner{level}.manifest.json"
        own.parts[name] = {
            "capture": dict(CAPTURE),
            "manifests": [],
            "schema": "orch-checkpoint-part/v1",
            "shards": [],
            "version": VERSION,
        }
        above["manifests"] = [{"file": name, "sha256": "", "size": 0}]
        above = own.parts[name]
    above["shards"] = [shards.pop()]
    own.seal_parts()
    return own


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
