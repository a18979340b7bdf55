"""What one launch left in a bundle, as judges read it: its roles' outputs, and the checkpoints among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchestrator.oracle.checkpoint import Checkpoint, manifest_name, read_set, shard_names
from orchestrator.qualify.launch import Launch, RoleRecord, read_role

if TYPE_CHECKING:
    from orchestrator.qualify.view import View


class Launched:
    """What one launch left in the bundle."""

    def __init__(self, view: View, name: str) -> None:
        self.view = view
        self.name = name
        self.launch = Launch.read(view.bundle / name)
        strangers = [start.role for start in self.launch.starts if start.role not in view.roles]
        if strangers:
            raise ValueError(f"{name} starts {strangers[0]!r}, which is no role of the run")
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
            for name in record.checkpoint
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
