"""Assignment trees as C statements.

Knows the typed tree and C's expressions; knows no plan and no file. Every operation becomes one C operation
on words with explicit parentheses, constants become hexadecimal floats, and a reduction becomes a loop of
its own, so that the compiler (contraction off, no fast-math) has one order to keep.

A program runs whole, or over a *part*: then a statement that is not every role's own runs over the part's
coordinates alone, and `j` counts them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from orchestrator.plan.places import Place, Program, Step
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

# Locals above this many words lie in static memory: a role's stack is not sized by its plan.
STACK_WORDS = 16


def word(place: Place, index: str) -> str:
    """The C expression of one word; `index` is a decimal number or an expression of a loop variable."""
    if not place.array:
        return constant(place.constant)
    if index.isdigit():
        return f"{place.array}[{place.first + int(index)}]"
    return f"{place.array}[{place.first} + {index}]" if place.first else f"{place.array}[{index}]"


def constant(value: float) -> str:
    """A word, exactly, as a C constant; parenthesised where it has a sign.

    Raises:
        ValueError: it is not finite.
    """
    if not math.isfinite(value):
        raise ValueError(f"a constant must be finite (got {value!r})")
    return f"((word){value.hex()})" if math.copysign(1.0, value) < 0 else f"(word){value.hex()}"


def statements(program: Program) -> tuple[str, ...]:
    """The program as C lines, in order. Targets without a place become local arrays."""
    known = dict(program.places)
    lines: list[str] = []
    for number, step in enumerate(program.steps):
        assignment, size = step.assignment, step.count
        if assignment.target not in known:
            known[assignment.target] = Place(
                f"local_{assignment.target}", 0, is_compact=step.part is not None
            )
            storage = "static " if size > STACK_WORDS else ""
            if size:  # a system may compute what it then does not use
                lines.append(f"__attribute__((unused)) {storage}word local_{assignment.target}[{size}];")
        if size:
            lines.extend(_Statement(known, f"r{number}", step).lines())
    return tuple(lines)


class _Statement:
    """One step on its way to C: collects the loops of its reductions.

    Args:
        places: where names lie.
        prefix: of the variables of its reductions.
        step: what is assigned, and for which coordinates.
    """

    def __init__(self, places: Mapping[str, Place], prefix: str, step: Step) -> None:
        self._places = places
        self._prefix = prefix
        self._assignment = step.assignment
        self._part = step.part
        self._is_partial = step.is_partial
        self._reductions = 0
        self._before: list[str] = []

    def lines(self) -> list[str]:
        assignment = self._assignment
        if self._is_partial and isinstance(assignment.value, Dot | Sum):
            return self._partial(assignment.target, assignment.value)
        value = self._expression(assignment.value)
        target = self._word(assignment.target, None if assignment.size > 1 else 0)
        if assignment.size == 1:
            return ["{", *self._before, f"{target} = {value};", "}"]
        if self._part is None:
            loop = f"for (uint32_t i = 0; i < {assignment.size}u; i++) {{"
        else:
            loop = f"for (uint32_t j = 0; j < {self._part.count}u; j++) {{"
        return [loop, *self._before, f"{target} = {value};", "}"]

    def _partial(self, target: str, value: Dot | Sum) -> list[str]:
        """The sum over the part, from its first term on; of no coordinates +0.0."""
        place = word(self._places[target], "0")
        if self._part is None or self._part.count == 0:
            return [f"{place} = 0;"]
        term = " * ".join(self._word(name, None if value.size > 1 else 0) for name in names(value))
        variable = f"{self._prefix}_0"
        return [
            "{",
            f"word {variable} = 0;",
            f"for (uint32_t j = 0; j < {self._part.count}u; j++)",
            f"{variable} = j == 0 ? {term} : {variable} + ({term});",
            f"{place} = {variable};",
            "}",
        ]

    def _word(self, name: str, index: int | None) -> str:
        """One word; of an own name, the one that the loop is at: a check has found that it reads no other."""
        place = self._places[name]
        if self._part is None:
            return word(place, "i" if index is None else str(index))
        if index is not None:
            return word(place, str(index))
        if place.is_compact:
            return word(place, "j")
        stride = "j" if self._part.stride == 1 else f"{self._part.stride} * j"
        return word(Place(place.array, place.first + self._part.first), stride)

    def _expression(self, node: Expression) -> str:  # noqa: PLR0911 - one line per kind of node
        match node:
            case Number(value):
                return constant(value)
            case Word(name, index):
                return self._word(name, index)
            case Negate(operand):
                return f"(-{self._expression(operand)})"
            case SquareRoot(operand):
                # of a narrower word the root is taken in binary64 and rounded once, which is exact
                return f"(word)__builtin_sqrt({self._expression(operand)})"
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
            return " * ".join(word(self._places[name], index) for name in names)

        self._before.append(f"word {variable} = {term('0')};")
        if size > 1:
            loop = f"for (uint32_t k = 1; k < {size}u; k++)"
            self._before.append(f"{loop} {variable} = {variable} + ({term('k')});")
        return variable
