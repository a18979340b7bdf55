"""IEEE 754 binary64 by exact rationals, each operation rounded once: shares nothing with the oracle.

A value is a float, used only as a sign and an exact rational (or an infinity, or no number). Rounding is
Python's division of two integers, which is correctly rounded, ties to even.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction

from orchestrator.plan.tree import Assignment, Binary, Dot, Expression, Negate, Number, SquareRoot, Sum, Word


def bits(value: float) -> str:
    """A value's bits; every NaN is one, since its payload is nobody's to promise."""
    return "nan" if math.isnan(value) else struct.pack(">d", value).hex()


def negative(value: float) -> bool:
    return math.copysign(1.0, value) < 0


def rounded(value: Fraction, *, zero_sign: bool) -> float:
    """The nearest binary64; `zero_sign` is the sign if the result is zero."""
    try:
        nearest = abs(value).numerator / value.denominator
    except OverflowError:
        nearest = math.inf
    return math.copysign(nearest, -1.0 if (zero_sign if value == 0 else value < 0) else 1.0)


def add(left: float, right: float) -> float:
    if math.isnan(left) or math.isnan(right):
        return math.nan
    if math.isinf(left) or math.isinf(right):
        if math.isinf(left) and math.isinf(right) and left != right:
            return math.nan
        return left if math.isinf(left) else right
    both_negative = negative(left) and negative(right)
    return rounded(Fraction(left) + Fraction(right), zero_sign=both_negative and left == 0 == right)


def multiply(left: float, right: float) -> float:
    sign = negative(left) != negative(right)
    if math.isnan(left) or math.isnan(right):
        return math.nan
    if math.isinf(left) or math.isinf(right):
        return math.nan if 0 in (left, right) else math.copysign(math.inf, -1.0 if sign else 1.0)
    return rounded(Fraction(left) * Fraction(right), zero_sign=sign)


def divide(left: float, right: float) -> float:
    sign = negative(left) != negative(right)
    if math.isnan(left) or math.isnan(right) or (math.isinf(left) and math.isinf(right)):
        return math.nan
    if math.isinf(left) or (right == 0 != left):
        return math.copysign(math.inf, -1.0 if sign else 1.0)
    if right == 0:
        return math.nan
    if math.isinf(right):
        return -0.0 if sign else 0.0
    return rounded(Fraction(left) / Fraction(right), zero_sign=sign)


def square_root(value: float) -> float:
    if math.isnan(value) or value < 0:
        return math.nan
    if value == 0 or math.isinf(value):
        return value
    # the integer root of the value times 4^k has far more digits than 53; a last one says whether it is exact
    exact = Fraction(value) * 4**1200
    root = math.isqrt(exact.numerator // exact.denominator)
    more = root * root != exact
    return rounded(Fraction(2 * root + more, 2**1201), zero_sign=False)


def evaluate(node: Expression, store: dict[str, list[float]], i: int) -> float:  # noqa: PLR0911  # one line a kind
    match node:
        case Number(value):
            return value
        case Word(name, index):
            return store[name][i if index is None else index]
        case Negate(operand):
            return -evaluate(operand, store, i)
        case SquareRoot(operand):
            return square_root(evaluate(operand, store, i))
        case Dot(left, right, _):
            return total([multiply(a, b) for a, b in zip(store[left], store[right], strict=True)])
        case Sum(name, _):
            return total(store[name])
        case Binary(operator, left, right):
            first, second = evaluate(left, store, i), evaluate(right, store, i)
            if operator == "-":
                return add(first, -second)
            return {"+": add, "*": multiply, "/": divide}[operator](first, second)


def total(words: list[float]) -> float:
    first, *others = words
    for word in others:
        first = add(first, word)
    return first


def run(statements: tuple[Assignment, ...], store: dict[str, list[float]]) -> None:
    for statement in statements:
        words = store.setdefault(statement.target, [0.0] * statement.size)
        for i in range(statement.size):
            words[i] = evaluate(statement.value, store, i)
