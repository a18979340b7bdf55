"""Names in order, as blocks: how many, which one, and where each stands, without a list of them.

Knows node sets' blocks; must not know what is named. Two hundred thousand names of one block cost as much as
one; a look-up costs a search among the blocks that are alike around their numbers.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Generic, TypeVar, overload

from orchestrator.spec.nodesets import MAX_NAMES, Block, NodeSetError, join, parse, single
from orchestrator.spec.places import visible
from orchestrator.spec.repeated import Repeated

Value = TypeVar("Value")


@dataclass(frozen=True)
class Cut:
    """Part of a block: `count` names from `offset` on, which stand at `index` and after it; None: nowhere."""

    offset: int
    count: int
    index: int | None


class Register:
    """Where names stand. Numbers are kept as they are written, a 1 before them: 09 and 9 are two."""

    def __init__(self) -> None:
        self._around: dict[tuple[str, str], list[tuple[int, int, int]]] = {}

    def add(self, block: Block, index: int) -> None:
        """Notes that a block's names stand at an index and after it; none of them may stand anywhere yet."""
        pieces = self._around.setdefault((block.prefix, block.suffix), [])
        for low, high, offset in _written(block):
            insort(pieces, (low, high, index + offset))

    def cut(self, block: Block) -> Iterator[Cut]:
        """Yields the whole block in order, in parts that stand together or nowhere."""
        pieces = self._around.get((block.prefix, block.suffix), [])
        for low, high, offset in _written(block):
            at = low
            place = max(bisect_right(pieces, (low, 1 << 62, 0)) - 1, 0)
            while at < high:
                while place < len(pieces) and pieces[place][1] <= at:
                    place += 1
                start, stop, index = pieces[place] if place < len(pieces) else (high, high, 0)
                if start > at:
                    end = min(start, high)
                    yield Cut(offset + at - low, end - at, None)
                else:
                    end = min(stop, high)
                    yield Cut(offset + at - low, end - at, index + at - start)
                at = end

    def first_known(self, block: Block) -> str | None:
        """Gives the first of a block's names that stands somewhere."""
        return next((block.name(cut.offset) for cut in self.cut(block) if cut.index is not None), None)


def _written(block: Block) -> Iterator[tuple[int, int, int]]:
    """Yields [low, high) of a block's numbers as they are written, and their offset, length by length."""
    if not block.width:
        yield 1, 2, 0
        return
    first, end = block.first, block.first + block.count
    while first < end:
        digits = max(len(str(first)), block.width)
        stop = min(end, 10**digits)
        yield 10**digits + first, 10**digits + stop, first - block.first
        first = stop


@dataclass(frozen=True)
class Names(Sequence[str]):
    """Names, each once, in order; the same names have the same blocks, however they were written."""

    blocks: tuple[Block, ...]

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The index of each block's first name, and behind them how many names there are."""
        return tuple(accumulate((block.count for block in self.blocks), initial=0))

    @cached_property
    def _register(self) -> Register:
        register = Register()
        for start, block in zip(self.starts, self.blocks, strict=False):
            register.add(block, start)
        return register

    def __len__(self) -> int:
        return self.starts[-1]

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(*index.indices(len(self))))
        index = range(len(self))[index]
        place = bisect_right(self.starts, index) - 1
        return self.blocks[place].name(index - self.starts[place])

    def __iter__(self) -> Iterator[str]:
        return (block.name(offset) for block in self.blocks for offset in range(block.count))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def index(self, name: str, start: int = 0, stop: int | None = None) -> int:
        """Gives where a name stands.

        Raises:
            ValueError: nowhere.
        """
        found = self._find(name)
        if found is None or not start <= found < (len(self) if stop is None else stop):
            raise ValueError(name)
        return found

    def _find(self, name: str) -> int | None:
        return next(self.cut(single(name))).index

    def cut(self, block: Block) -> Iterator[Cut]:
        """Yields a block of names in parts that stand here together, or not at all."""
        return self._register.cut(block)

    def part(self, start: int, stop: int) -> tuple[Block, ...]:
        """Gives the names from one index to before another, as blocks."""
        found = []
        place = bisect_right(self.starts, start) - 1
        while start < stop:
            offset = start - self.starts[place]
            count = min(stop, self.starts[place + 1]) - start
            found.append(self.blocks[place].part(offset, count))
            start, place = start + count, place + 1
        return tuple(found)

    def text(self, start: int = 0, stop: int | None = None) -> str:
        """Gives the node set of the names from one index to before another."""
        blocks = self.part(start, len(self) if stop is None else stop)
        return ",".join(block.text for block in blocks)


def names_of(names: Iterable[str]) -> Names:
    """Gives names that were listed one by one; each must stand there once."""
    blocks: list[Block] = []
    for name in names:
        join(blocks, single(name))
    return Names(tuple(blocks))


def expand(text: str, most: int = MAX_NAMES) -> Names:
    """Gives the names that a node set stands for, in order.

    Args:
        text: such as `coordinator`, `worker[1-3]` or `rack[1-2]n[01-04]`.
        most: how many names it may stand for.

    Raises:
        NodeSetError: the text is no node set, stands for too many names, for one twice, or for one that no
            role can have.
    """
    blocks, register = parse(text, most), Register()
    for block in blocks:
        if register.first_known(block) is not None:
            raise NodeSetError(f"(got a name twice in `{visible(text)}`, expected each once)")
        register.add(block, 0)
    return Names(blocks)


@dataclass(frozen=True, eq=False)  # equal to any mapping of the same items
class ByName(Mapping[str, Value], Generic[Value]):
    """What stands for each name, in the names' order."""

    names: Names
    in_order: Repeated[Value]

    def __getitem__(self, name: str) -> Value:
        try:
            return self.in_order[self.names.index(name)]
        except ValueError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
