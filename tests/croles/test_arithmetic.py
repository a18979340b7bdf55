"""Random expressions: the compiled program and Python's own floats agree to the last bit, on both targets."""

from __future__ import annotations

import hashlib
import math
import operator
import random
from dataclasses import replace

import pytest
import role_plans
from role_bench import ARM, X86, Setup

from orchestrator.plan.model import Field
from orchestrator.plan.tree import (
    Assignment,
    Binary,
    Dot,
    Expression,
    Negate,
    Number,
    SquareRoot,
    Sum,
    Word,
)

SIZE = 4
FIELDS = ("a", "b", "c")


def expression(chance: random.Random, depth: int, *, indexed: bool) -> Expression:
    """Any tree; square roots are of squares, so that a word stays finite most of the time."""
    if depth == 0 or chance.random() < 0.15:
        constant = chance.choice((0.1, -0.3, 1e-3, 7.0, -0.0, 5e-324, 1.0 / 3))
        one, other = chance.choice(FIELDS), chance.choice(FIELDS)
        word = Word(one, None if indexed else chance.randrange(SIZE))
        return chance.choice((Number(constant), Dot(one, other, SIZE), Sum(one, SIZE), word))
    left = expression(chance, depth - 1, indexed=indexed)
    right = expression(chance, depth - 1, indexed=indexed)
    operations = (Binary(sign, left, right) for sign in "++--**//")
    return chance.choice((Negate(left), SquareRoot(Binary("*", left, left)), *operations))


ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def value(node: Expression, words: dict[str, list[float]], at: int) -> float:
    match node:
        case Number(constant):
            result = constant
        case Word(name, index):
            result = words[name][at if index is None else index]
        case Negate(operand):
            result = -value(operand, words, at)
        case SquareRoot(operand):
            result = math.sqrt(value(operand, words, at))
        case Binary(sign, left, right):
            result = ARITHMETIC[sign](value(left, words, at), value(right, words, at))
        case Dot(left, right, size):
            result = in_order([words[left][i] * words[right][i] for i in range(size)])
        case Sum(name, size):
            result = in_order(words[name][:size])
    return result


def in_order(terms: list[float]) -> float:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def programs(count: int) -> tuple[tuple[Assignment, ...], dict[str, list[float]]]:
    """Statements that stay finite, and the words after them."""
    chance = random.Random(20)
    words = {name: [chance.uniform(-2, 2) for _ in range(SIZE)] for name in FIELDS}
    start = {name: list(field) for name, field in words.items()}
    made: list[Assignment] = []
    while len(made) < count:
        size = chance.choice((1, SIZE))
        name = f"r{len(made)}"
        node = expression(chance, 4, indexed=size > 1)
        try:
            result = [value(node, words, at) for at in range(size)]
        except (ZeroDivisionError, OverflowError):
            continue
        if all(math.isfinite(word) for word in result):
            words[name] = result
            made.append(Assignment(name, size, node, local=chance.random() < 0.3))
    # one statement that reads what it is writing: each word sees those written before it
    node = Binary("+", Word("a", None), Dot("a", "b", SIZE))
    made.append(Assignment("a", SIZE, node, local=False))
    for at in range(SIZE):
        words["a"][at] = value(node, words, at)
    return tuple(made), {"start": start, **words}


@pytest.mark.parametrize("target", [X86, ARM])
def test_every_expression_has_the_bits_that_python_gives(bench, target):
    statements, words = programs(150)
    start = words.pop("start")
    fields = [Field(name, SIZE, tuple(start[name])) for name in FIELDS]
    fields += [
        Field(each.target, each.size, (0.0,) * each.size)
        for each in statements
        if each.target != "a" and not each.local
    ]
    system = replace(role_plans.SCALAR, state=tuple(fields), update=statements)
    run = bench(role_plans.case(system, (1.0, 1.0), role_plans.roles(("alone", 1))))
    outcome = run.run(Setup(target=1, targets={"alone": target}))["alone"]
    expected = [0.0, *(word for field in fields for word in words[field.name])]
    assert outcome.results["state"] == hashlib.sha256(role_plans.words_bytes(tuple(expected))).hexdigest()
