"""Runs a system's typed statements in Python binary64, in the declared order.

Python's float is IEEE 754 binary64 and each of its operators rounds once, so the bits equal a correct
realization's. Sums are written as loops: the built-in `sum` compensates from Python 3.12 on. Where Python
raises (division by zero, square root of a negative) the IEEE result is given instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from orchestrator.plan import tree

Value = Callable[[int], float]
Step = Callable[[], None]
Store = dict[str, list[float]]


def compile_statements(statements: Iterable[tree.Assignment], store: Store) -> tuple[Step, ...]:
    """One callable per statement, reading and writing the lists of `store` in place.

    Args:
        statements: the program, in order.
        store: name -> words; locals that the statements assign are added to it.
    """
    steps = []
    for statement in statements:
        store.setdefault(statement.target, [0.0] * statement.size)
        steps.append(_step(store[statement.target], statement.size, _value(statement.value, store)))
    return tuple(steps)


def _step(target: list[float], size: int, value: Value) -> Step:
    def run() -> None:
        for i in range(size):
            target[i] = value(i)

    return run


def _value(  # noqa: PLR0911  # one line for each kind of node
    node: tree.Expression, store: Mapping[str, list[float]]
) -> Value:
    match node:
        case tree.Number(number):
            return lambda _i: number
        case tree.Word(name, None):
            return store[name].__getitem__
        case tree.Word(name, int(index)):
            words = store[name]
            return lambda _i: words[index]
        case tree.Negate(operand):
            inner = _value(operand, store)
            return lambda i: -inner(i)
        case tree.SquareRoot(operand):
            inner = _value(operand, store)
            return lambda i: _square_root(inner(i))
        case tree.Binary(operator, left, right):
            return _binary(operator, _value(left, store), _value(right, store))
        case tree.Dot(left_name, right_name, size):
            return _dot(store[left_name], store[right_name], size)
        case tree.Sum(name, size):
            return _sum(store[name], size)
    raise AssertionError(node)


def _binary(operator: tree.Operator, left: Value, right: Value) -> Value:
    match operator:
        case "+":
            return lambda i: left(i) + right(i)
        case "-":
            return lambda i: left(i) - right(i)
        case "*":
            return lambda i: left(i) * right(i)
        case "/":
            return lambda i: divide(left(i), right(i))


def _dot(left: list[float], right: list[float], size: int) -> Value:
    def value(_i: int) -> float:
        total = left[0] * right[0]
        for j in range(1, size):
            total = total + left[j] * right[j]
        return total

    return value


def _sum(words: list[float], size: int) -> Value:
    def value(_i: int) -> float:
        total = words[0]
        for j in range(1, size):
            total = total + words[j]
        return total

    return value


def divide(left: float, right: float) -> float:
    """IEEE 754 division, zero divisors included."""
    if right != 0.0:
        return left / right
    if left == 0.0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _square_root(value: float) -> float:
    return math.sqrt(value) if value >= 0.0 or math.isnan(value) else math.nan
