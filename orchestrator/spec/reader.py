"""How files refer to files: which kind names which, each file read once, and all refusals kept in order.

Knows the kinds and what each refers to; must not know what a kind holds. Kinds beside runs and systems are
imported where a file of them is read: most commands read one of them, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from evidence.digest import measure_file
from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.spec import data, program, run, system
from orchestrator.spec.document import Document, load
from orchestrator.spec.faults import check, one_of, suggest
from orchestrator.spec.places import visible
from orchestrator.spec.program import CommandRunSpec, SourceFile
from orchestrator.spec.references import beside, is_within, profiles
from orchestrator.spec.run import RunSpec
from orchestrator.spec.system import SystemSpec

if TYPE_CHECKING:
    from orchestrator.spec.device import DeviceSpec
    from orchestrator.spec.lane import LaneSpec
    from orchestrator.spec.matrix import MatrixSpec
    from orchestrator.spec.pods import PodsSpec
    from orchestrator.spec.project import ProjectSpec
    from tracker.programme import Programme

Model = TypeVar("Model", bound=BaseModel)
Spec = TypeVar("Spec")
KINDS = ("system/v1", "run/v1", "device/v1", "lane/v1", "pods/v1", "programme/v1")
PROJECT = "orch.toml"
OUTSIDE_HINT = "a bundle holds all that was read, and finds it again by paths that begin beside the file"


@dataclass
class Reader:
    """Refusals by file, in the order of opening; a file that two others refer to is read once.

    Attributes:
        opened: the files, and what is wrong with each.
        within: the folder that nothing is read outside of; None for anywhere.
    """

    opened: dict[Path, list[Refusal]] = field(default_factory=dict)
    within: Path | None = None
    _documents: dict[Path, Document | None] = field(default_factory=dict)
    _specs: dict[Path, Any] = field(default_factory=dict)

    def all(self) -> tuple[Refusal, ...]:
        """Gives the refusals, file by file, in place order, one for each place and key."""
        found: dict[tuple[Where, str], Refusal] = {}
        for refusals in self.opened.values():
            for refusal in sorted(refusals, key=lambda refusal: refusal.where):
                found.setdefault((refusal.where, refusal.key), refusal)
        return tuple(found.values())

    def any(self, path: Path) -> object:
        """Reads a file of whichever kind it says."""
        if path.name == PROJECT:
            return self.project(path)
        document = self._open(path)
        if document is None:
            return None
        readers: Mapping[Any, Callable[[Document], Any]] = {
            "system/v1": self._system,
            "run/v1": self._run,
            "device/v1": self._device,
            "lane/v1": self._lane,
            "pods/v1": self._pods,
            "programme/v1": self._programme,
        }
        kind = document.get("orch")
        if self._kind(document, *KINDS):
            return self._once(path, lambda: readers[kind](document))
        return None

    def system(self, path: Path) -> SystemSpec | None:
        """Reads a system; gives None where it is refused."""
        return self._of_kind(path, "system/v1", self._system)

    def run(self, path: Path) -> RunSpec | CommandRunSpec | None:
        """Reads a run of either sort; gives None where it is refused."""
        read: Callable[[Document], Any] = self._run  # the union is more than is inferred of a variable
        found: RunSpec | CommandRunSpec | None = self._of_kind(path, "run/v1", read)
        return found

    def lane(self, path: Path) -> LaneSpec | MatrixSpec | None:
        """Reads a lane of either sort; gives None where it is refused."""
        read: Callable[[Document], Any] = self._lane  # as for a run
        found: LaneSpec | MatrixSpec | None = self._of_kind(path, "lane/v1", read)
        return found

    def device(self, path: Path) -> DeviceSpec | None:
        """Reads a device profile; gives None where it is refused."""
        return self._of_kind(path, "device/v1", self._device)

    def pods(self, path: Path) -> PodsSpec | None:
        """Reads a pods file; gives None where it is refused."""
        return self._of_kind(path, "pods/v1", self._pods)

    def programme(self, path: Path) -> Programme | None:
        """Reads a programme; gives None where it is refused."""
        return self._of_kind(path, "programme/v1", self._programme)

    def project(self, path: Path) -> ProjectSpec | None:
        """Reads an `orch.toml`; gives None where it is refused."""
        from orchestrator.spec import project

        document = self._open(path)
        if document is None:
            return None
        model = self._check(document, project.ProjectFile, *project.meaning(document))
        return project.build(document, model) if model else None

    # one kind each: the model, what it refers to, what it means together

    def _system(self, document: Document) -> SystemSpec | None:
        model = self._check(document, system.SystemFile, *system.meaning(document))
        path = self._refer(document, "samples", "file")
        samples = self._samples(document, path, named=model is not None) if path else None
        if model is None or samples is None or path is None:
            return None
        return system.build(document, model, path, samples.rows)

    def _samples(self, document: Document, path: Path, *, named: bool) -> data.Samples | None:
        """Reads the samples; their header counts only where the columns' names do (`named`)."""
        sample = document.get("sample")
        if not isinstance(sample, dict) or not sample:
            return None
        if not all(type(size) is int and 1 <= size <= data.MAX_WIDTH for size in sample.values()):
            return None
        width = sum(sample.values())
        header = system.header(sample) if named and width <= data.MAX_WIDTH else ()
        self._refuse(path)  # opened, whatever comes of it
        try:
            return data.read_samples(path, width, header)
        except RefusedError as error:
            self._refuse(path, *error.refusals)
            return None

    def _run(self, document: Document) -> RunSpec | CommandRunSpec | None:
        if program.is_command_run(document):
            return self._command_run(document)
        return self._native_run(document)

    def _command_run(self, document: Document) -> CommandRunSpec | None:
        from orchestrator.spec.program_file import CommandRunFile

        model = self._check(document, CommandRunFile, *program.meaning(document))
        files = {key: self._source_file(document, key) for key in program.file_keys(document)}
        if model is None or self.opened[document.path] or None in files.values():
            return None
        return program.build(document, model, {key: found for key, found in files.items() if found})

    def _source_file(self, document: Document, key: tuple[str | int, ...]) -> SourceFile | None:
        """Hashes a file that a program is given; what is in it is nobody's business here."""
        path = self._refer(document, *key)
        if path is None:
            return None
        self._refuse(path)  # opened, whatever comes of it
        try:
            digest, size = measure_file(path)
        except OSError as error:
            message = f"cannot be read (got: {error.strerror or error}, expected a regular file)"
            self._refuse(path, Refusal(Label.FILE_UNREADABLE, message, Where(str(path))))
            return None
        is_use = key[-1] == "file"
        declared = document.get(*key[:-1], "sha256") if is_use else None
        if declared not in (None, digest):
            message = f"the file holds other bytes (got SHA-256 {digest}, expected {visible(str(declared))})"
            self._refuse(document.path, document.at(Label.DATA_CHUNK, message, (*key[:-1], "sha256")))
            return None
        return SourceFile(str(key[-2]) if is_use else path.name, path, digest, size)

    def _native_run(self, document: Document) -> RunSpec | None:
        path = self._refer(document, "system")
        model = self._check(document, run.RunFile)
        spec = self.system(path) if path else None
        self._refuse(document.path, *run.meaning(document, spec))
        devices = self._devices(document)
        if model is None or spec is None or self.opened[document.path] or None in devices.values():
            return None
        return run.build(document, model, spec, {name: found for name, found in devices.items() if found})

    def _devices(self, document: Document) -> dict[str, DeviceSpec | None]:
        """Reads the profile of every device that a pairing names."""
        pairings = document.get("pairings")
        keys = [("pairings", role, "device") for role in pairings] if isinstance(pairings, dict) else []
        return self._profiles(document, keys, document.path)

    def _profiles(
        self, document: Document, keys: Iterable[tuple[str | int, ...]], beside: Path
    ) -> dict[str, DeviceSpec | None]:
        """Reads the profiles that a file names at some keys; `beside`: the run whose cards they are of."""
        found: dict[str, DeviceSpec | None] = {}
        for key in keys:
            name = document.get(*key)
            if not isinstance(name, str):
                continue
            known = profiles(beside, content=self.within is None)
            if name in known:
                found[name] = self.device(known[name])
            else:
                expected = one_of(sorted(known))
                message = f"there is no such device profile (got `{visible(name)}`, expected {expected})"
                refusal = document.at(Label.NAME_UNKNOWN, message, key, hint=suggest(name, known))
                self._refuse(document.path, refusal)
        return found

    def _lane(self, document: Document) -> LaneSpec | MatrixSpec | None:
        from orchestrator.spec import lane, matrix

        if matrix.SECTION in document.value:
            return self._matrix(document)
        model = self._check(document, lane.LaneFile, *lane.meaning(document))
        path = self._refer(document, "run")
        spec = self.run(path) if path else None
        devices: dict[str, DeviceSpec | None] = {}
        if spec is not None:
            made_for = spec.made_for.runs if isinstance(spec, RunSpec) else (((program.COMMAND, None), 1),)
            used = [each for pair, _ in made_for for each in pair if each]
            self._refuse(document.path, *lane.roles_fit(document, len(spec.roles)))
            self._refuse(document.path, *lane.swap_fits(document, used))
            swapped = [("swap", each) for each in lane.swapped_devices(document) if each in used]
            devices = self._profiles(document, swapped, spec.path)
        if model is None or spec is None or self.opened[document.path] or None in devices.values():
            return None
        return lane.build(document, model, spec, {name: each for name, each in devices.items() if each})

    def _matrix(self, document: Document) -> MatrixSpec | None:
        from orchestrator.spec import matrix

        model = self._check(document, matrix.MatrixFile, *matrix.meaning(document))
        named = document.get(matrix.SECTION, "systems")
        systems: dict[str, SystemSpec | None] = {}
        paths: list[Path] = []
        for name in named if isinstance(named, dict) else ():
            path = self._refer(document, matrix.SECTION, "systems", name)
            systems[name] = self.system(path) if path else None
            paths += [path] if path else []
        found = {name: spec for name, spec in systems.items() if spec is not None}
        self._refuse(document.path, *matrix.systems_fit(document, found))
        # as if its runs lay beside the systems that they are of: without one, no profile is looked for
        keys = matrix.device_keys(document) if paths else ()
        devices = self._profiles(document, keys, next(iter(paths), document.path))
        if model is None or self.opened[document.path] or None in (*systems.values(), *devices.values()):
            return None
        return matrix.build(document, model, found, {name: each for name, each in devices.items() if each})

    def _device(self, document: Document) -> DeviceSpec | None:
        from orchestrator.spec import device

        model = self._check(document, device.DeviceFile, *device.meaning(document))
        return device.build(document, model) if model else None

    def _pods(self, document: Document) -> PodsSpec | None:
        from orchestrator.spec import pods, pods_meaning

        model = self._check(document, pods.PodsFile, *pods_meaning.meaning(document))
        return pods.build(document, model) if model else None

    def _programme(self, document: Document) -> Programme | None:
        from orchestrator.spec import programme

        model = self._check(document, programme.ProgrammeFile, *programme.meaning(document))
        return programme.build(model) if model else None

    # what they share

    def _of_kind(self, path: Path, kind: str, read: Callable[[Document], Spec | None]) -> Spec | None:
        if path in self._specs:
            found: Spec | None = self._specs[path]
            return found
        document = self._open(path)
        if document is None or not self._kind(document, kind):
            return None
        return self._once(path, lambda: read(document))

    def _once(self, path: Path, read: Callable[[], Spec | None]) -> Spec | None:
        if path not in self._specs:
            self._specs[path] = read()
        found: Spec | None = self._specs[path]
        return found

    def _open(self, path: Path) -> Document | None:
        if path in self._documents:
            return self._documents[path]
        if self.within is not None and not is_within(self.within, path):
            message = f"is not read (got a file outside, expected one in {visible(str(self.within))})"
            self._refuse(path, Refusal(Label.REFERENCE_OUTSIDE, message, Where(str(path))))
            self._documents[path] = None
            return None
        document, refusals = load(path)
        self._refuse(path, *refusals)
        if document is not None and not isinstance(document.value, dict):
            message = "is no mapping (got another value, expected keys and values)"
            self._refuse(path, document.at(Label.VALUE_TYPE, message, ()))
            document = None
        self._documents[path] = document
        return document

    def _refuse(self, path: Path, *refusals: Refusal) -> None:
        self.opened.setdefault(path, []).extend(refusals)

    def _kind(self, document: Document, *kinds: str) -> bool:
        """Says whether a file is of one of the kinds, and refuses it if not."""
        kind = document.get("orch")
        if kind in kinds:
            return True
        expected = one_of(kinds)
        if "orch" not in document.value:
            message = f"the file says no kind (got no `orch`, expected orch: {expected})"
            self._refuse(document.path, document.at(Label.FIELD_MISSING, message, ("orch",)))
        else:
            got = f"`{visible(kind)}`" if isinstance(kind, str) else "another value"
            message = f"the file is of another kind (got {got}, expected {expected})"
            hint = suggest(kind, kinds) if isinstance(kind, str) and kind not in KINDS else ""
            self._refuse(document.path, document.at(Label.KIND_UNKNOWN, message, ("orch",), hint=hint))
        return False

    def _check(self, document: Document, model: type[Model], *meaning: Refusal) -> Model | None:
        """Checks a document against its model; gives the model only where nothing is wrong with the file."""
        checked, refusals = check(document, model)
        self._refuse(document.path, *refusals, *meaning)
        return None if self.opened[document.path] else checked

    def _refer(self, document: Document, *key_path: str | int) -> Path | None:
        """Gives the path of a file that a document refers to; refuses at the reference if it is not there."""
        named = document.get(*key_path)
        if not isinstance(named, str) or not named:
            return None
        if self.within is not None and (
            Path(named).is_absolute() or not is_within(self.within, document.path.parent / named)
        ):
            message = f"leads out of what is kept together (got `{visible(named)}`, expected a relative path)"
            hint = OUTSIDE_HINT
            self._refuse(document.path, document.at(Label.REFERENCE_OUTSIDE, message, key_path, hint=hint))
            return None
        path = beside(document.path, named)
        try:
            if path.is_dir():
                message = f"cannot be read (got `{visible(named)}`, a folder, expected a file)"
                self._refuse(document.path, document.at(Label.FILE_UNREADABLE, message, key_path))
                return None
            if path.exists():
                return path
            siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        except (OSError, ValueError):
            siblings = []
        message = f"there is no such file (got `{visible(named)}`, expected a file)"
        hint = suggest(path.name, siblings)
        self._refuse(document.path, document.at(Label.FILE_MISSING, message, key_path, hint=hint))
        return None
