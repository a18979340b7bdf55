"""The oracle's arithmetic against exact rationals rounded once an operation, to the last bit."""

from __future__ import annotations

import math

import pytest
from exact import bits, run
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.oracle.arithmetic import SINGLE, Column, columns, compile_statements
from orchestrator.plan.grammar import MAX_DEPTH, parse
from orchestrator.plan.shapes import Scope, shape
from orchestrator.plan.tree import Assignment, Binary, Dot, Expression, Negate, Number, SquareRoot, Sum, Word

EDGES = (
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    2.2250738585072009e-308,
    2.2250738585072014e-308,
    1.0,
    -1.0,
    1.0 + 2**-52,
    1.0 - 2**-53,
    3.0,
    0.1,
    2.0**53,
    2.0**53 + 2,
    1.7976931348623157e308,
    -1.7976931348623157e308,
)
SIZE = 3
finite = st.sampled_from(EDGES) | st.floats(allow_nan=False, allow_infinity=False) | st.floats(-4, 4)
words = st.builds(Word, st.sampled_from("ab"), st.none() | st.integers(0, SIZE - 1))
leaves = (
    words
    | st.builds(Number, finite)
    | st.builds(Sum, st.sampled_from("ab"), st.just(SIZE))
    | st.builds(Dot, st.sampled_from("ab"), st.sampled_from("ab"), st.just(SIZE))
)
trees: st.SearchStrategy[Expression] = st.recursive(
    leaves,
    lambda inner: (
        st.builds(Binary, st.sampled_from("+-*/"), inner, inner)
        | st.builds(Negate, inner)
        | st.builds(SquareRoot, inner)
    ),
    max_leaves=12,
)
vectors = st.lists(finite, min_size=SIZE, max_size=SIZE)


def both(statements: tuple[Assignment, ...], **names: list[float]) -> tuple[list[str], list[str]]:
    """What the oracle and the exact computation make of a program, as bits."""
    ours = {name: list(words) for name, words in names.items()}
    for step in compile_statements(statements, ours, SINGLE):
        step()
    exact = {name: list(words) for name, words in names.items()}
    run(statements, exact)
    assert ours.keys() == exact.keys()
    return (
        [bits(word) for name in ours for word in ours[name]],
        [bits(word) for name in ours for word in exact[name]],
    )


def program_of(first: Expression, second: Expression) -> tuple[Assignment, ...]:
    """The second statement reads, word by word, what it writes, and whole what the first has written."""
    return (
        Assignment("b", SIZE, first, local=False),
        Assignment("a", SIZE, Binary("-", Word("a", None), second), local=False),
        Assignment("c", SIZE, Word("a", None), local=True),
    )


@given(st.sampled_from("+-*/"), finite, finite)
def test_one_operation_is_rounded_once(operator: str, left: float, right: float) -> None:
    value = Binary(operator, Word("a", 0), Word("b", 0))  # type: ignore[arg-type]
    ours, exact = both((Assignment("t", 1, value, local=True),), a=[left], b=[right])
    assert ours == exact


@given(finite)
def test_a_square_root_is_rounded_once(value: float) -> None:
    ours, exact = both((Assignment("t", 1, SquareRoot(Word("a", 0)), local=True),), a=[value])
    assert ours == exact


@given(trees, trees, vectors, vectors)
def test_programs_agree_to_the_last_bit(
    first: Expression, second: Expression, a: list[float], b: list[float]
) -> None:
    ours, exact = both(program_of(first, second), a=a, b=b)
    assert ours == exact


@given(trees, trees, st.lists(st.tuples(vectors, vectors), max_size=5))
def test_each_of_many_samples_is_computed_as_if_alone(
    first: Expression, second: Expression, samples: list[tuple[list[float], list[float]]]
) -> None:
    """Twice over the same columns: none of them is changed in place."""
    program = program_of(first, second)
    a, b = ([[sample[field][i] for sample in samples] for i in range(SIZE)] for field in (0, 1))
    ours: dict[str, list[Column]] = {"a": [], "b": []}
    steps = compile_statements(program, ours, columns(len(samples)))
    for _ in range(2):
        ours["a"][:], ours["b"][:] = a, b
        for step in steps:
            step()
    for number, sample in enumerate(samples):
        _, exact = both(program, a=sample[0], b=sample[1])
        assert [bits(column[number]) for name in ours for column in ours[name]] == exact
    assert all(len(column) == len(samples) for name in ours for column in ours[name])


@pytest.mark.parametrize(
    ("text", "a", "b", "result"),
    [
        ("t = a / b", 1.0, 0.0, math.inf),
        ("t = a / b", 1.0, -0.0, -math.inf),
        ("t = a / b", -1.0, 0.0, -math.inf),
        ("t = a / b", 0.0, 0.0, math.nan),
        ("t = a / b", 1.7976931348623157e308, 5e-324, math.inf),
        ("t = a / b", 5e-324, 2.0, 0.0),
        ("t = a / b", -5e-324, 2.0, -0.0),
        ("t = a * b", 1e308, 10.0, math.inf),
        ("t = a + b", 0.0, -0.0, 0.0),
        ("t = -a", 0.0, 0.0, -0.0),
        ("t = -a - b", 0.0, 0.0, -0.0),
        ("t = a - b", 1.0, 1.0, 0.0),
        ("t = sqrt(a)", -0.0, 0.0, -0.0),
        ("t = sqrt(a)", -5e-324, 0.0, math.nan),
        ("t = sqrt(a)", 5e-324, 0.0, 2.2227587494850775e-162),
        ("t = sqrt(a / b)", 1.0, 0.0, math.inf),
    ],
)
def test_where_python_would_raise_or_blur_the_standard_holds(
    text: str, a: float, b: float, result: float
) -> None:
    statement = shape(parse(text), Scope({"a": 1, "b": 1}, {}))
    ours, exact = both((statement,), a=[a], b=[b])
    assert ours == exact
    assert ours[-1] == bits(result)


def test_sums_keep_their_order_and_begin_with_their_first_term() -> None:
    ours, exact = both((Assignment("t", 1, Sum("a", 3), local=True),), a=[1e16, 1.0, 1.0])
    assert ours == exact
    assert ours[-1] == bits(1e16)  # a compensated or a right-deep sum gives 1e16 + 2
    negative = both((Assignment("t", 1, Dot("a", "b", 2), local=True),), a=[-0.0, 0.0], b=[1.0, -1.0])
    assert negative[0] == negative[1]
    assert negative[0][-1] == bits(-0.0)  # from +0.0 on it would be +0.0


def test_the_tallest_tree_does_not_exhaust_the_stack() -> None:
    statement = shape(parse("t = " + "-".join("a" * MAX_DEPTH)), Scope({"a": 1}, {}))
    ours, exact = both((statement,), a=[0.1])
    assert ours == exact
