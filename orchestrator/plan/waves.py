"""Which statements of an update may be one kernel: as few kernels as their reads and writes allow.

Knows steps and what they read; knows no PTX. Every thread does one coordinate's words, and nothing orders the
threads of a kernel: a word that one thread writes may, in the same kernel, be read by that thread alone. So a
statement belongs to the first *wave* after all that it would have to wait for: others' words that it reads,
and words that it overwrites while others may read them.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.plan.ownership import Part, part
from orchestrator.plan.places import Step
from orchestrator.plan.tree import Binary, Expression, Negate, SquareRoot, Word, names


@dataclass(frozen=True)
class Waved:
    """One step of a wave.

    Attributes:
        step: the step.
        is_everywhere: whether every thread of the wave makes the word for itself: one that many of them read.
        is_stored: whether a later wave reads what it makes, if that is a temporary.
    """

    step: Step
    is_everywhere: bool
    is_stored: bool


def used(steps: Sequence[Step], lasting: Container[str]) -> tuple[Step, ...]:
    """The steps without those that assign no word, or a temporary that nothing reads."""
    kept: list[Step] = []
    read: set[str] = set()
    for step in reversed(steps):
        if step.count and (step.assignment.target in lasting or step.assignment.target in read):
            kept.append(step)
            read.update(names(step.assignment.value))
    return tuple(reversed(kept))


def waves(steps: Sequence[Step]) -> tuple[tuple[Waved, ...], ...]:
    """The steps, all of which assign words, as waves; in each the order is the one given."""
    everywhere = _everywhere(steps)
    numbers: list[int] = []
    for at, step in enumerate(steps):
        before = zip(steps[:at], numbers, strict=True)
        after = (number + _waits(other, step, everywhere) for other, number in before if _meet(other, step))
        numbers.append(max(after, default=0))
    made: list[list[Waved]] = [[] for _ in range(max(numbers, default=-1) + 1)]
    for step, number in zip(steps, numbers, strict=True):
        target = step.assignment.target
        is_stored = any(
            later > number and target in names(other.assignment.value)
            for other, later in zip(steps, numbers, strict=True)
        )
        made[number].append(Waved(step, target in everywhere, is_stored))
    return tuple(map(tuple, made))


def _everywhere(steps: Sequence[Step]) -> frozenset[str]:
    """Temporaries of one word that statements over many coordinates read, themselves or by another such."""
    found: set[str] = set()
    for step in reversed(steps):
        if step.assignment.size > 1 or step.assignment.target in found:
            read = names(step.assignment.value)
            found.update(
                other.assignment.target
                for other in steps
                if other.assignment.local and other.assignment.size == 1 and other.assignment.target in read
            )
    return frozenset(found)


def _meet(before: Step, step: Step) -> bool:
    """Whether the order of two steps matters: one assigns what the other reads or assigns."""
    made, target = before.assignment.target, step.assignment.target
    return made == target or made in names(step.assignment.value) or target in names(before.assignment.value)


def _waits(before: Step, step: Step, everywhere: frozenset[str]) -> int:
    """How many waves later the second of two steps is at least: none, or one."""
    made, target = before.assignment.target, step.assignment.target
    reads = made not in everywhere and made in names(step.assignment.value)
    overwrites = target in names(before.assignment.value)
    return int(
        (reads and not _is_own(step, before, everywhere))
        or (overwrites and not _is_own(before, step, everywhere))
    )


def _is_own(reader: Step, writer: Step, everywhere: frozenset[str]) -> bool:
    """Whether each thread of a reader reads of what a writer writes only the word that it writes itself."""
    name = writer.assignment.target
    if writer.assignment.size == 1:
        return reader.assignment.size == 1 and reader.assignment.target not in everywhere
    return _dealt(reader) == _dealt(writer) and all(
        isinstance(node, Word) and node.index is None
        for node in _leaves(reader.assignment.value)
        if name in names(node)
    )


def _dealt(step: Step) -> Part:
    """Which coordinates threads do, the first one's first."""
    return part(0, 1, step.assignment.size) if step.part is None else step.part


def _leaves(node: Expression) -> Iterator[Expression]:
    match node:
        case Binary(_, left, right):
            yield from _leaves(left)
            yield from _leaves(right)
        case Negate(operand) | SquareRoot(operand):
            yield from _leaves(operand)
        case _:
            yield node
