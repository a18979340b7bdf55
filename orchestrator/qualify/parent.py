"""`parent/`: the checkpoint of another run that this one goes on from, with all that it was made of.

The set lies there as it was collected, beside the specs of its run (and those of that run's own parent), so
that a judge can run the reference up to it again. `parent.json` names every file by digest, and the journal's
first event names `parent.json` by its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from evidence.canonical import dumps
from evidence.digest import sha256_bytes

FOLDER = "parent"
FILE = "parent.json"
SET = "checkpoint"
SCHEMA = "orch-parent/v1"
LINEAGE = ("uninterrupted", "split")
"""Steps whose checkpoints other runs may go on from."""


@dataclass(frozen=True)
class Parent:
    """Where a run begins.

    Attributes:
        run_id: of the run that published it.
        version: updates that it holds.
        epoch: that it was captured in; this run's are later ones.
        seal: of that run's bundle; None if it was not sealed.
        system: digest of the system.
        plan: digest of the plan that it was computed by.
        files: name under `parent/` -> SHA-256.
    """

    run_id: str
    version: int
    epoch: int
    seal: str | None
    system: str
    plan: str
    files: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """As in `parent.json`."""
        return {
            "schema": SCHEMA,
            "run_id": self.run_id,
            "version": self.version,
            "epoch": self.epoch,
            "seal": self.seal,
            "system": self.system,
            "plan": self.plan,
            "files": dict(self.files),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Parent:
        """The inverse of `as_json`.

        Raises:
            ValueError, LookupError, TypeError: it is not of that form.
        """
        if value["schema"] != SCHEMA:
            raise ValueError(f"not a parent's file (got {value['schema']!r}, expected {SCHEMA!r})")
        return cls(**{name: value[name] for name in cls.__dataclass_fields__})

    @property
    def restore(self) -> dict[str, str]:
        """Name under `restore/` -> bundle file."""
        begin = f"{SET}/"
        return {name.removeprefix(begin): f"{FOLDER}/{name}" for name in self.files if name.startswith(begin)}


def described(parent: Parent, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of a bundle that begins there.

    Args:
        parent: without `files`.
        files: name under `parent/` -> bytes.
    """
    listed = {name: sha256_bytes(data) for name, data in sorted(files.items())}
    return {
        f"{FOLDER}/{FILE}": dumps(replace(parent, files=listed).as_json()),
        **{f"{FOLDER}/{name}": data for name, data in files.items()},
    }
