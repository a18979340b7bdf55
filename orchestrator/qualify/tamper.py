"""The alterations that refusal controls make, each written into the bundle beside its launch.

All are deterministic: a control that is begun again places the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evidence.files import write_whole
from orchestrator.oracle.checkpoint import write_set
from orchestrator.oracle.reference import Reference
from orchestrator.plan.derive import Planned

PLACED = "placed"


def _write(bundle: Path, launch: Path, name: str, data: bytes) -> str:
    target = launch / PLACED / name
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, data)
    return target.relative_to(bundle).as_posix()


def flip(data: bytes) -> bytes:
    """The same bytes with the lowest bit of the last one flipped; an empty file gains one byte."""
    return data[:-1] + bytes([data[-1] ^ 1]) if data else b"\0"


def flip_shard_byte(bundle: Path, restore: Mapping[str, str], launch: Path) -> dict[str, str]:
    """A checkpoint set with one byte of its first shard's words flipped; the manifest is untouched."""
    shard = min(name for name in restore if name != "manifest.json")
    return {**restore, shard: _write(bundle, launch, shard, flip((bundle / restore[shard]).read_bytes()))}


def drop_shard(restore: Mapping[str, str]) -> dict[str, str]:
    """A checkpoint set without its first shard; the manifest still names it."""
    shard = min(name for name in restore if name != "manifest.json")
    return {name: source for name, source in restore.items() if name != shard}


def other_system(bundle: Path, planned: Planned, run_id: str, launch: Path) -> dict[str, str]:
    """A sound checkpoint of another system, as the reference yields it after one update."""
    plan = planned.plan
    words = Reference(plan, planned.words).at(1).words
    capture = {
        "epoch": 1,
        "owners": [role.name for role in plan.roles],
        "plan": plan.digest,
        "run": run_id.replace("-", ""),
        "time_ms": 0,
    }
    files = write_set(plan.system, 1, words, capture)
    return {name: _write(bundle, launch, name, data) for name, data in files.items()}


def alter_samples(bundle: Path, launch: Path, samples: Mapping[str, bytes]) -> dict[str, str]:
    """Every role's sample file with one bit changed (an empty one: one byte longer)."""
    return {role: _write(bundle, launch, f"{role}.samples", flip(data)) for role, data in samples.items()}
