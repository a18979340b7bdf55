"""The manifest of a checkpoint set, read as strictly as the role programs read it.

Knows the form of the document alone; whether its regions cover a system, and whether its shards are whole, is
checked by `orchestrator.oracle.checkpoint`. Every name is a plain file or field name: none leads anywhere.
"""

from __future__ import annotations

import re
import reprlib
from dataclasses import dataclass
from typing import Any

from evidence.canonical import CanonicalError, loads
from orchestrator.errors import Label

SCHEMA = "orch-checkpoint/v1"

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
    """Words [first, first + count) of a field."""

    field: str
    first: int
    count: int

    @property
    def end(self) -> int:
        """Past its last word."""
        return self.first + self.count

    @property
    def tensor(self) -> str:
        """Name of its tensor in a shard: `w[0:3]`."""
        return f"{self.field}[{self.first}:{self.end}]"


@dataclass(frozen=True)
class Shard:
    """One file of the set: its name, what it holds, and its identity."""

    file: str
    regions: tuple[Region, ...]
    sha256: str
    size: int

    @property
    def owner(self) -> str:
        """The role that wrote it, by the form of its name: `3.worker.safetensors`."""
        return self.file.removesuffix(".safetensors").partition(".")[2]


@dataclass(frozen=True)
class Manifest:
    """What a manifest says; see `orchestrator.oracle.checkpoint.Checkpoint` for the meaning of its fields."""

    version: int
    state: str
    system: str
    epoch: int
    owners: tuple[str, ...]
    plan: str
    run: str
    time_ms: int
    shards: tuple[Shard, ...]


def read_manifest(data: bytes) -> Manifest:
    """The manifest in these bytes.

    Raises:
        CheckpointError: `checkpoint-manifest`, for anything but the canonical form of a manifest.
    """
    try:
        content = loads(data, canonical=True)
    except CanonicalError as error:
        raise CheckpointError(Label.CHECKPOINT_MANIFEST, str(error)) from error
    content = _keys(content, "capture", "schema", "shards", "state", "system", "version")
    if content["schema"] != SCHEMA:
        raise _refused("schema", content["schema"], SCHEMA)
    capture = _keys(content["capture"], "epoch", "owners", "plan", "run", "time_ms")
    return Manifest(
        version=_number(content["version"]),
        state=_text(content["state"], _DIGEST),
        system=_text(content["system"], _DIGEST),
        epoch=_number(capture["epoch"]),
        owners=tuple(_text(owner, _NAME) for owner in _items(capture["owners"])),
        plan=_text(capture["plan"], _DIGEST),
        run=_text(capture["run"], _RUN_ID),
        time_ms=_number(capture["time_ms"]),
        shards=tuple(_shard(shard) for shard in _items(content["shards"])),
    )


def _shard(value: Any) -> Shard:
    content = _keys(value, "file", "regions", "sha256", "size")
    return Shard(
        _text(content["file"], _NAME),
        tuple(_region(region) for region in _items(content["regions"])),
        _text(content["sha256"], _DIGEST),
        _number(content["size"]),
    )


def _region(value: Any) -> Region:
    content = _keys(value, "count", "field", "first")
    return Region(
        _text(content["field"], _NAME), _number(content["first"]), _number(content["count"], least=1)
    )


def _refused(what: str, got: object, expected: str) -> CheckpointError:
    shown = reprlib.repr(got)  # it may be of any length
    return CheckpointError(
        Label.CHECKPOINT_MANIFEST, f"not a manifest's {what} (got {shown}, expected {expected})"
    )


def _keys(value: Any, *keys: str) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(keys):
        raise _refused("object", value, f"the keys {', '.join(keys)}")
    return value


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise _refused("list", value, "one item or more")
    return value


def _text(value: Any, form: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise _refused("text", value, form.pattern)
    return value


def _number(value: Any, least: int = 0) -> int:
    if type(value) is not int or value < least:
        raise _refused("number", value, f"{least} or more")
    return value
