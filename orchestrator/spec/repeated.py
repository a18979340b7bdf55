"""Values that stand many times in a row, kept once each.

Knows order and counts alone. A fleet's roles of one target, or a million equal words, are one entry.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, repeat
from typing import Generic, TypeVar, overload

Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)


@dataclass(frozen=True)
class Repeated(Sequence[Value_co], Generic[Value_co]):
    """A sequence by its runs: pairs of a value and how many times it stands there, at least once each."""

    runs: tuple[tuple[Value_co, int], ...]

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each run begins, and behind them the length of the whole."""
        return tuple(accumulate((count for _, count in self.runs), initial=0))

    def run_at(self, index: int) -> int:
        """Gives which run holds an index from 0; it must be within the sequence."""
        return bisect_right(self.starts, index) - 1

    def __len__(self) -> int:
        return self.starts[-1]

    @overload
    def __getitem__(self, index: int) -> Value_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Value_co, ...]: ...
    def __getitem__(self, index: int | slice) -> Value_co | tuple[Value_co, ...]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(*index.indices(len(self))))
        return self.runs[self.run_at(range(len(self))[index])][0]

    def __iter__(self) -> Iterator[Value_co]:
        return chain.from_iterable(repeat(value, count) for value, count in self.runs)


def repeated(runs: Iterable[tuple[Value, int]], same: Callable[[Value], object]) -> Repeated[Value]:
    """Gives the one form of runs: none empty, and no two neighbours that are the same.

    Args:
        runs: values and how many times each stands there.
        same: gives of a value what makes two of them the same; `float.hex` tells zero from minus zero.
    """
    joined: list[tuple[Value, int]] = []
    for value, count in runs:
        if joined and same(joined[-1][0]) == same(value):
            joined[-1] = (value, joined[-1][1] + count)
        elif count:
            joined.append((value, count))
    return Repeated(tuple(joined))
