"""Where checkpoints lie: in a bundle, launch by launch, or in any folder that holds a set.

Knows names of files and folders. What is in a checkpoint, and whether it is whole, is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from evidence.files import open_regular
from evidence.names import fault
from evidence.stream import StreamError
from orchestrator.errors import Label, OrchError, Refusal, RefusedError, Where
from orchestrator.oracle.checkpoint import MANIFEST
from orchestrator.plan.model import System
from orchestrator.qualify import parent as parents
from orchestrator.qualify.command import adopt as command
from orchestrator.qualify.command.state import State, published
from orchestrator.qualify.controls import ORDER
from orchestrator.qualify.launch import Launch
from orchestrator.qualify.view import View

_PUBLISHED = re.compile(r"([0-9]{1,15})\.manifest\.json", re.ASCII)
_CHECKPOINT = ":checkpoint@"
_CONTROLS = "steps/refusals/"  # whose programs may be of another system


@dataclass(frozen=True)
class Set:
    """One set, wherever its files lie.

    Attributes:
        name: the folder, and in a bundle the launch in it: for people.
        version: as the manifest's name says; None where it is `manifest.json`.
        manifest: the root manifest.
        folders: where its files are looked for, in this order.
        system: whose it must be; None where nothing but the set tells.
    """

    name: str
    version: int | None
    manifest: Path
    folders: tuple[Path, ...]
    system: System | None = None

    def read(self, name: str) -> bytes | None:
        """A file of the set; None if no regular file of that name is in its folders."""
        path = self.path(name)
        if path is None:
            return None
        with open(open_regular(path), "rb") as file:  # noqa: PTH123 - a descriptor
            return file.read()

    def path(self, name: str) -> Path | None:
        """Where a file of the set lies; None if it does not."""
        if name == self.manifest.name:
            return self.manifest
        paths = (folder / name for folder in self.folders)
        return next((path for path in paths if path.is_file() and not path.is_symlink()), None)


@dataclass(frozen=True)
class OwnSet:
    """What a launch of a program of the user's own published.

    Attributes:
        name: the launch.
        version: that it was to reach.
        states: role -> what it published.
    """

    name: str
    version: int
    states: Mapping[str, State]


@dataclass(frozen=True)
class Place:
    """All checkpoints of a bundle or folder.

    Attributes:
        folder: it.
        sets: in the order of their versions; in a bundle, of one version, that of the launches.
        view: the bundle; None for another folder.
    """

    folder: Path
    sets: tuple[Set | OwnSet, ...]
    view: View | None = None

    def chosen(self, version: int) -> tuple[Set | OwnSet, ...]:
        """The sets of a version; of a bundle, the one that another run would go on from, if it has one.

        Raises:
            RefusedError: there is none.
        """
        found = tuple(each for each in self.sets if each.version == version)
        if not found:
            there = ", ".join(sorted({str(each.version) for each in self.sets})) or "none"
            message = f"no checkpoint of that version (got {version}, expected one of: {there})"
            raise RefusedError([Refusal(Label.CHECKPOINT_MISSING, message, Where(str(self.folder)))])
        if self.view is None:
            return found
        whole = (
            command.collected(self.view, *parents.LINEAGE)
            if self.view.command
            else self.view.collected(*parents.LINEAGE)
        )
        launch = whole.get(version)
        usual = tuple(each for each in found if not each.name.startswith(_CONTROLS)) or found
        return tuple(each for each in found if each.name == launch) or usual[-1:]


def place_of(folder: Path) -> Place:
    """Looks at a bundle or a folder.

    Raises:
        RefusedError: there is no set in it.
    """
    if (folder / "stream.jsonl").is_file():
        return _of_bundle(folder)
    sets = tuple(sorted(_in_folder(folder, str(folder)), key=_order))
    if not sets:
        message = f"holds no checkpoint (got no manifest in {folder}, expected a bundle, or N.manifest.json)"
        raise RefusedError([Refusal(Label.CHECKPOINT_MISSING, message, Where(str(folder)))])
    return Place(folder, sets)


def split_name(named: str) -> tuple[str, int | None]:
    """The folder and the version of `FOLDER:checkpoint@N`; no version where none is named.

    Raises:
        ValueError: what is named is no version.
    """
    folder, found, number = named.rpartition(_CHECKPOINT)
    if not found:
        return named, None
    if not folder or not (number.isascii() and number.isdecimal()) or int(number) < 1:
        raise ValueError(named)
    return folder, int(number)


def _of_bundle(bundle: Path) -> Place:
    view = View(bundle)
    try:
        sets = [found for launch in _launches(view) for found in _of_launch(view, launch)]
        system = None if view.command else view.planned.plan.system
        parent = f"{parents.FOLDER}/{parents.SET}"
        sets += _in_folder(bundle / parent, parent, system)
    except (OSError, StreamError, ValueError, LookupError, TypeError) as error:
        raise OrchError(f"{bundle} cannot be read as a bundle: {type(error).__name__}: {error}") from error
    return Place(bundle, tuple(sorted(sets, key=_order)), view)


def _launches(view: View) -> Iterable[str]:
    """Launches of the bundle's own system that were begun, in order: folders as the manifest names them."""
    for event in view.events():
        if event.type == "orch.launch.started" and event.data["launch"] != ORDER:
            launch = "steps/{step}/{attempt}/{launch}".format_map(event.data)
            if fault(launch) is None:
                yield launch


def _of_launch(view: View, launch: str) -> Iterable[Set | OwnSet]:
    if view.command is None:
        there = tuple(_in_folder(view.bundle / launch, launch))
        if there:
            which = Launch.read(view.bundle / launch).starts[0].program
            yield from (replace(each, system=view.plan_of(which).system) for each in there)
        return
    states = {role: published(view, launch, role) for role in view.roles}
    whole = {role: state for role, state in states.items() if state is not None}
    if whole:
        yield OwnSet(launch, Launch.read(view.bundle / launch).starts[0].called.target, whole)


def _in_folder(folder: Path, name: str, system: System | None = None) -> Iterable[Set]:
    """Sets whose manifest lies in the folder or in a `checkpoint` of a role's in it."""
    folders = (folder, folder / "restore", folder / "checkpoint", *sorted(folder.glob("*/checkpoint")))
    for each in folders:
        for manifest in sorted(each.glob("*manifest.json")):
            published = _PUBLISHED.fullmatch(manifest.name)
            if published:
                yield Set(name, int(published[1]), manifest, (each, *folders), system)
            elif manifest.name == MANIFEST:
                yield Set(name, None, manifest, (each,), system)


def _order(found: Set | OwnSet) -> int:
    return -1 if found.version is None else found.version
