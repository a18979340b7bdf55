"""The typed tree of a system's arithmetic.

Knows shapes and the order of operations; knows no text, no C and no machine. Every operation is one IEEE 754
binary64 operation, correctly rounded, evaluated exactly in the order that the tree gives:

* `a + b + c` is `(a + b) + c`; `-a` flips the sign bit;
* `dot(a, b)` is `((a[0]*b[0]) + a[1]*b[1]) + ...`: it starts with the first product, not with zero;
* `sum(a)` is `((a[0]) + a[1]) + ...`;
* a statement `t[i] = expr` runs for i = 0, 1, ... and finishes before the next statement begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Operator = Literal["+", "-", "*", "/"]


@dataclass(frozen=True)
class Number:
    """A constant, already rounded to binary64."""

    value: float


@dataclass(frozen=True)
class Word:
    """One word of a field or local: `name[i]` (index None), or `name[3]` (a constant index, from 0)."""

    name: str
    index: int | None


@dataclass(frozen=True)
class Negate:
    """The sign bit flipped."""

    operand: Expression


@dataclass(frozen=True)
class SquareRoot:
    """The correctly rounded square root."""

    operand: Expression


@dataclass(frozen=True)
class Binary:
    """One arithmetic operation on two operands; the left one is evaluated first."""

    operator: Operator
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Dot:
    """Left-to-right inner product of two whole fields of the same size."""

    left: str
    right: str
    size: int


@dataclass(frozen=True)
class Sum:
    """Left-to-right sum of a whole field."""

    name: str
    size: int


Expression = Number | Word | Negate | SquareRoot | Binary | Dot | Sum


@dataclass(frozen=True)
class Assignment:
    """`target[i] = value` for i in [0, size); a scalar has size 1, and every name in it a constant index.

    Attributes:
        target: the name written.
        size: words written.
        value: the right side, evaluated once for every i.
        local: whether the target is a temporary of this program, held by no state and sent to no one.
    """

    target: str
    size: int
    value: Expression
    local: bool


def names(node: Expression) -> tuple[str, ...]:
    """Every name that an expression reads, from left to right."""
    match node:
        case Word(name, _) | Sum(name, _):
            return (name,)
        case Dot(left_name, right_name, _):
            return (left_name, right_name)
        case Binary(_, left, right):
            return names(left) + names(right)
        case Negate(operand) | SquareRoot(operand):
            return names(operand)
        case Number():
            return ()


def as_json(node: Expression | Assignment) -> list[object]:  # noqa: PLR0911  # one line for each kind of node
    """The tree as nested arrays for identities; constants as the hexadecimal of their binary64."""
    match node:
        case Assignment(target, size, value, local):
            return ["set", target, size, local, as_json(value)]
        case Number(value):
            return ["number", value.hex()]
        case Word(name, index):
            return ["word", name, index]
        case Negate(operand):
            return ["negate", as_json(operand)]
        case SquareRoot(operand):
            return ["sqrt", as_json(operand)]
        case Binary(operator, left, right):
            return [operator, as_json(left), as_json(right)]
        case Dot(left_name, right_name, size):
            return ["dot", left_name, right_name, size]
        case Sum(name, size):
            return ["sum", name, size]
