"""The alterations that refusal controls make: which files lie where, and the bytes of those that are altered.

Pure and deterministic: a control that is begun again places the same bytes, and a judge knows them.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.oracle.checkpoint import MANIFEST, manifest_name
from orchestrator.oracle.kinds import reference_of
from orchestrator.oracle.manifest import Capture
from orchestrator.oracle.publication import write_set
from orchestrator.plan.derive import other_plan
from orchestrator.qualify.view import View

Placed = dict[str, bytes]


def flip(data: bytes) -> bytes:
    """The same bytes with the lowest bit of the last one flipped; an empty file gains one byte."""
    return data[:-1] + bytes([data[-1] ^ 1]) if data else b"\0"


def flip_shard_byte(view: View, restore: Mapping[str, str], launch: str) -> tuple[dict[str, str], Placed]:
    """A checkpoint set with one bit of its first shard's words flipped; the manifest is untouched."""
    shard = _first_shard(restore)
    altered = f"{launch}/placed/{shard}"
    return {**restore, shard: altered}, {altered: flip(view.bytes(restore[shard]) or b"")}


def drop_shard(restore: Mapping[str, str]) -> dict[str, str]:
    """A checkpoint set without its first shard; the manifest still names it."""
    return {name: source for name, source in restore.items() if name != _first_shard(restore)}


def _first_shard(restore: Mapping[str, str]) -> str:
    return min(name for name in restore if name.endswith(".safetensors"))


def other_system(view: View, launch: str) -> tuple[dict[str, str], Placed]:
    """A sound checkpoint of another system, as the reference yields it after one update."""
    planned = other_plan(view.planned)
    plan = planned.plan
    capture = Capture(epoch=1, plan=plan.digest, run=view.run_id.replace("-", ""))
    written = write_set(plan.system, 1, reference_of(plan, planned.words).at(1).words, capture)
    files = {MANIFEST if name == manifest_name(1) else name: data for name, data in written.items()}
    places = {name: f"{launch}/placed/{name}" for name in files}
    return places, {places[name]: data for name, data in files.items()}


def alter_samples(view: View, launch: str) -> tuple[dict[str, str], Placed]:
    """Every role's sample file with one bit changed (an empty one: one byte longer)."""
    places = {role: f"{launch}/placed/{role}.samples" for role in view.roles}
    return places, {places[role]: flip(view.samples(role)) for role in view.roles}
