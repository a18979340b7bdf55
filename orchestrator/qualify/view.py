"""A bundle as judges see it: files only. Nothing here can reach a machine, and nothing is written.

The plan is derived again from the bundle's own copies of the specs, and the reference runs again from it.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from evidence.canonical import loads
from orchestrator.build.compile import Program
from orchestrator.build.kernels import Kernels, kernels
from orchestrator.oracle.checkpoint import (
    MANIFEST,
    Checkpoint,
    CheckpointError,
    manifest_name,
    read_set,
    set_names,
)
from orchestrator.oracle.kinds import reference_of
from orchestrator.oracle.reference import Reference, Version
from orchestrator.plan.command import CommandPlan, command_plan
from orchestrator.plan.derive import Planned, derive, other_plan
from orchestrator.plan.model import Plan
from orchestrator.plan.topology import Topology
from orchestrator.plan.witness import witness
from orchestrator.qualify import cards, pins
from orchestrator.qualify import parent as parents
from orchestrator.qualify.bundle_files import SPECS, BundleFiles
from orchestrator.qualify.cards import PinnedCards
from orchestrator.qualify.endpoints import Wiring
from orchestrator.qualify.launch import FOREIGN, OTHER, OWN, SWAPPED, WITNESS, ProgressLine
from orchestrator.qualify.launched import Launched
from orchestrator.qualify.lineage import Lineage
from orchestrator.qualify.parent import Parent
from orchestrator.qualify.pins import Pinned
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.program import CommandRunSpec
from orchestrator.spec.read import read_lane

LOCAL, SIMULATED = "local", "simulated"
PROGRAM_FOLDERS = {
    OWN: "programs",
    SWAPPED: "swapped-programs",
    OTHER: "control-programs",
    WITNESS: "witness-programs",
    FOREIGN: "foreign-programs",
}


class View(BundleFiles):
    """Read-only look at the bundle of a run, sealed or still growing."""

    def __init__(self, bundle: Path) -> None:
        super().__init__(bundle)
        self._launched: dict[str, Launched] = {}
        self._kernels: dict[tuple[str, str, str], Kernels] = {}

    @cached_property
    def lane(self) -> LaneSpec:
        """The lane as declared, from the bundle's copy."""
        return read_lane(self.lane_copy, within=self.bundle / SPECS)

    @property
    def plan(self) -> Plan | CommandPlan:
        """The plan of whichever sort, derived again."""
        return self.command or self.planned.plan

    @cached_property
    def command(self) -> CommandPlan | None:
        """The plan of a command run, derived again; None for a native one."""
        run = self.lane.run
        return command_plan(run) if isinstance(run, CommandRunSpec) else None

    @cached_property
    def planned(self) -> Planned:
        """The plan of a native run with its sample words, derived again.

        Raises:
            TypeError: it is a command run.
        """
        run = self.lane.run
        if isinstance(run, CommandRunSpec):
            raise TypeError(f"{run.name} is a command run")
        return derive(run)

    @property
    def targets(self) -> Mapping[str, str]:
        """Role name -> target, in role order."""
        return self.command.targets if self.command else self.planned.targets

    def targets_of(self, which: str) -> Mapping[str, str]:
        """Role name -> target of its `own`, `swapped` or `other` program, in role order."""
        if which != SWAPPED or self.command:
            return self.targets
        return self.planned.swapped(self.lane).targets

    @property
    def roles(self) -> tuple[str, ...]:
        """Role names in order."""
        return tuple(self.targets)

    @cached_property
    def pods(self) -> Pinned | None:
        """The rental that the run is bound to; None for this machine, with its own cards or with stand-ins.

        Raises:
            ValueError, LookupError, TypeError: it is not the one that the run was begun on.
        """
        begun = self.events()[0].data
        if begun["pods"] in (LOCAL, SIMULATED):
            return None
        if self.digest(pins.FILE) != begun["pods_sha256"]:
            raise ValueError(f"{pins.FILE} is not the one that the run was begun with")
        return Pinned.from_json(self.json(pins.FILE))

    @cached_property
    def pinned_cards(self) -> PinnedCards | None:
        """The cards that the run was begun with where no pods file has them; None if it needs none.

        Raises:
            ValueError, LookupError, TypeError: they are not those.
        """
        begun = self.events()[0].data
        if "cards_sha256" not in begun:
            return None
        if self.digest(cards.FILE) != begun["cards_sha256"]:
            raise ValueError(f"{cards.FILE} is not the one that the run was begun with")
        return PinnedCards.from_json(self.json(cards.FILE))

    @cached_property
    def wiring(self) -> Wiring:
        """Which role runs on which node, and how they reach each other."""
        if self.pods is None:
            return Wiring("loopback", dict.fromkeys(self.roles, LOCAL), topology=self._tree)
        return replace(self.pods.wiring, topology=self._tree)

    @property
    def _tree(self) -> Topology | None:
        """Of native roles; those of a user's own program find each other by themselves."""
        return None if self.command else self.planned.plan.topology

    def plan_of(self, which: str) -> Plan:
        """The plan that `own`, `swapped`, `other` or `witness` programs are made from."""
        if which == WITNESS:
            return self.witness.plan
        return self.planned.plan if which != OTHER else other_plan(self.planned).plan

    def kernels(self, role: str, which: str, capability: str) -> Kernels:
        """What a device role's program does on its card, of a plan; rendered once."""
        key = (role, which if which in (OTHER, WITNESS) else OWN, capability)
        if key not in self._kernels:
            plan = self.plan_of(which)
            (made,) = (each for each in plan.roles if each.name == role)
            self._kernels[key] = kernels(plan, made, capability)
        return self._kernels[key]

    @cached_property
    def witness(self) -> Planned:
        """The plan, over words whose totals show in which order they were added."""
        return witness(self.planned)

    def samples(self, role: str, which: str = OWN) -> bytes:
        """The sample words of a role of a plan, as the file that travels beside its executable."""
        planned = self.witness if which == WITNESS else self.planned
        return planned.samples_of(next(each for each in planned.plan.roles if each.name == role))

    @cached_property
    def parent(self) -> Parent | None:
        """The checkpoint of another run that this one goes on from; None if it begins at the beginning.

        Raises:
            ValueError, LookupError, TypeError: it is not what the run was begun with.
        """
        data = self.bytes(f"{parents.FOLDER}/{parents.FILE}")
        if data is None:
            return None
        found = Parent.from_json(loads(data))
        changed = [
            name for name, sha256 in found.files.items() if self.digest(f"{parents.FOLDER}/{name}") != sha256
        ]
        if changed:
            raise ValueError(f"{parents.FOLDER}/{changed[0]} is not what the run was begun with")
        return found

    @property
    def first(self) -> int:
        """The version that the run begins with; 0, or its parent's."""
        return self.parent.version if self.parent else 0

    @property
    def restore(self) -> dict[str, str] | None:
        """What its first launches are given: name under `restore/` -> bundle file; None for nothing."""
        return self.parent.restore if self.parent else None

    def epoch(self, number: int) -> int:
        """The epoch of the run's first, second, ... start in a row: later than its parent's."""
        return number + (self.parent.epoch if self.parent else 0)

    @property
    def split(self) -> int:
        """The version at which the split run stops; half way where the run begins past the declared one."""
        declared = self.lane.split
        return declared if declared > self.first else (self.first + self.lane.updates) // 2

    @cached_property
    def origin(self) -> Checkpoint | None:
        """The checkpoint that the parent left; None without a parent.

        Raises:
            CheckpointError: its set is not whole, or not of this system.
        """
        if self.parent is None:
            return None
        held = {name: self.bytes(file) or b"" for name, file in self.parent.restore.items()}
        return read_set(self.planned.plan.system, held)

    @property
    def beginning(self) -> Version | None:
        """The state that the parent left; None without a parent.

        Raises:
            CheckpointError: as `origin`.
        """
        return Version(self.origin.version, self.origin.words, {}) if self.origin else None

    @cached_property
    def before(self) -> View | None:
        """The parent's own specs, and what it began from, as far as they are needed to run it again."""
        return View(self.bundle / parents.FOLDER) if self.parent else None

    def line(self, number: int, role: int) -> ProgressLine:
        """The line of `progress` that the reference yields for an update and a role; computed once.

        Raises:
            NonFiniteError: the declared arithmetic leaves the finite numbers before that.
        """
        return self._lineage(number).line(number, role)

    def version(self, number: int) -> Version:
        """What the reference yields after 1, `split` or `updates` updates; the others' words are not kept.

        Raises:
            NonFiniteError: the declared arithmetic leaves the finite numbers before that.
        """
        return self._lineage(number).version(number)

    def words_at(self, number: int) -> array[float]:
        """The state that the reference yields after any number of updates; computed anew each time."""
        start = self.beginning if self.beginning and number > self.first else None
        versions = self._reference.versions(start)
        return next(version.words for version in versions if version.number == number)

    def evaluation(self, number: int) -> dict[str, float]:
        """Results that the reference yields at a version."""
        return self._reference.evaluate(self.version(number))

    def _lineage(self, number: int) -> Lineage:
        """Updates past the parent's checkpoint; or those from the initial state, as controls make them."""
        return self._onwards if number > self.first else self._anew

    @cached_property
    def _onwards(self) -> Lineage:
        kept = (1, self.split, self.lane.updates)
        return Lineage(self.planned.plan, self._reference, self.beginning, kept)

    @cached_property
    def _anew(self) -> Lineage:
        return Lineage(self.planned.plan, self._reference, None, (1,))

    @cached_property
    def _reference(self) -> Reference:
        return reference_of(self.planned.plan, self.planned.words)

    def attempts(self, step: str) -> int:
        """How often a step was begun."""
        return sum(
            event.type == "orch.step.started" and event.data["step"] == step for event in self.events()
        )

    def attempt(self, step: str) -> str | None:
        """Folder of the step's finished attempt, as the manifest names it; None if none was finished.

        Raises:
            ValueError: the journal names no attempt that a step can have.
        """
        found = [
            event.data["attempt"]
            for event in self.events()
            if event.type == "orch.step.finished" and event.data["step"] == step
        ]
        if not found:
            return None
        if type(found[-1]) is not int or found[-1] < 1:
            raise ValueError(f"no attempt of a step (got {found[-1]!r}, expected 1, 2, ...)")
        return f"steps/{step}/{found[-1]}"

    def program_file(self, role: str, which: str) -> str:
        """Name of a role's program, binding zeroed; `which` is `own`, `swapped` or `other`."""
        return f"{self.attempt('build')}/{PROGRAM_FOLDERS[which]}/{role}.elf"

    def program(self, role: str, which: str) -> Program | None:
        """A role's program as the build step left it; None if it is not there."""
        data = self.bytes(self.program_file(role, which))
        if data is None:
            return None
        return Program(role, self.targets_of(which)[role], data)

    def launch(self, step: str, name: str) -> Launched | None:
        """What a launch of the step's finished attempt left; None if it never began."""
        folder = self.attempt(step)
        file = f"{folder}/{name}"
        if file not in self._launched:  # a finished attempt does not change any more
            if folder is None or self.bytes(f"{file}/launch.json") is None:
                return None
            self._launched[file] = Launched(self, file)
        return self._launched[file]

    def collected(self, *steps: str) -> dict[int, str]:
        """Version -> a launch's folder whose collected set of that version is whole, of any attempt."""
        found: dict[int, str] = {}
        for event in self.events():
            if event.type != "orch.launch.started" or event.data["step"] not in steps:
                continue
            folder = "steps/{step}/{attempt}/{launch}".format_map(event.data)
            for path in sorted((self.bundle / folder).glob("*/checkpoint/*.manifest.json")):
                number = path.name.partition(".")[0]
                is_root = number.isdecimal() and path.name == manifest_name(int(number))
                if is_root and self.checkpoint_files(folder, int(number)):
                    found[int(number)] = folder
        return dict(sorted(found.items()))

    def checkpoint_files(self, launch: str, version: int) -> dict[str, str]:
        """The collected set of a version: name under `restore/` -> bundle file; empty if it is not whole.

        Args:
            launch: folder of the launch, as the manifest names it.
            version: of the checkpoint.
        """
        places = [f"{launch}/{role}/checkpoint" for role in self.roles]
        at = {name: f"{place}/{name}" for place in reversed(places) for name in self._files(place)}
        manifest = at.get(manifest_name(version))
        if manifest is None:
            return {}
        try:
            names = set_names(
                self.bytes(manifest) or b"", lambda name: self.bytes(at[name]) if name in at else None
            )
        except CheckpointError:
            return {}
        if any(name not in at for name in names):
            return {}
        return {MANIFEST: manifest, **{name: at[name] for name in names}}

    def _files(self, folder: str) -> tuple[str, ...]:
        path = self.bundle / folder
        return tuple(entry.name for entry in path.iterdir()) if path.is_dir() else ()
