"""Node sets: `worker[1-3]` and what it stands for, as blocks that are never expanded.

Knows the syntax that ClusterShell and Slurm share; must not know what the names name. Groups (`@`), wildcards
and set operators are refused: they would ask a file or a cluster elsewhere what a declaration means.

A name's *number* is its last run of at most six digits. Names that follow each other, alike around their
numbers, which count up by one, are one block. What stands in other brackets makes a block for each value.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from orchestrator.spec.places import visible

MAX_NAMES = 4096  # of what is listed name by name
MAX_BLOCKS = 4096
NAME = r"[a-z][a-z0-9_-]{0,62}"
_ALLOWED = re.compile(r"([A-Za-z0-9_,-]|\[[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*\])+\Z")
_NAME = re.compile(NAME + r"\Z")
_LONG = re.compile(r"\[[^\]]*[0-9]{7}")
_NUMBER = re.compile(r"[0-9]{1,6}(?![0-9])(?<![0-9]{7})")
_DIGIT = re.compile(r"[0-9]")
_BRACKETS = re.compile(r"(\[[^\]]*\])")


class NodeSetError(ValueError):
    """A text that is no node set; says what is wrong, ending "(got X, expected Y)"."""


@dataclass(frozen=True)
class Block:
    """Names that differ in their number alone, which counts up.

    Attributes:
        prefix: what stands before the number.
        suffix: what stands behind it.
        first: the first name's number.
        width: digits of every number, if the first begins with a zero; else 1; 0 of a name without a number.
        count: how many names, at least 1.
    """

    prefix: str
    suffix: str
    first: int
    width: int
    count: int

    def name(self, offset: int) -> str:
        """Gives the name at an offset from 0."""
        number = f"{self.first + offset:0{self.width}d}" if self.width else ""
        return f"{self.prefix}{number}{self.suffix}"

    def part(self, offset: int, count: int) -> Block:
        """Gives `count` of the names, from an offset on."""
        first = self.first + offset
        width = 1 if self.width and len(str(first)) >= self.width else self.width
        return Block(self.prefix, self.suffix, first, width, count)

    @property
    def text(self) -> str:
        """The node set: a name, or `worker[1-3]`."""
        if self.count == 1:
            return self.name(0)
        last = self.first + self.count - 1
        return f"{self.prefix}[{self.first:0{self.width}d}-{last:0{self.width}d}]{self.suffix}"


def single(name: str) -> Block:
    """Gives the block of one name."""
    found = None
    for match in _NUMBER.finditer(name):
        found = match
    if found is None:
        return Block(name, "", 0, 0, 1)
    return Block(name[: found.start()], name[found.end() :], int(found[0]), _width(found[0]), 1)


def _width(number: str) -> int:
    return len(number) if len(number) > 1 and number[0] == "0" else 1


def join(blocks: list[Block], block: Block) -> None:
    """Puts a block behind others that are in their one form, so that they are again."""
    before = blocks[-1] if blocks else None
    if before is None or not before.width or not _follows(before, block):
        blocks.append(block)
        return
    room = block.count if before.width == 1 else min(block.count, 10**before.width - block.first)
    blocks[-1] = replace(before, count=before.count + room)
    if room < block.count:
        blocks.append(block.part(room, block.count - room))


def _follows(before: Block, block: Block) -> bool:
    """Says whether the first name of a block continues the one before."""
    alike = (before.prefix, before.suffix) == (block.prefix, block.suffix) and bool(block.width)
    if not alike or block.first != before.first + before.count:
        return False
    if before.width == 1:
        return block.width == 1
    return max(len(str(block.first)), block.width) == before.width


def parse(text: str, most: int = MAX_NAMES) -> tuple[Block, ...]:
    """Gives the names that a node set stands for, as blocks in their one form, in order.

    Args:
        text: such as `coordinator`, `worker[1-3]` or `rack[1-2]n[01-04]`.
        most: how many names it may stand for.

    Raises:
        NodeSetError: the text is no node set, stands for too many names, or for one that no role can have.
    """
    if not _ALLOWED.match(text):
        raise NodeSetError(f"(got `{visible(text)}`, expected a name or a set such as worker[1-3])")
    parts = [_Part(part) for part in re.split(r",(?![^\[]*\])", text)]
    if _LONG.search(text) or sum(part.names for part in parts) > most:
        raise NodeSetError(f"(got `{visible(text)}`, expected at most {most} names)")
    if sum(part.blocks for part in parts) > MAX_BLOCKS:
        expected = f"at most {MAX_BLOCKS} ranges, in the last number of a name"
        raise NodeSetError(f"(got `{visible(text)}`, expected {expected})")
    blocks: list[Block] = []
    for block in itertools.chain.from_iterable(part.expanded(text) for part in parts):
        for name in (block.name(0), block.name(block.count - 1)):
            if not _NAME.match(name):
                expected = "lower-case letters, digits, - and _, beginning with a letter"
                raise NodeSetError(f"(got `{visible(name)}`, expected {expected})")
        join(blocks, block)
    return tuple(blocks)


class _Part:
    """What stands between two commas: pieces of names, and brackets with ranges between them."""

    def __init__(self, text: str) -> None:
        pieces = _BRACKETS.split(text)
        self._outer = [piece.strip("[]").split(",") if piece[:1] == "[" else piece for piece in pieces[:-2]]
        self._ranges = pieces[-2].strip("[]").split(",") if len(pieces) > 1 else []
        self._tail = pieces[-1]

    @property
    def _is_plain(self) -> bool:
        """Whether the last bracket is, whole, the number of each name."""
        before = self._outer[-1]
        return bool(before) and not (_DIGIT.match(before[-1]) or _DIGIT.search(self._tail))

    @property
    def names(self) -> int:
        """How many names it stands for at most."""
        product = sum(map(_size, self._ranges)) if self._ranges else 1
        for piece in self._outer:
            product *= sum(map(_size, piece)) if isinstance(piece, list) else 1
        return product

    @property
    def blocks(self) -> int:
        """How many blocks are made of it."""
        if not self._ranges or not self._is_plain:
            return self.names
        return self.names // sum(map(_size, self._ranges)) * len(self._ranges)

    def expanded(self, text: str) -> Iterator[Block]:
        """Yields its blocks in order; `text` is the whole set, for what is wrong."""
        ranges = [_range(each, text) for each in self._ranges]
        pieces = [
            [piece]
            if isinstance(piece, str)
            else [number for each in piece for number in _numbers(*_range(each, text))]
            for piece in self._outer
        ]
        for chosen in itertools.product(*pieces):
            prefix = "".join(chosen)
            if not ranges:
                yield single(self._tail)
            for first, width, count in ranges:
                if self._is_plain:
                    yield Block(prefix, self._tail, first, width, count)
                else:
                    yield from (single(prefix + n + self._tail) for n in _numbers(first, width, count))


def _size(item: str) -> int:
    low, _, high = item.partition("-")
    return max(int(high or low) - int(low) + 1, 1)


def _range(item: str, text: str) -> tuple[int, int, int]:
    """Gives the first number of a range, its width and how many there are."""
    low, _, high = item.partition("-")
    high = high or low
    is_padded = _width(low) > 1 or _width(high) > 1
    if int(low) > int(high) or (is_padded and len(low) != len(high)):
        raise NodeSetError(f"(got `{visible(text)}`, expected ranges such as [1-3])")
    return int(low), _width(low), int(high) - int(low) + 1


def _numbers(first: int, width: int, count: int) -> Iterator[str]:
    return (f"{number:0{width}d}" for number in range(first, first + count))


def fold(names: Iterable[str]) -> str:
    """Gives names as a person writes them: `coordinator,worker[1-3]`; a name's rest may follow the number.

    Only names that follow each other are folded, so that `expand` gives role names back in their order.
    """
    blocks: list[Block] = []
    for name in names:
        join(blocks, single(name))
    return ",".join(block.text for block in blocks)
