"""The plans of a matrix: which cells are admitted, and what each computes.

Knows nothing of machines. A cell is not admitted where its state does not come apart as its ownership says,
or where owners of coordinates would hold others' too. Refused for any other reason, it is the matrix's fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from evidence.digest import sha256_json
from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.plan.derive import Planned, derive
from orchestrator.plan.model import Plan
from orchestrator.spec.cells import placed, run_of
from orchestrator.spec.matrix import SECTION, Cell, MatrixSpec
from orchestrator.spec.places import dotted
from orchestrator.spec.system import BY_ROWS

SCHEMA = "orch-matrix-plan/v1"


@dataclass(frozen=True)
class MatrixPlan:
    """What every cell computes.

    Attributes:
        plans: cell -> its plan, of those that are admitted, in the matrix's order.
        refused: cell -> why it is not admitted, of the others.
    """

    plans: Mapping[Cell, Plan]
    refused: Mapping[Cell, Refusal]

    @cached_property
    def digest(self) -> str:
        """Of all plans and refusals, by cell."""
        return sha256_json(self.as_json())

    @cached_property
    def system_digest(self) -> str:
        """Of all systems that are in it."""
        return sha256_json(sorted({plan.system_digest for plan in self.plans.values()}))

    def as_json(self) -> dict[str, object]:
        """Everything that the digest covers."""
        return {
            "schema": SCHEMA,
            "plans": {cell.name: plan.digest for cell, plan in self.plans.items()},
            "refused": {cell.name: said(refusal) for cell, refusal in self.refused.items()},
        }

    def file_json(self) -> dict[str, object]:
        """The content of a bundle's `plan.json`: the plans, their digest, and their systems'."""
        return {**self.as_json(), "digest": self.digest, "system_digest": self.system_digest}


def said(refusal: Refusal) -> str:
    """A refusal in one line, without its place."""
    return f"{refusal.label}: {refusal.message}"


def matrix_plan(spec: MatrixSpec) -> MatrixPlan:
    """The plans of a matrix.

    Raises:
        RefusedError: cells are refused for another reason than that their state cannot be held so: what
            the first one is refused for, of each entry of the matrix and label. Or none is admitted.
    """
    plans: dict[Cell, Plan] = {}
    refused: dict[Cell, Refusal] = {}
    wrong: dict[tuple[Where, str], Refusal] = {}
    shapes: dict[str, Planned] = {}
    for cell in spec.cells:
        run, refusals = run_of(spec, cell)
        if run is not None:
            try:
                planned = derive(run)
                plans[cell] = planned.plan
                shapes.setdefault(cell.shape, planned)
                continue
            except RefusedError as error:
                refusals = error.refusals
        faults = [refusal for refusal in refusals if not _is_of_the_holding(spec, cell, refusal)]
        for fault in (placed(spec, cell, each) if run else each for each in faults):
            wrong.setdefault((fault.where, fault.label), fault)  # one cell tells what is wrong with an entry
        if not faults:
            refused[cell] = refusals[0]
    if wrong:
        raise RefusedError(wrong.values())
    if not plans:
        raise RefusedError([next(iter(refused.values()))])
    for planned in shapes.values():
        planned.swapped(spec)  # what is refused of the resumed part is refused of the matrix
    return MatrixPlan(plans, refused)


def _is_of_the_holding(spec: MatrixSpec, cell: Cell, refusal: Refusal) -> bool:
    """Whether a cell is refused for who is to hold its state: then it is no cell, and nothing is wrong."""
    if refusal.label is Label.SEPARABILITY:
        return True
    entry = dotted((SECTION, "ownership", cell.ownership))
    is_by_rows = spec.systems[cell.system].kind in BY_ROWS
    return not is_by_rows and refusal.label is Label.VALUE_CHOICE and refusal.key == entry
