"""What one launch left in a bundle, as judges read it: its roles' outputs, and the checkpoints among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchestrator.oracle.checkpoint import MANIFEST, Checkpoint, manifest_name, read_set
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

    def pieces(self, version: int) -> tuple[str, ...]:
        """Names in the bundle of all files of a version but its manifest, whichever role wrote them."""
        return tuple(
            self.file(role, f"checkpoint/{name}")
            for role, record in self.roles.items()
            for name in record.checkpoint
            if name.startswith(f"{version}.") and name != manifest_name(version)
        )

    def published(self, version: int) -> dict[str, bytes]:
        """The files of a published version, under the names that they have in a set.

        Raises:
            FileNotFoundError: it was not published.
        """
        manifest = self.manifest(version)
        if manifest is None:
            raise FileNotFoundError(f"version {version} was not published")
        files = {name.rpartition("/")[2]: self.view.bytes(name) for name in self.pieces(version)}
        found = {MANIFEST: self.view.bytes(manifest), **files}
        return {name: data for name, data in found.items() if data is not None}

    def checkpoint(self, version: int) -> Checkpoint:
        """A published state, read whole and checked against its digests.

        Raises:
            CheckpointError: it is not whole.
            FileNotFoundError: it was not published.
        """
        return read_set(self.view.planned.plan.system, self.published(version))
