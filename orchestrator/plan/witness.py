"""A witness of the order: a plan like another, over samples that tell the declared order from every other.

The order in which a plan adds a word is a binary tree over all samples: a role's own one after the other,
then its children's subtotals one by one. Additions commute, so that two orders are one where their trees
differ only by left and right. A tree is known by what it resolves: for an edge between two inner nodes take a
sample under each branch of the lower one, `a` and `b`, and one beside it, `c`. Every tree that agrees on one
such triple for each inner edge, that a and b meet before c, is this very tree (Steel, *The complexity of
reconstructing trees from qualitative characters and subtrees*, Journal of Classification 9, 1992).

So each triple has a coordinate: `LARGE` at a, `-LARGE` at b, 1 at c and nothing elsewhere. Where a and b meet
first, they cancel and the total is 1; where c meets one of them before, it is lost and the total is 0. A run
of any program over these words shows by its bits which order was kept.

Knows plans and trees; must not know how a program adds.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace

from orchestrator.plan.derive import Planned, encode
from orchestrator.plan.model import Field, System
from orchestrator.plan.topology import Topology
from orchestrator.plan.tree import Assignment, Word

SAMPLES_OF_A_ROLE = 3
"""Enough to show in which order a role adds its own: the first two would commute."""

MAX_WORDS = 1 << 20
"""Sample words of a witness. Above this it is narrower than what it stands for."""

LARGE = 2.0**60
"""1 is lost beside it in binary64, and in binary32."""


@dataclass(frozen=True)
class _Node:
    """A subtotal: one sample of it, and if it is of two parts one of each."""

    sample: int
    parts: tuple[int, int] | None = None


def triples(topology: Topology) -> tuple[tuple[int, int, int], ...]:
    """Samples (a, b, c), one triple for each inner edge: in the declared order a and b meet before c.

    Samples count from 0, `SAMPLES_OF_A_ROLE` of them to each role, in role order.
    """
    found: list[tuple[int, int, int]] = []
    subtotals: dict[int, _Node] = {}
    for role in reversed(range(topology.roles)):
        first, *others = range(SAMPLES_OF_A_ROLE * role, SAMPLES_OF_A_ROLE * (role + 1))
        total = _Node(first)
        for part in (*map(_Node, others), *map(subtotals.pop, topology.children(role))):
            found.extend(_resolved(total, part))
            total = _Node(total.sample, (total.sample, part.sample))
        subtotals[role] = total
    return tuple(found)


def _resolved(left: _Node, right: _Node) -> Iterator[tuple[int, int, int]]:
    if left.parts is not None:
        yield (*left.parts, right.sample)
    if right.parts is not None:
        yield (*right.parts, left.sample)


def witness(planned: Planned) -> Planned:
    """A plan of the same roles and topology whose every total is 1, in the declared order alone.

    Each role has `SAMPLES_OF_A_ROLE` samples. As many words are combined as the given plan combines, if there
    is room, and each triple has a coordinate or more. After one update each state word is 1 / samples.
    """
    plan = planned.plan
    rows = SAMPLES_OF_A_ROLE * len(plan.roles)
    resolved = triples(plan.topology)
    wanted = sum(field.size for field in plan.system.contributions)
    width = max(len(resolved), min(wanted, MAX_WORDS // rows))
    kind = plan.system.word
    words = array(kind.typecode, bytes(kind.size * width * rows))
    for at in range(width):
        for sample, word in zip(resolved[at % len(resolved)], (LARGE, -LARGE, 1.0), strict=True):
            words[sample * width + at] = word
    roles = tuple(
        replace(role, first_sample=SAMPLES_OF_A_ROLE * role.index, samples=SAMPLES_OF_A_ROLE)
        for role in plan.roles
    )
    made = replace(plan, system=_system(width, rows, words, plan.system.numerics), roles=roles)
    return replace(planned, plan=made, words=words)


def _system(width: int, rows: int, words: array[float], numerics: str) -> System:
    """Contributions are samples, and the new state their mean."""
    return System(
        name="witness",
        kind="data-parallel",
        parameters=(Field("w", width, (0.0,) * width),),
        state=(),
        sample=(Field("x", width),),
        contributions=(Field("g", width),),
        contribution=(Assignment("g", width, _coordinate("x", width), local=True),),
        update=(Assignment("w", width, _coordinate("mean_g", width), local=False),),
        evaluate=(Assignment("loss", 1, Word("x", 0), local=True),),
        results=("loss",),
        rate=1.0,
        rows=rows,
        samples_sha256=hashlib.sha256(encode(words)).hexdigest(),
        numerics=numerics,
    )


def _coordinate(name: str, width: int) -> Word:
    return Word(name, None if width > 1 else 0)
