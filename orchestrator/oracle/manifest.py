"""The manifests of a checkpoint set, read as strictly as the role programs read them.

A set is a tree: the root's manifest names shards and the manifests of parts, which name shards and parts in
turn. Knows the form of one document alone; whether the set covers a system, and whether its files are whole,
is checked by `orchestrator.oracle.checkpoint`. Every name is a plain file or field name: none leads anywhere.
"""

from __future__ import annotations

import re
import reprlib
from dataclasses import dataclass
from typing import Any

from evidence.canonical import CanonicalError, loads
from orchestrator.errors import Label
from orchestrator.plan.ownership import Part

SCHEMA = "orch-checkpoint/v1"
PART_SCHEMA = "orch-checkpoint-part/v1"

_NAME = re.compile(r"(?!\.)[A-Za-z0-9_.-]{1,255}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_RUN_ID = re.compile(r"[0-9a-f]{32}")


class CheckpointError(Exception):
    """A set is not a whole checkpoint of its system; `label` is what a role program must say of it."""

    def __init__(self, label: Label, message: str) -> None:
        super().__init__(f"{label}: {message}")
        self.label = label


@dataclass(frozen=True)
class Region:
    """Words of a field, at least one."""

    field: str
    part: Part

    @property
    def words(self) -> slice:
        """The coordinates as a slice that ends just past the last one."""
        coordinates = self.part.coordinates
        return slice(coordinates[0], coordinates[-1] + 1, self.part.stride)

    @property
    def tensor(self) -> str:
        """Name of its tensor in a shard, as Python cuts it: `w[0:3]`, or `w[1:10:4]` for 1, 5 and 9."""
        words = self.words
        step = "" if words.step == 1 else f":{words.step}"
        return f"{self.field}[{words.start}:{words.stop}{step}]"

    def as_json(self) -> dict[str, Any]:
        """As in a manifest."""
        return {
            "count": self.part.count,
            "field": self.field,
            "first": self.part.first,
            "stride": self.part.stride,
        }


@dataclass(frozen=True)
class File:
    """A file of the set: its plain name and its identity."""

    file: str
    sha256: str
    size: int

    def as_json(self) -> dict[str, Any]:
        """As in a manifest."""
        return {"file": self.file, "sha256": self.sha256, "size": self.size}


@dataclass(frozen=True)
class Shard(File):
    """A file of words, and which words these are."""

    regions: tuple[Region, ...]

    @property
    def owner(self) -> str:
        """The role that wrote it, by the form of its name: `3.worker.safetensors`."""
        return self.file.removesuffix(".safetensors").partition(".")[2]

    def as_json(self) -> dict[str, Any]:
        """As in a manifest."""
        return {**super().as_json(), "regions": [region.as_json() for region in self.regions]}


@dataclass(frozen=True)
class Capture:
    """By what a state was computed: all pieces of a set are of one capture.

    Attributes:
        epoch: membership epoch.
        plan: digest of the plan.
        run: run id, 32 hexadecimal digits.
    """

    epoch: int
    plan: str
    run: str


def capture_said(epoch: int, run: str, version: int, plan: str = "") -> str:
    """A capture in words, as a refusal has it; shards do not say the plan."""
    return f"version {version}, epoch {epoch}, run {run}" + (f", plan {plan}" if plan else "")


@dataclass(frozen=True)
class PartManifest:
    """What stands in the manifest of an inner role: its own shard, its leaves', and its inner children.

    Attributes:
        version: updates made.
        capture: of the state.
        shards: files of words.
        parts: manifests of further parts.
    """

    version: int
    capture: Capture
    shards: tuple[Shard, ...]
    parts: tuple[File, ...]

    @property
    def captured(self) -> str:
        """What the pieces of one set have in common, in words."""
        return capture_said(self.capture.epoch, self.capture.run, self.version, self.capture.plan)

    def as_json(self) -> dict[str, Any]:
        """As in its file."""
        capture = self.capture
        return {
            "capture": {"epoch": capture.epoch, "plan": capture.plan, "run": capture.run},
            "manifests": [part.as_json() for part in self.parts],
            "schema": PART_SCHEMA,
            "shards": [shard.as_json() for shard in self.shards],
            "version": self.version,
        }


@dataclass(frozen=True)
class Manifest:
    """What the root's manifest says.

    Attributes:
        top: the root's own part.
        state: digest of all state words.
        system: digest of the system.
        owners: how many roles captured it.
        time_ms: when, by the root's clock, since 1970.
    """

    top: PartManifest
    state: str
    system: str
    owners: int
    time_ms: int

    def as_json(self) -> dict[str, Any]:
        """As in its file."""
        part = self.top.as_json()
        return {
            **part,
            "capture": {**part["capture"], "owners": {"count": self.owners}, "time_ms": self.time_ms},
            "schema": SCHEMA,
            "state": self.state,
            "system": self.system,
        }


def read_manifest(data: bytes) -> Manifest:
    """The root's manifest in these bytes.

    Raises:
        CheckpointError: `checkpoint-manifest`, for anything but its canonical form.
    """
    content = _document(data, SCHEMA, "capture", "manifests", "shards", "state", "system", "version")
    capture = _keys(content["capture"], "epoch", "owners", "plan", "run", "time_ms")
    return Manifest(
        top=_part(content, capture),
        state=_text(content["state"], _DIGEST),
        system=_text(content["system"], _DIGEST),
        owners=_number(_keys(capture["owners"], "count")["count"], least=1),
        time_ms=_number(capture["time_ms"]),
    )


def read_part(data: bytes) -> PartManifest:
    """The manifest of a part in these bytes.

    Raises:
        CheckpointError: `checkpoint-manifest`, for anything but its canonical form.
    """
    content = _document(data, PART_SCHEMA, "capture", "manifests", "shards", "version")
    return _part(content, _keys(content["capture"], "epoch", "plan", "run"))


def _document(data: bytes, schema: str, *keys: str) -> dict[str, Any]:
    try:
        value = loads(data, canonical=True)
    except CanonicalError as error:
        raise CheckpointError(Label.CHECKPOINT_MANIFEST, str(error)) from error
    content = _keys(value, "schema", *keys)
    if content["schema"] != schema:
        raise _refused("schema", content["schema"], schema)
    return content


def _part(content: dict[str, Any], capture: dict[str, Any]) -> PartManifest:
    return PartManifest(
        version=_number(content["version"]),
        capture=Capture(
            _number(capture["epoch"]), _text(capture["plan"], _DIGEST), _text(capture["run"], _RUN_ID)
        ),
        shards=tuple(_shard(shard) for shard in _items(content["shards"])),
        parts=tuple(_file(_keys(part, "file", "sha256", "size")) for part in _items(content["manifests"])),
    )


def _file(content: dict[str, Any]) -> File:
    return File(_text(content["file"], _NAME), _text(content["sha256"], _DIGEST), _number(content["size"]))


def _shard(value: Any) -> Shard:
    content = _keys(value, "file", "regions", "sha256", "size")
    own = _file(content)
    regions = tuple(_region(region) for region in _items(content["regions"], least=1))
    return Shard(own.file, own.sha256, own.size, regions)


def _region(value: Any) -> Region:
    content = _keys(value, "count", "field", "first", "stride")
    count, stride = _number(content["count"], least=1), _number(content["stride"], least=1)
    if count == 1 and stride != 1:
        raise _refused("stride of one word", stride, "1")
    return Region(_text(content["field"], _NAME), Part(_number(content["first"]), stride, count))


def _refused(what: str, got: object, expected: str) -> CheckpointError:
    shown = reprlib.repr(got)  # it may be of any length
    return CheckpointError(
        Label.CHECKPOINT_MANIFEST, f"not a manifest's {what} (got {shown}, expected {expected})"
    )


def _keys(value: Any, *keys: str) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(keys):
        raise _refused("object", value, f"the keys {', '.join(sorted(keys))}")
    return value


def _items(value: Any, least: int = 0) -> list[Any]:
    if not isinstance(value, list) or len(value) < least:
        raise _refused("list", value, f"{least} items or more")
    return value


def _text(value: Any, form: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise _refused("text", value, form.pattern)
    return value


def _number(value: Any, least: int = 0) -> int:
    if type(value) is not int or value < least:
        raise _refused("number", value, f"{least} or more")
    return value
