"""The run and the lane of each cell of a matrix, as files of their own.

Knows how a cell's files follow from the axes, and where in the matrix a fault of them stands; must not know
which cells a plan admits, nor what is done with them.
"""

from __future__ import annotations

import json
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from orchestrator.errors import Refusal
from orchestrator.spec import run as runs
from orchestrator.spec.document import load
from orchestrator.spec.faults import check
from orchestrator.spec.matrix import SECTION, Cell, MatrixSpec
from orchestrator.spec.owners import PARTS
from orchestrator.spec.run import RunFile, RunSpec
from orchestrator.spec.system import BY_ROWS

NOT_HERE = "a cell of a matrix shows that it computes the same; a lane over one run has the controls"
OMITTED = {"refusals": NOT_HERE, "evaluate": NOT_HERE}


def run_text(spec: MatrixSpec, cell: Cell, system_file: str) -> str:
    """Gives a cell's run as a file of its own, the same whenever it is asked for.

    Args:
        spec: the matrix.
        cell: which of its cells.
        system_file: how the file names the system's.
    """
    shape = spec.shapes[cell.shape]
    topology = shape.topology
    pairings = {
        role: {"target": target} | ({"device": device} if device else {})
        for role, (target, device) in zip(shape.shares, shape.made_for, strict=True)
    }
    return _yaml(
        orch="run/v1",
        name=cell.shape,
        system=system_file,
        topology=topology.kind if topology.fan_out is None else topology.model_dump(),
        roles=[*shape.shares],
        **_dealt_out(spec, cell),
        pairings=pairings,
    )


def _dealt_out(spec: MatrixSpec, cell: Cell) -> dict[str, Any]:
    """What each role has: `samples`, if there are rows to deal out, and `ownership`."""
    system, shares = spec.systems[cell.system], spec.shapes[cell.shape].shares
    ownership = spec.document.get(SECTION, "ownership", cell.ownership)
    if system.kind in BY_ROWS:
        counts = row_counts(system.rows, tuple(shares.values()))
        return {"samples": dict(zip(shares, counts, strict=True)), "ownership": ownership}
    # what is not said would be partitioned here, and replicated in every other cell of the same name
    held = {part: getattr(spec.ownership[cell.ownership], part) for part in PARTS}
    return {"ownership": ownership | held}


def lane_text(spec: MatrixSpec, cell: Cell, run_file: str) -> str:
    """Gives a cell's lane as a file of its own, the same whenever it is asked for.

    Args:
        spec: the matrix.
        cell: which of its cells.
        run_file: how the file names the run's.
    """
    return _yaml(
        orch="lane/v1",
        name=cell.name.replace("/", "."),
        run=run_file,
        updates=spec.updates,
        split=spec.split,
        omit=OMITTED,
        swap=spec.swap_of(cell),
        deadlines=spec.document.get("deadlines"),
    )


def row_counts(rows: int, shares: tuple[int, ...]) -> tuple[int, ...]:
    """Gives how many of so many rows each share is: neighbours meet where their shares do, rounded down."""
    total = sum(shares)
    bounds = [rows * share // total for share in accumulate(shares, initial=0)]
    return tuple(last - first for first, last in pairwise(bounds))


def run_of(spec: MatrixSpec, cell: Cell) -> tuple[RunSpec | None, tuple[Refusal, ...]]:
    """Gives a cell's run, or what is wrong with it, at the place of its shape in the matrix."""
    system = spec.systems[cell.system]
    text = run_text(spec, cell, str(system.path))
    document, refusals = load(Path(f"{spec.path}:{cell.name}.yaml"), text.encode())
    if document is None:
        return None, tuple(placed(spec, cell, each) for each in refusals)
    model, found = check(document, RunFile)
    refusals = (*refusals, *found, *runs.meaning(document, system))
    if model is None or refusals:
        return None, tuple(placed(spec, cell, each) for each in refusals)
    return runs.build(document, model, system, spec.profiles), ()


def placed(spec: MatrixSpec, cell: Cell, refusal: Refusal) -> Refusal:
    """Gives a refusal of a cell's run at the entry of the matrix that it comes from."""
    entry = ("ownership", cell.ownership) if refusal.key.startswith("ownership") else ("shapes", cell.shape)
    return spec.document.at(
        refusal.label, f"{cell.name}: {refusal.message}", (SECTION, *entry), on_key=True, hint=refusal.hint
    )


def _yaml(**lines: Any) -> str:
    """A mapping a line, in the notation that YAML shares with JSON."""
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in lines.items())
