"""How checkpoints are shown: as the objects that `--json` prints, and as tables of the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from orchestrator.cli.output import plain, size_text, table
from orchestrator.errors import Refusal, RefusedError

if TYPE_CHECKING:
    from orchestrator.oracle.manifest import Shard
    from orchestrator.oracle.survey import Outline
    from orchestrator.qualify.command.tensors import Tensors
    from orchestrator.qualify.compare import Difference
    from orchestrator.qualify.readings import Reading
    from orchestrator.qualify.sets import OwnSet, Set

_FACTS = ("version", "epoch", "state", "system", "plan", "run", "time", "owners")
_SHORT = 16


def set_json(name: str, outline: Outline) -> dict[str, Any]:
    """Give what a set's manifests say."""
    manifest = outline.manifest
    return {
        "name": name,
        "version": manifest.top.version,
        "epoch": manifest.top.capture.epoch,
        "state": manifest.state,
        "system": manifest.system,
        "plan": manifest.top.capture.plan,
        "run": manifest.top.capture.run,
        "time": _time(manifest.time_ms),
        "owners": manifest.owners,
        "fields": [
            {"name": field, "dtype": outline.word.dtype, "shape": [size]}
            for field, size in outline.sizes.items()
        ],
        "shards": [_shard_json(shard) for shard in outline.shards],
        "manifests": [part.as_json() for part in outline.parts],
    }


def own_json(found: OwnSet, tensors: Tensors) -> dict[str, Any]:
    """Give what a program of the user's own published."""
    return {
        "name": found.name,
        "version": found.version,
        "fields": [
            {"name": name, "dtype": tensor.dtype, "shape": list(tensor.shape)}
            for name, tensor in tensors.items()
        ],
    }


def _shard_json(shard: Shard) -> dict[str, Any]:
    return {
        "file": shard.file,
        "owner": shard.owner,
        "size": shard.size,
        "sha256": shard.sha256,
        "regions": [region.tensor for region in shard.regions],
    }


def _time(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"  # past what a calendar knows


def shown(about: Mapping[str, Any]) -> str:
    """Lay out one checkpoint."""
    lines = [plain(about["name"])]
    lines += [f"{name:<10}{about[name]}" for name in _FACTS if name in about]
    rows = [(each["name"], each["dtype"], _shape(each["shape"])) for each in about["fields"]]
    lines += ["", table(("field", "type", "shape"), rows)]
    shards = [
        (
            each["file"],
            each["owner"],
            size_text(each["size"]),
            each["sha256"][:_SHORT],
            " ".join(each["regions"]),
        )
        for each in about.get("shards", ())
    ]
    if shards:
        lines += ["", table(("shard", "owner", "size", "sha256", "regions"), shards)]
    parts = [
        (each["file"], size_text(each["size"]), each["sha256"][:_SHORT])
        for each in about.get("manifests", ())
    ]
    if parts:
        lines += ["", table(("part of the manifest", "size", "sha256"), parts)]
    return "\n".join(lines)


def _shape(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape)) or "scalar"


def listed(sets: Sequence[Set | OwnSet]) -> tuple[list[dict[str, Any]], list[Refusal]]:
    """Give a row for each checkpoint, and what is wrong with manifests."""
    from orchestrator.qualify.readings import outline_of
    from orchestrator.qualify.sets import OwnSet

    rows: list[dict[str, Any]] = []
    faults: list[Refusal] = []
    for each in sets:
        if isinstance(each, OwnSet):
            rows.append({"version": each.version, "name": each.name, "state": None})
            continue
        try:
            outline, wrong = outline_of(each)
        except RefusedError as error:
            faults += error.refusals
            continue
        faults += wrong
        manifest = outline.manifest
        top = manifest.top
        about = {"version": top.version, "name": each.name, "state": manifest.state}
        rows.append({**about, "epoch": top.capture.epoch, "shards": len(outline.shards)})
    return rows, faults


def list_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lay out `listed`."""
    cells = [
        (row["version"], row["name"], row.get("epoch", "-"), row.get("shards", "-"), row["state"] or "-")
        for row in rows
    ]
    return table(("version", "published by", "epoch", "shards", "state"), cells)


def facts(found: Set | OwnSet, read: Reading) -> dict[str, str | int | None]:
    """Give what is said of a checkpoint beside its words."""
    if read.outline is None:
        return {"state": None, "system": None, "version": found.version}
    manifest = read.outline.manifest
    return {
        "state": manifest.state,
        "system": manifest.system,
        "version": manifest.top.version,
        "epoch": manifest.top.capture.epoch,
        "owners": manifest.owners,
        "plan": manifest.top.capture.plan,
        "run": manifest.top.capture.run,
    }


def apart(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Give what differs beside the words: the capture's facts, the version and the system."""
    names = [name for name in {**left, **right} if name != "state"]
    return {name: [left.get(name), right.get(name)] for name in names if left.get(name) != right.get(name)}


def difference_json(found: Difference) -> dict[str, Any]:
    """Give a field that differs."""
    about: dict[str, Any] = {"field": found.tensor, "differ": found.count, "words": found.words}
    if found.form is not None:
        return {**about, "form": list(found.form)}
    first = found.first
    assert first is not None  # noqa: S101 - of two tensors of one form
    about["first"] = {"word": first.name, "left": first.left, "right": first.right}
    largest = found.largest
    return {**about, "largest": largest if largest is not None and math.isfinite(largest) else None}


def compared(found: Sequence[Difference]) -> str:
    """Lay out what differs."""
    if not found:
        return "equal"
    lines = ["not equal"]
    first = next((each.first for each in found if each.first is not None), None)
    if first is not None:
        lines.append(f"the first word that differs: {plain(first.name)} = {first.left}, and {first.right}")
    for each in found:
        name = plain(each.tensor)
        if each.form is not None:
            lines.append(f"{name}: {each.form[0]}, and {each.form[1]}")
            continue
        largest = "" if each.largest is None else f", at most {each.largest!r} apart"
        lines.append(f"{name}: {each.count} of {each.words} words differ{largest}")
    return "\n".join(lines)
