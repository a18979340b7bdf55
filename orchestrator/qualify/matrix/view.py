"""A matrix's bundle as its judge sees it: files only.

The cells are derived again from the bundle's own copy of the matrix; what each left is in a bundle of its own
below `cells/`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from evidence.event import EventError, parse
from evidence.files import open_regular
from orchestrator.plan.matrix import MatrixPlan, matrix_plan
from orchestrator.qualify.bundle_files import SPECS, BundleFiles
from orchestrator.qualify.view import LOCAL
from orchestrator.spec.cells import lane_text, run_text
from orchestrator.spec.matrix import Cell, MatrixSpec
from orchestrator.spec.read import read_any_lane

BEGUN = "orch.matrix.started"
CELLS = "cells"
RUN, LANE = "run.yaml", "lane.yaml"
_LONGEST = 1 << 20


def is_matrix(bundle: Path) -> bool:
    """Whether a folder is a matrix's bundle; False for whatever cannot be read."""
    try:
        with os.fdopen(open_regular(bundle / "stream.jsonl"), "rb") as file:
            return parse(file.readline(_LONGEST).rstrip(b"\n")).type == BEGUN
    except (OSError, EventError):
        return False


def bundles_of(bundle: Path) -> tuple[Path, ...]:
    """The cells' bundles that lie in a matrix's, the one begun last at the end."""
    found = bundle.glob(f"{CELLS}/*/*/*/*/stream.jsonl")
    # a run id begins with the time, and ends a bundle's name; so does the time itself before it
    return tuple(sorted((path.parent for path in found), key=lambda each: each.name[-25:]))


def cell_files(spec: MatrixSpec, bundle: Path, cell: Cell) -> dict[str, bytes]:
    """A cell's run and lane, and its cards' profiles, as files of the bundle: name in it -> bytes."""
    folder = f"{CELLS}/{cell.name}"
    system = os.path.relpath(spec.systems[cell.system].path, bundle / folder)
    profiles = {
        # beside its run, where every reader looks for them
        f"{CELLS}/{cell.system}/{cell.shape}/devices/{each.path.name}": each.path.read_bytes()
        for each in spec.profiles_of(cell)
    }
    return profiles | {
        f"{folder}/{RUN}": run_text(spec, cell, system).encode(),
        f"{folder}/{LANE}": lane_text(spec, cell, RUN).encode(),
    }


def place_of(spec: MatrixSpec, cell: Cell, place: str) -> str:
    """Where a cell of a matrix that was begun at a place runs: without cards, nothing is simulated."""
    return place if spec.shapes[cell.shape].has_devices else LOCAL


def chosen(spec: MatrixSpec, only: Iterable[str]) -> tuple[Cell, ...]:
    """The cells that patterns such as `adam/*/all` name, with those that they are compared with; else all."""
    patterns = tuple(only)
    named = [cell for cell in spec.cells if any(fnmatchcase(cell.name, each) for each in patterns)]
    kept = {*named, *map(spec.reference, named)}
    return tuple(cell for cell in spec.cells if not patterns or cell in kept)


class MatrixView(BundleFiles):
    """Read-only look at the bundle of a matrix, sealed or still growing."""

    @cached_property
    def spec(self) -> MatrixSpec:
        """The matrix as declared, from the bundle's copy.

        Raises:
            ValueError: it is no matrix.
        """
        found = read_any_lane(self.lane_copy, within=self.bundle / SPECS)
        if not isinstance(found, MatrixSpec):
            raise ValueError(f"{self.lane_copy} is a lane over one run")  # noqa: TRY004  # a file's content
        return found

    @cached_property
    def plan(self) -> MatrixPlan:
        """What every cell computes, derived again."""
        return matrix_plan(self.spec)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that the run is about, in order: all, or those that were asked for."""
        return chosen(self.spec, self.events()[0].data["only"])

    @property
    def admitted(self) -> tuple[Cell, ...]:
        """Those of them that are run."""
        return tuple(cell for cell in self.cells if cell in self.plan.plans)

    @cached_property
    def strangers(self) -> tuple[str, ...]:
        """Cells that the journal has begun, and the matrix does not have: it was another one when it ran."""
        begun = {event.data["cell"] for event in self.events() if event.type == "orch.cell.started"}
        return tuple(sorted(begun.difference(cell.name for cell in self.cells)))

    @property
    def omitted(self) -> Mapping[str, str]:
        """Cell -> why it is left out, of those that could have been run."""
        left = (cell for cell in self.plan.plans if cell not in self.cells)
        return dict.fromkeys((cell.name for cell in left), "not asked for")

    def folder(self, cell: Cell) -> Path:
        """Where a cell's files and bundle are."""
        return self.bundle / CELLS / cell.name

    def bundles(self, cell: Cell) -> tuple[Path, ...]:
        """The bundles of a cell: one, if all is well; none before it is begun."""
        return tuple(sorted(path.parent for path in self.folder(cell).glob("[!.]*/stream.jsonl")))
