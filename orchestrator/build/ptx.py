"""PTX: registers, instructions, loops, and the text of entries and modules.

Knows the language and what every entry of ours is called with; knows no plan and no expression. Every
operation on words is rounded to nearest by itself (`.rn`, never `.ftz`, no approximation, nothing fused), so
that no assembler has a choice of bits.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from orchestrator.plan.words import BINARY64, WordType

BLOCK = 128
"""Threads of a block, in x alone."""

BUFFERS: Mapping[str, str] = {
    "state": "A",
    "samples": "B",
    "parameters": "C",
    "work": "D",
    "sums": "E",
    "total": "F",
}
"""What every entry is given the addresses of, in this order -> the parameter's name."""

# The first language that knows an architecture. A card runs what is made for an older one than its own.
_VERSIONS = {
    (7, 5): "6.3",
    (8, 0): "7.0",
    (8, 6): "7.1",
    (8, 7): "7.8",
    (8, 9): "7.8",
    (9, 0): "7.8",
    (10, 0): "8.6",
    (12, 0): "8.7",
    (12, 1): "8.8",
}
LEAST_CAPABILITY = "7.5"

OPERATIONS = frozenset(
    (
        *("mov.u32", "mad.lo.u32", "add.u32", "setp.ge.u32", "setp.lt.u32", "mad.wide.u32", "add.u64"),
        *("bra", "ret", "ld.param.u64", "ld.global.f", "st.global.f", "mov.f", "neg.f", "sqrt.rn.f"),
        *("add.rn.f", "sub.rn.f", "mul.rn.f", "div.rn.f"),
    )
)
"""All instructions that kernels are made of; those on words end in `.f64` or `.f32`."""

Kind = Literal["p", "r", "a", "f"]
"""Registers: predicates, 32-bit counts, addresses, words."""

THREAD = "r0"
"""The register of a thread's number."""

# past these an assembler takes a part of the number, and says nothing
_LARGEST_OFFSET = 2**31 - 1
_LARGEST_FACTOR = 2**32 - 1


def constant(value: float, word: WordType) -> str:
    """A word as an operand, exactly."""
    if word is BINARY64:
        return f"0d{struct.pack('>d', value).hex().upper()}"
    return f"0f{struct.pack('>f', value).hex().upper()}"


def is_supported(capability: str) -> bool:
    """Whether kernels are made for a compute capability such as "8.6"."""
    return _numbers(capability) >= _numbers(LEAST_CAPABILITY)


def architecture(capability: str) -> str:
    """The target that kernels for a card of this compute capability name, such as `sm_86`.

    Raises:
        ValueError: the card is older than any that kernels are made for.
    """
    major, minor = _newest(capability)
    return f"sm_{major}{minor}"


def module(capability: str, entries: Iterable[str]) -> str:
    """The text of a module for a card of this compute capability.

    Raises:
        ValueError: as `architecture`.
    """
    head = f".version {_VERSIONS[_newest(capability)]}\n.target {architecture(capability)}\n"
    return "".join((head, ".address_size 64\n", *entries))


def _numbers(capability: str) -> tuple[int, int]:
    major, _, minor = capability.partition(".")
    return int(major), int(minor)


def _newest(capability: str) -> tuple[int, int]:
    known = [each for each in _VERSIONS if each <= _numbers(capability)]
    if not known:
        raise ValueError(f"no kernels are made (got {capability}, expected {LEAST_CAPABILITY} or later)")
    return max(known)


class Code:
    """One entry on its way to text.

    Args:
        word: what words are.
        threads: how many threads there are; those of the last block beyond them do nothing.
    """

    def __init__(self, word: WordType, threads: int) -> None:
        self.word = word
        self.threads = threads
        self.type = f"f{8 * word.size}"
        self._used: dict[Kind, int] = {"p": 1, "r": 2, "a": 0, "f": 0}
        self._labels = 0
        self._once: dict[tuple[object, ...], str] = {}
        self._head: list[str] = []
        self._body: list[str] = []

    def put(self, operation: str, *operands: object) -> None:
        """One instruction."""
        self._body.append(_line(operation, operands))

    def made(self, kind: Kind, operation: str, *operands: object) -> str:
        """The register that one instruction makes."""
        register = self._register(kind)
        self.put(operation, register, *operands)
        return register

    def once(self, kind: Kind, operation: str, *operands: object) -> str:
        """The same, but made before all else and only once; so may be what changes in no thread."""
        key = (operation, *operands)
        if key not in self._once:
            self._once[key] = self._register(kind)
            self._head.append(_line(operation, (self._once[key], *operands)))
        return self._once[key]

    def buffer(self, name: str) -> str:
        """The address of one of `BUFFERS`."""
        return self.once("a", "ld.param.u64", f"[{BUFFERS[name]}]")

    def scaled(self, index: str, words: int, address: str, *, is_fixed: bool) -> str:
        """The address of the `index`-th run of so many words; made once if neither ever changes."""
        make, left = self.once if is_fixed else self.made, words * self.word.size
        while left > _LARGEST_FACTOR:
            address = make("a", "mad.wide.u32", index, _LARGEST_FACTOR, address)
            left -= _LARGEST_FACTOR
        return make("a", "mad.wide.u32", index, left, address)

    def at(self, address: str, words: int) -> str:
        """The operand for so many words after an address."""
        offset = words * self.word.size
        if offset > _LARGEST_OFFSET:
            return f"[{self.made('a', 'add.u64', address, offset)}]"
        return f"[{address}+{offset}]" if offset else f"[{address}]"

    def advance(self, address: str, words: int) -> None:
        """Moves an address on."""
        self.put("add.u64", address, address, words * self.word.size)

    @contextmanager
    def loop(self, first: int, end: int) -> Iterator[str]:
        """What is put within runs for every count from `first` to `end` - 1; gives the count's register."""
        index = self.made("r", "mov.u32", first)
        label = self._label()
        self._body.append(f"{label}:")
        yield index
        self.put("add.u32", index, index, 1)
        self.put(f"@{self.made('p', 'setp.lt.u32', index, end)} bra", label)

    @contextmanager
    def only(self, threads: int) -> Iterator[None]:
        """What is put within is done by the first so many threads."""
        if threads >= self.threads:
            yield
            return
        label = self._label()
        self.put(f"@{self.made('p', 'setp.ge.u32', THREAD, threads)} bra", label)
        yield
        self._body.append(f"{label}:")

    def entry(self, name: str) -> str:
        """The text of the entry."""
        parameters = ",".join(f".param .u64 {each}" for each in BUFFERS.values())
        types = {"p": "pred", "r": "b32", "a": "b64", "f": self.type}
        lines = (
            f".visible .entry {name}({parameters})",
            "{",
            *(f".reg .{types[kind]} {kind}<{count}>;" for kind, count in self._used.items() if count),
            f"mov.u32 {THREAD},%ctaid.x;",
            "mov.u32 r1,%tid.x;",
            f"mad.lo.u32 {THREAD},{THREAD},{BLOCK},r1;",
            f"setp.ge.u32 p0,{THREAD},{self.threads};",
            "@p0 ret;",
            *self._head,
            *self._body,
            "ret;",
            "}",
        )
        return "".join(f"{line}\n" for line in lines)

    def _register(self, kind: Kind) -> str:
        self._used[kind] += 1
        return f"{kind}{self._used[kind] - 1}"

    def _label(self) -> str:
        self._labels += 1
        return f"L{self._labels}"


def _line(operation: str, operands: Iterable[object]) -> str:
    return f"{operation} {','.join(map(str, operands))};"
