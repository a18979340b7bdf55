"""Assignment trees as PTX: names are words of buffers or registers, statements become instructions.

Knows the typed tree and places; knows no plan. What a thread has read or made stays in its registers as long
as it is known to be so: values are kept by *regions*, which are the threads that have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from orchestrator.build.ptx import THREAD, Code, constant
from orchestrator.plan.ownership import Part
from orchestrator.plan.places import Place, Step
from orchestrator.plan.tree import (
    Binary,
    Dot,
    Expression,
    Negate,
    Number,
    SquareRoot,
    Sum,
    Word,
    names,
)

_OPERATIONS = {"+": "add", "-": "sub", "*": "mul", "/": "div"}


@dataclass(frozen=True)
class Base:
    """Where an array of a program's lies for one thread.

    Attributes:
        buffer: the buffer that it is in.
        step: words from one thread's array to the next one's; 0 where they have one together.
        divisor: a word of `total`, by which every word that is read of the array is divided.
        moves: whether its address changes on the way.
    """

    buffer: str
    step: int = 0
    divisor: int | None = None
    moves: bool = False


@dataclass(frozen=True)
class At:
    """One word of a name: the `index`-th (a number, or a register that counts) from `first` by `stride`."""

    index: int | str
    first: int = 0
    stride: int = 1


def at(index: int | str, part: Part | None) -> At:
    """The word of the `index`-th coordinate of a part; of all coordinates, if it is None."""
    return At(index) if part is None else At(index, part.first, part.stride)


class Words:
    """The words of a program's names, as one thread comes by them.

    Args:
        code: what is put together.
        places: where names lie; a temporary without a place is a register's.
        bases: where the arrays of the places lie.
    """

    def __init__(self, code: Code, places: Mapping[str, Place], bases: Mapping[str, Base]) -> None:
        self._code = code
        self._places = places
        self._bases = bases
        self._kept: dict[int, dict[tuple[str, At], str]] = {}
        self._region = code.threads
        self._sums: dict[Expression, str] = {}

    def forget(self) -> None:
        """What was read may have changed."""
        self._kept.clear()

    @contextmanager
    def region(self, threads: int) -> Iterator[None]:
        """What is put within is done by the first so many threads alone."""
        before, self._region = self._region, threads
        with self._code.only(threads):
            yield
        self._region = before

    def address(self, array: str) -> str:
        """The register of an array's address."""
        base = self._bases[array]
        address = self._code.buffer(base.buffer)
        if not base.step:
            return address
        return self._code.scaled(THREAD, base.step, address, is_fixed=True)

    def here(self, step: Step) -> None:
        """A statement of which each thread of the region does its own word."""
        assignment = step.assignment
        where = at(THREAD, step.part) if assignment.size > 1 else At(0)
        self._reduce_all(assignment.value)
        register = self._value(assignment.value, where)
        self._keep(assignment.target, where, register)
        # of one word that several threads make for themselves the first one's is everyone's
        with self._code.only(1) if assignment.size == 1 < self._region else nullcontext():
            self._store(assignment.target, where, register)

    def all(self, step: Step) -> None:
        """A statement of which each thread does every word, one after the other."""
        assignment = step.assignment
        if step.is_partial:
            self._set(assignment.target, At(0), self._partial(assignment.value, step.part))
            return
        self._reduce_all(assignment.value)
        if step.count == 1:
            where = at(0, step.part) if assignment.size > 1 else At(0)
            self._set(assignment.target, where, self._value(assignment.value, where))
            return
        self._read_single(assignment.value)
        with self._code.loop(0, step.count) as index, self._inside():
            where = at(index, step.part)
            self._set(assignment.target, where, self._value(assignment.value, where))
        self._drop(assignment.target)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Within a loop: what was known before is known, what is learned is not known afterwards."""
        before = {region: dict(kept) for region, kept in self._kept.items()}
        yield
        self._kept = before

    def _drop(self, name: str) -> None:
        for kept in self._kept.values():
            for key in [key for key in kept if key[0] == name]:
                del kept[key]

    def _set(self, name: str, where: At, register: str) -> None:
        self._keep(name, where, register)
        self._store(name, where, register)

    def _keep(self, name: str, where: At, register: str) -> None:
        self._drop(name)
        self._kept.setdefault(self._region, {})[name, where] = register

    def _store(self, name: str, where: At, register: str) -> None:
        if name in self._places:
            self._code.put(f"st.global.{self._code.type}", self._operand(self._places[name], where), register)

    def _read(self, name: str, where: At) -> str:
        place = self._places.get(name)
        if place and not place.array:
            return constant(place.constant, self._code.word)
        for region in (self._region, self._code.threads):
            if (name, where) in self._kept.get(region, {}):
                return self._kept[region][name, where]
        register = self._load(self._places[name], where)
        self._kept.setdefault(self._region, {})[name, where] = register
        return register

    def _load(self, place: Place, where: At) -> str:
        code, base = self._code, self._bases[place.array]
        register = code.made("f", f"ld.global.{code.type}", self._operand(place, where))
        if base.divisor is None:
            return register
        total = code.once("a", "add.u64", code.buffer("total"), base.divisor * code.word.size)
        divisor = code.once("f", f"ld.global.{code.type}", f"[{total}]")
        return code.made("f", f"div.rn.{code.type}", register, divisor)

    def _operand(self, place: Place, where: At) -> str:
        """A word's address, as an instruction takes it."""
        code, address = self._code, self.address(place.array)
        first, stride = (0, 1) if place.is_compact else (where.first, where.stride)
        if isinstance(where.index, int):
            return code.at(address, place.first + first + stride * where.index)
        is_fixed = where.index == THREAD and not self._bases[place.array].moves
        return code.at(code.scaled(where.index, stride, address, is_fixed=is_fixed), place.first + first)

    def _value(self, node: Expression, where: At) -> str:
        """The operand that an expression comes to."""
        kind = self._code.type
        match node:
            case Number(value):
                return constant(value, self._code.word)
            case Word(name, index):
                return self._read(name, where if index is None else At(index))
            case Negate(operand):
                return self._code.made("f", f"neg.{kind}", self._value(operand, where))
            case SquareRoot(operand):
                return self._code.made("f", f"sqrt.rn.{kind}", self._value(operand, where))
            case Binary(operator, left, right):
                operands = self._value(left, where), self._value(right, where)
                return self._code.made("f", f"{_OPERATIONS[operator]}.rn.{kind}", *operands)
            case Dot() | Sum():
                return self._sums[node]

    def _read_single(self, node: Expression) -> None:
        """Reads the words that a loop over a statement does not step through, before it begins."""
        match node:
            case Word(name, int(index)):
                self._read(name, At(index))
            case Negate(operand) | SquareRoot(operand):
                self._read_single(operand)
            case Binary(_, left, right):
                self._read_single(left)
                self._read_single(right)
            case _:
                pass

    def _reduce_all(self, node: Expression) -> None:
        """Makes the sums of an expression; they are the same for each of its words."""
        self._sums = {}
        for each in _reductions(node):
            if each not in self._sums:
                self._sums[each] = self._reduce(names(each), each.size, None)

    def _partial(self, value: Expression, part: Part | None) -> str:
        if not isinstance(value, Dot | Sum) or part is None:
            raise TypeError(f"no sum over coordinates (got {value!r})")
        if part.count == 0:
            return self._code.made("f", f"mov.{self._code.type}", constant(0.0, self._code.word))
        return self._reduce(names(value), part.count, part)

    def _reduce(self, of: tuple[str, ...], count: int, part: Part | None) -> str:
        """A sum from its first term on."""
        code = self._code
        total = self._term(of, at(0, part))
        if not of[1:]:  # the register of a word that was read keeps it
            total = code.made("f", f"mov.{code.type}", total)
        if count > 1:
            with code.loop(1, count) as index, self._inside():
                code.put(f"add.rn.{code.type}", total, total, self._term(of, at(index, part)))
        return total

    def _term(self, of: tuple[str, ...], where: At) -> str:
        factors = [self._read(name, where) for name in of]
        return self._code.made("f", f"mul.rn.{self._code.type}", *factors) if factors[1:] else factors[0]


def _reductions(node: Expression) -> Iterator[Dot | Sum]:
    match node:
        case Dot() | Sum():
            yield node
        case Negate(operand) | SquareRoot(operand):
            yield from _reductions(operand)
        case Binary(_, left, right):
            yield from _reductions(left)
            yield from _reductions(right)
        case _:
            pass
