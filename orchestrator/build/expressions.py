"""Assignment trees as C statements.

Knows the typed tree and C's expressions; knows no plan and no file. Every operation becomes one C operation
on doubles with explicit parentheses, constants become hexadecimal floats, and a reduction becomes a loop of
its own, so that the compiler (contraction off, no fast-math) has one order to keep.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.plan.tree import Assignment, Binary, Dot, Expression, Negate, Number, SquareRoot, Sum, Word

# Locals above this many words lie in static memory: a role's stack is not sized by its plan.
STACK_WORDS = 16


@dataclass(frozen=True)
class Place:
    """Where a name's words lie: `array[first]` and on; or one constant, if `array` is empty."""

    array: str
    first: int
    constant: float = 0.0

    def word(self, index: str) -> str:
        """The C expression of one word; `index` is a decimal number or the name of a loop variable."""
        if not self.array:
            return constant(self.constant)
        if index.isdigit():
            return f"{self.array}[{self.first + int(index)}]"
        return f"{self.array}[{self.first} + {index}]" if self.first else f"{self.array}[{index}]"


def constant(value: float) -> str:
    """A binary64 constant, exactly; parenthesised where it has a sign.

    Raises:
        ValueError: it is not finite.
    """
    if not math.isfinite(value):
        raise ValueError(f"a constant must be finite (got {value!r})")
    return f"({value.hex()})" if math.copysign(1.0, value) < 0 else value.hex()


def statements(program: Iterable[Assignment], places: Mapping[str, Place]) -> tuple[str, ...]:
    """The program as C lines, in order. Targets without a place become local arrays."""
    known = dict(places)
    lines: list[str] = []
    for number, assignment in enumerate(program):
        if assignment.target not in known:
            known[assignment.target] = Place(f"local_{assignment.target}", 0)
            storage = "static " if assignment.size > STACK_WORDS else ""
            # a system may compute what it then does not use
            lines.append(
                f"__attribute__((unused)) {storage}double local_{assignment.target}[{assignment.size}];"
            )
        lines.extend(_Statement(known, f"r{number}").lines(assignment))
    return tuple(lines)


class _Statement:
    """One assignment on its way to C: collects the loops of its reductions."""

    def __init__(self, places: Mapping[str, Place], prefix: str) -> None:
        self._places = places
        self._prefix = prefix
        self._reductions = 0
        self._before: list[str] = []

    def lines(self, assignment: Assignment) -> list[str]:
        value = self._expression(assignment.value)
        target = self._places[assignment.target]
        if assignment.size == 1:
            return ["{", *self._before, f"{target.word('0')} = {value};", "}"]
        loop = f"for (uint32_t i = 0; i < {assignment.size}u; i++) {{"
        return [loop, *self._before, f"{target.word('i')} = {value};", "}"]

    def _expression(self, node: Expression) -> str:  # noqa: PLR0911 - one line per kind of node
        match node:
            case Number(value):
                return constant(value)
            case Word(name, index):
                return self._places[name].word("i" if index is None else str(index))
            case Negate(operand):
                return f"(-{self._expression(operand)})"
            case SquareRoot(operand):
                return f"__builtin_sqrt({self._expression(operand)})"
            case Binary(operator, left, right):
                return f"({self._expression(left)} {operator} {self._expression(right)})"
            case Dot(left_name, right_name, size):
                return self._reduce(size, (left_name, right_name))
            case Sum(name, size):
                return self._reduce(size, (name,))

    def _reduce(self, size: int, names: tuple[str, ...]) -> str:
        """The name of a variable that a loop before the statement sets, from the first term on."""
        variable = f"{self._prefix}_{self._reductions}"
        self._reductions += 1

        def term(index: str) -> str:
            return " * ".join(self._places[name].word(index) for name in names)

        self._before.append(f"double {variable} = {term('0')};")
        if size > 1:
            loop = f"for (uint32_t k = 1; k < {size}u; k++)"
            self._before.append(f"{loop} {variable} = {variable} + ({term('k')});")
        return variable
