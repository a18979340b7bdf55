"""`orch.toml`: where a project keeps its bundles, and who it is. The one file that names no kind.

Knows the keys and that paths are meant beside the file; must not look for the file: the commands do.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from orchestrator.errors import Label, Refusal
from orchestrator.spec.document import Document
from orchestrator.spec.faults import FileModel

Text = Annotated[str, Field(min_length=1)]


class ProjectFile(FileModel):
    """Where a project keeps its bundles, and who it is."""

    bundles: Text = Field(default="runs", description="the folder that bundles go to")
    tracker: Text | None = Field(default=None, description="the tracker's database, as a URL")
    signing_key: Text | None = Field(default=None, description="not built yet: seals are not signed")
    owner: Text | None = Field(default=None, description="whose runs these are")
    content: Text | None = Field(default=None, description="the folder with specs, roles and lanes")
    secrets: tuple[Text, ...] = Field(
        default=(), description="variables whose values are secret, whatever they are called"
    )


@dataclass(frozen=True)
class ProjectSpec:
    """A project; paths are resolved beside its file. `secrets` are names of variables."""

    path: Path
    bundles: Path
    tracker: str | None
    owner: str | None
    content: Path | None
    secrets: tuple[str, ...]


def meaning(document: Document) -> tuple[Refusal, ...]:
    """Refuses what no program is built for yet: a key that would sign nothing must not look as if it did."""
    if document.get("signing_key") is None:
        return ()
    message = "signing seals is not built yet (got `signing_key`, expected none)"
    hint = "leave it out, and hand the seal on by another way than the bundle"
    return (document.at(Label.SIGNING_UNSUPPORTED, message, ("signing_key",), on_key=True, hint=hint),)


def build(document: Document, model: ProjectFile) -> ProjectSpec:
    """Gives the typed project of a file that nothing is wrong with."""
    folder = document.path.parent

    def beside(path: str | None) -> Path | None:
        return None if path is None else folder / os.path.expanduser(path)  # noqa: PTH111 - this one never raises

    return ProjectSpec(
        path=document.path,
        bundles=beside(model.bundles) or folder,
        tracker=model.tracker,
        owner=model.owner,
        content=beside(model.content),
        secrets=model.secrets,
    )
