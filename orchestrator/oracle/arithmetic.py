"""Runs a system's typed statements in Python, word by word, in the declared order.

A word is one value, or a *column*: its value in each of many samples. Samples never meet in a statement, so
an operation may run down whole columns before the next one begins: within every sample the order stays the
declared one. Python's float is IEEE 754 binary64 and each of its operators rounds once, so the bits equal a
correct realization's; narrower words are rounded after every operation, which is exact
(`orchestrator.plan.words` says why). Sums are reductions from the left: the built-in `sum` compensates from
Python 3.12 on. Where Python raises (division by zero, square root of a negative) the IEEE result is given
instead.
"""

from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Generic, TypeVar

from orchestrator.plan import tree
from orchestrator.plan.words import BINARY64, WordType

Word = TypeVar("Word")
Column = list[float]
Store = dict[str, list[Word]]
Step = Callable[[], None]
Value = Callable[[int], Word]


@dataclass(frozen=True)
class Words(Generic[Word]):
    """What a word is.

    Attributes:
        constant: the word that a number is.
        each: an operation on values -> the same operation on words. It gives a new word and changes none.
    """

    constant: Callable[[float], Word]
    each: Callable[[Callable[..., float]], Callable[..., Word]]


SINGLE: Words[float] = Words(lambda number: number, lambda operation: operation)


def single(word: WordType) -> Words[float]:
    """Words of one value each."""
    if word is BINARY64:
        return SINGLE
    return Words(lambda number: number, lambda operation: lambda *words: word.rounded(operation(*words)))


def columns(samples: int, word: WordType = BINARY64) -> Words[Column]:
    """Words of this many samples."""

    def each(operation: Callable[..., float]) -> Callable[..., Column]:
        if word is BINARY64:
            return lambda *words: list(map(operation, *words))
        return lambda *words: array(word.typecode, map(operation, *words)).tolist()

    return Words(lambda number: [number] * samples, each)


def compile_statements(
    statements: Iterable[tree.Assignment], store: Store[Word], words: Words[Word]
) -> tuple[Step, ...]:
    """One callable per statement, reading and writing the lists of `store` in place.

    Args:
        statements: the program, in order.
        store: name -> words; locals that the statements assign are added to it.
        words: what those are.
    """
    steps = []
    for statement in statements:
        target = store.setdefault(statement.target, [words.constant(0.0)] * statement.size)
        steps.append(_step(target, statement.size, _value(statement.value, store, words)))
    return tuple(steps)


def _step(target: list[Word], size: int, value: Value[Word]) -> Step:
    def run() -> None:
        for i in range(size):
            target[i] = value(i)

    return run


def _value(  # noqa: PLR0911  # one line for each kind of node
    node: tree.Expression, store: Mapping[str, list[Word]], words: Words[Word]
) -> Value[Word]:
    match node:
        case tree.Number(number):
            constant = words.constant(number)
            return lambda _i: constant
        case tree.Word(name, None):
            return store[name].__getitem__
        case tree.Word(name, int(index)):
            field = store[name]
            return lambda _i: field[index]
        case tree.Negate(operand):
            return _unary(words.each(operator.neg), _value(operand, store, words))
        case tree.SquareRoot(operand):
            return _unary(words.each(_square_root), _value(operand, store, words))
        case tree.Binary(sign, left, right):
            operation = words.each(_OPERATIONS[sign])
            return _binary(operation, _value(left, store, words), _value(right, store, words))
        case tree.Dot(left_name, right_name, _):
            return _dot(words, store[left_name], store[right_name])
        case tree.Sum(name, _):
            return _sum(words, store[name])
    raise AssertionError(node)


def _unary(operation: Callable[..., Word], inner: Value[Word]) -> Value[Word]:
    return lambda i: operation(inner(i))


def _binary(operation: Callable[..., Word], left: Value[Word], right: Value[Word]) -> Value[Word]:
    return lambda i: operation(left(i), right(i))


def _dot(words: Words[Word], left: list[Word], right: list[Word]) -> Value[Word]:
    add, multiply = words.each(operator.add), words.each(operator.mul)
    return lambda _i: reduce(add, map(multiply, left, right))


def _sum(words: Words[Word], field: list[Word]) -> Value[Word]:
    add = words.each(operator.add)
    return lambda _i: reduce(add, field)


def divide(left: float, right: float) -> float:
    """IEEE 754 division, zero divisors included."""
    if right != 0.0:
        return left / right
    if left == 0.0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _square_root(value: float) -> float:
    return math.sqrt(value) if value >= 0.0 or math.isnan(value) else math.nan


_OPERATIONS: Mapping[tree.Operator, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divide,
}
