"""What a device role keeps in its card's memory: every buffer, and how the words in it lie.

Knows what kernels compute and where they put it (`docs/kernels.md`); must not know how one is written, nor
what a card can hold. Admission charges these buffers, and programs allocate them and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from orchestrator.plan.model import Plan, Role
from orchestrator.plan.places import (
    Extents,
    Place,
    Step,
    extents,
    local_program,
    terms_program,
    update_program,
)
from orchestrator.plan.waves import Waved, used, waves

ALLOCATION_BYTES = 256
"""Every allocation is charged as a multiple of this."""


@dataclass(frozen=True)
class TermsRow:
    """One sample's row of `work`: the words of `sums`, then arrays that are temporaries.

    Attributes:
        steps: what is computed of a sample.
        places: where its names lie; `terms` is the row.
        words: of the row.
    """

    steps: tuple[Step, ...]
    places: Mapping[str, Place]
    words: int


@dataclass(frozen=True)
class UpdateWaves:
    """The update in as many kernels as have to wait for each other; `words` pass between them in `work`."""

    waves: tuple[tuple[Waved, ...], ...]
    places: Mapping[str, Place]
    words: int


@dataclass(frozen=True)
class LocalRow:
    """One coordinate's row of `work`, where all samples one after the other change the state.

    Attributes:
        steps: what a sample does.
        lasting: fields that all coordinates share, and their words: they begin the row.
        places: where in `row` those and temporaries that are arrays lie.
        words: of the row.
        threads: as many rows there are.
    """

    steps: tuple[Step, ...]
    lasting: Mapping[str, int]
    places: Mapping[str, Place]
    words: int
    threads: int


def terms_row(plan: Plan, role: Role) -> TermsRow:
    """How a role that has samples computes one."""
    program = terms_program(plan, role)
    steps, places, row = used(program.steps, program.places), dict(program.places), extents(plan, role).terms
    for step in steps:
        name = step.assignment.target
        if step.assignment.size > 1 and name not in places:
            places[name] = Place("terms", row, is_compact=step.part is not None)
            row += step.count
    return TermsRow(steps, places, row)


def update_waves(plan: Plan, role: Role) -> UpdateWaves:
    """How a role computes its update."""
    program = update_program(plan, role)
    made = waves(used(program.steps, program.places))
    places, words = dict(program.places), 0
    for waved in (each for wave in made for each in wave if each.is_stored):
        name = waved.step.assignment.target
        if name not in places:
            places[name] = Place("work", words, is_compact=waved.step.part is not None)
            words += waved.step.count
    return UpdateWaves(made, places, words)


def local_row(plan: Plan, role: Role) -> LocalRow:
    """How a role takes its coordinates through the samples; without threads where it computes nothing."""
    program = local_program(plan, role)
    steps = used(program.steps, program.places)
    own = [step.count for step in steps if step.part is not None]
    shared = [step.assignment for step in steps if step.part is None]
    lasting = {each.target: each.size for each in shared if not each.local}
    in_row = lasting | {each.target: each.size for each in shared if each.size > 1}
    firsts = accumulate(in_row.values(), initial=0)
    places = {name: Place("row", first) for name, first in zip(in_row, firsts, strict=False)}
    threads = max(own, default=1) if own or lasting else 0
    return LocalRow(steps, lasting, places, sum(in_row.values()), threads)


def work_words(plan: Plan, role: Role) -> int:
    """Words of the buffer that kernels use one after the other."""
    samples = extents(plan, role).samples
    terms = samples * terms_row(plan, role).words if samples else 0
    if plan.system.local:
        row = local_row(plan, role)
        return max(terms, row.words * row.threads)
    return max(terms, update_waves(plan, role).words)


def replica_words(plan: Plan, words: Extents) -> int:
    """Words of the read replica, where a round has one; else parameters are read of the state."""
    is_partitioned = plan.system.has_own_rows and plan.ownership.parameters == "partitioned"
    return words.parameters if is_partitioned else 0


def buffer_words(plan: Plan, role: Role) -> Mapping[str, int]:
    """Every buffer of a role's, by name, and its words."""
    words = extents(plan, role)
    return {
        "state": words.held,
        "samples": words.samples * words.sample,
        "parameters": replica_words(plan, words),
        "work": work_words(plan, role),
        "sums": words.terms,
        "total": words.total,
    }


def charged(words: int, size: int) -> int:
    """Bytes that an allocation of so many words of so many bytes is charged; none without words."""
    return -(-words * size // ALLOCATION_BYTES) * ALLOCATION_BYTES


def buffers(plan: Plan, role: Role) -> Mapping[str, int]:
    """Every buffer of a role's, by name, and the bytes that it is charged."""
    size = plan.system.word.size
    return {name: charged(words, size) for name, words in buffer_words(plan, role).items()}
