"""A bundle as judges see it: files only. Nothing here can reach a machine, and nothing is written.

The plan is derived again from the bundle's own copies of the specs, and the reference runs again from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from evidence.canonical import loads
from evidence.event import Event
from evidence.stream import read as read_stream
from orchestrator.build.compile import Program
from orchestrator.oracle.checkpoint import Checkpoint, manifest_name, read_set, shard_names
from orchestrator.oracle.reference import Reference, Version
from orchestrator.plan.derive import Planned, derive
from orchestrator.qualify.launch import OTHER, OWN, Launch, RoleRecord, read_role
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.read import read_lane

INDEX = "specs/index.json"
PROGRAM_FOLDERS = {OWN: "programs", OTHER: "control-programs"}


class View:
    """Read-only look at a bundle, sealed or still growing."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle
        self._versions: list[Version] = []
        self._launched: dict[str, Launched] = {}
        self._stream_size = -1
        self._events: tuple[Event, ...] = ()

    @cached_property
    def lane(self) -> LaneSpec:
        """The lane as declared, from the bundle's copy."""
        return read_lane(self.bundle / "specs" / loads((self.bundle / INDEX).read_bytes())["lane"])

    @cached_property
    def planned(self) -> Planned:
        """The plan, derived again."""
        return derive(self.lane.run)

    @property
    def roles(self) -> tuple[str, ...]:
        """Role names in order."""
        return tuple(role.name for role in self.planned.plan.roles)

    def events(self) -> tuple[Event, ...]:
        """The journal as it stands; read again only when it has grown."""
        path = self.bundle / "stream.jsonl"
        size = path.stat().st_size
        if size != self._stream_size:
            self._stream_size, self._events = size, read_stream(path)
        return self._events

    def version(self, number: int) -> Version:
        """What the reference yields after `number` updates; computed once.

        Raises:
            NonFiniteError: the declared arithmetic leaves the finite numbers before that.
        """
        if not self._versions:
            self._reference = Reference(self.planned.plan, self.planned.words)
            self._versions.append(self._reference.initial())
            self._more = self._reference.versions()
        while len(self._versions) <= number:
            self._versions.append(next(self._more))
        return self._versions[number]

    def evaluation(self, number: int) -> dict[str, float]:
        """Results that the reference yields at a version."""
        version = self.version(number)
        return self._reference.evaluate(version)

    def attempts(self, step: str) -> int:
        """How often a step was begun."""
        return sum(
            event.type == "orch.step.started" and event.data["step"] == step for event in self.events()
        )

    def attempt(self, step: str) -> str | None:
        """Folder of the step's finished attempt, as the manifest names it; None if none was finished."""
        found = [
            event
            for event in self.events()
            if event.type == "orch.step.finished" and event.data["step"] == step
        ]
        return f"steps/{step}/{found[-1].data['attempt']}" if found else None

    def json(self, name: str) -> Any:
        """A JSON file of the bundle; None if it is not there."""
        path = self.bundle / name
        return loads(path.read_bytes()) if path.is_file() else None

    def bytes(self, name: str) -> bytes | None:
        """A file of the bundle; None if it is not there."""
        path = self.bundle / name
        return path.read_bytes() if path.is_file() else None

    def program_file(self, role: str, which: str) -> str:
        """Name of a role's program, binding zeroed; `which` is `own` or `other`."""
        return f"{self.attempt('build')}/{PROGRAM_FOLDERS[which]}/{role}.elf"

    def program(self, role: str, which: str) -> Program | None:
        """A role's program as the build step left it; None if it is not there."""
        data = self.bytes(self.program_file(role, which))
        if data is None:
            return None
        return Program(role, self.planned.targets[role], data)

    def launch(self, step: str, name: str) -> Launched | None:
        """What a launch of the step's finished attempt left; None if it never began."""
        folder = self.attempt(step)
        if folder is None or not (self.bundle / folder / name / "launch.json").is_file():
            return None
        file = f"{folder}/{name}"
        if file not in self._launched:  # a finished attempt does not change any more
            self._launched[file] = Launched(self, file)
        return self._launched[file]


class Launched:
    """What one launch left in the bundle."""

    def __init__(self, view: View, name: str) -> None:
        self.view = view
        self.name = name
        self.launch = Launch.read(view.bundle / name)
        self.roles: Mapping[str, RoleRecord] = {
            start.role: read_role(view.bundle / name / start.role, start.role) for start in self.launch.starts
        }

    def file(self, role: str, name: str) -> str:
        """Name in the bundle of a role's file."""
        return f"{self.name}/{role}/{name}"

    def files(self, name: str) -> tuple[str, ...]:
        """Names in the bundle of this file of every role."""
        return tuple(self.file(role, name) for role in self.roles)

    def manifest(self, version: int) -> str | None:
        """Name in the bundle of a published manifest; None if that version was not published."""
        for role in self.roles:
            name = self.file(role, f"checkpoint/{manifest_name(version)}")
            if (self.view.bundle / name).is_file():
                return name
        return None

    def shards(self, version: int) -> tuple[str, ...]:
        """Names in the bundle of the shard files of a version, whichever role wrote them."""
        return tuple(
            self.file(role, f"checkpoint/{name}")
            for role, record in self.roles.items()
            for name in record.published
            if name.startswith(f"{version}.") and name.endswith(".safetensors")
        )

    def checkpoint(self, version: int) -> Checkpoint:
        """A published state, read whole and checked against its digests.

        Raises:
            CheckpointError: it is not whole.
            FileNotFoundError: it was not published.
        """
        name = self.manifest(version)
        if name is None:
            raise FileNotFoundError(f"version {version} was not published")
        manifest = (self.view.bundle / name).read_bytes()
        shards = {}
        for shard in shard_names(manifest):
            for role in self.roles:
                data = self.view.bytes(self.file(role, f"checkpoint/{shard}"))
                if data is not None:
                    shards[shard] = data
        return read_set(self.view.planned.plan.system, manifest, shards)
