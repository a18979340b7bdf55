"""The refusal controls for host roles: their labels, and what shows that each was really made.

A refusal proves something only if its cause was in place: so every control's own files are looked at too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import Label
from orchestrator.oracle.checkpoint import CheckpointError, shard_names
from orchestrator.qualify.checks import Check, equal
from orchestrator.qualify.launch import OTHER, Start
from orchestrator.qualify.view import Launched, View

STEP = "refusals"
BASE, HOLDER = "base", "port-holder"


@dataclass(frozen=True)
class Control:
    """One experiment.

    Attributes:
        name: of its launch.
        tampering: what was made wrong, in a few words.
        labels: roles of the run -> what each role that takes part must say.
    """

    name: str
    tampering: str
    labels: Callable[[tuple[str, ...]], Mapping[str, str]]


def _everyone(label: Label) -> Callable[[tuple[str, ...]], Mapping[str, str]]:
    return lambda roles: dict.fromkeys(roles, label)


def _mismatched_pair(roles: tuple[str, ...]) -> Mapping[str, str]:
    """Root and the alien say what is wrong; the others only see the root go."""
    return {
        role: Label.FRAME_IDENTITY if role in (roles[0], roles[-1]) else Label.PEER_LOST for role in roles
    }


FRAME_IDENTITY = Control("frame-identity", "a program of another plan", _mismatched_pair)
CHUNK = Control("checkpoint-chunk", "a flipped byte in a shard", _everyone(Label.CHECKPOINT_CHUNK))
COVERAGE = Control(
    "checkpoint-coverage", "a shard that is named and not there", _everyone(Label.CHECKPOINT_COVERAGE)
)
SYSTEM = Control("checkpoint-system", "a checkpoint of another system", _everyone(Label.CHECKPOINT_SYSTEM))
DATA = Control("data-chunk", "an altered data file", _everyone(Label.DATA_CHUNK))
PORT = Control(
    "port-in-use", "a port that another process holds", lambda roles: {roles[0]: Label.PORT_IN_USE}
)
CONTROLS = (FRAME_IDENTITY, CHUNK, COVERAGE, SYSTEM, DATA, PORT)


def tampered(view: View) -> tuple[Check, ...]:
    """One check for each control that began: the tampering that it claims is in its files."""
    looks: Mapping[Control, Callable[[Launched], str]] = {
        FRAME_IDENTITY: _another_plan,
        CHUNK: _a_changed_shard,
        COVERAGE: _a_missing_shard,
        SYSTEM: _another_system,
        DATA: _changed_samples,
        PORT: _a_held_port,
    }
    checks = []
    for control, look in looks.items():
        launched = view.launch(STEP, control.name)
        if launched is not None:
            inputs = (f"{launched.name}/launch.json",)
            checks.append(
                equal(
                    f"{control.name}-tampered", inputs, control.tampering, look(launched) or control.tampering
                )
            )
    return tuple(checks)


def _another_plan(launched: Launched) -> str:
    last = launched.launch.starts[-1]
    is_other = last.program == OTHER and last.binding.plan != launched.view.planned.plan.digest
    return "" if is_other else f"{last.role} ran {last.program} of plan {last.binding.plan}"


def _manifest(launched: Launched, start: Start) -> Any:
    """The manifest that lay in a role's `restore/`."""
    source = next(file.source for file in start.files if file.name == "restore/manifest.json")
    return launched.view.json(source)


def _each(launched: Launched, wrong: Callable[[Start], bool]) -> str:
    """Names of the roles for which the tampering is not there."""
    untouched = [start.role for start in launched.launch.starts if not wrong(start)]
    return f"untouched at {', '.join(untouched)}" if untouched else ""


def _shards(start: Start) -> dict[str, str]:
    return {
        file.name.removeprefix("restore/"): file.sha256
        for file in start.files
        if file.name.startswith("restore/")
    }


def _a_changed_shard(launched: Launched) -> str:
    def changed(start: Start) -> bool:
        placed = _shards(start)
        return any(
            placed.get(shard["file"]) != shard["sha256"] for shard in _manifest(launched, start)["shards"]
        )

    return _each(launched, changed)


def _a_missing_shard(launched: Launched) -> str:
    def missing(start: Start) -> bool:
        source = next(file.source for file in start.files if file.name == "restore/manifest.json")
        try:
            named = shard_names(launched.view.bytes(source) or b"")
        except CheckpointError:
            return False
        return not set(named) <= set(_shards(start))

    return _each(launched, missing)


def _another_system(launched: Launched) -> str:
    own = launched.view.planned.plan.system.digest
    return _each(launched, lambda start: _manifest(launched, start)["system"] != own)


def _changed_samples(launched: Launched) -> str:
    def changed(start: Start) -> bool:
        placed = next(file.sha256 for file in start.files if file.name == "samples")
        return placed != start.binding.data_sha256

    return _each(launched, changed)


def _a_held_port(launched: Launched) -> str:
    holder = launched.view.launch(STEP, HOLDER)
    if holder is None:
        return "nobody held the port"
    held, wanted = holder.launch.starts[0], launched.launch.starts[0]
    if held.binding.port != wanted.binding.port:
        return f"port {held.binding.port} was held, and {wanted.binding.port} was asked for"
    return (
        ""
        if holder.view.bytes(holder.file(held.role, "listening")) is not None
        else f"{held.role} never listened"
    )
