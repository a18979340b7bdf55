"""Shapes: every rule refuses what breaks it, at the name at fault; what keeps them has its sizes."""

from __future__ import annotations

import pytest

from orchestrator.plan.grammar import parse
from orchestrator.plan.shapes import Scope, ShapeError, shape
from orchestrator.plan.tree import Assignment, Binary, Dot, Number, Sum, Word


def scope() -> Scope:
    """`w` and `s` may be written, `hidden` stands elsewhere."""
    return Scope(
        {"s": 1, "w": 3, "x": 3, "y": 5, "one": 1}, {"s": 1, "w": 3}, why_not={"hidden": "it is not yours"}
    )


def shaped(text: str) -> Assignment:
    return shape(parse(text), scope())


@pytest.mark.parametrize(
    ("text", "offset", "said"),
    [
        ("s = nothing", 4, "name is not known here (got nothing"),
        ("s = hidden", 4, "hidden cannot be read here: it is not yours"),
        ("s = sum(hidden)", 8, "hidden cannot be read here"),
        ("s = dot(x, hidden)", 11, "hidden cannot be read here"),
        ("hidden = s", 0, "hidden cannot be assigned: it is not yours"),
        ("hidden[i] = x[i]", 0, "hidden cannot be assigned: it is not yours"),
        ("x[i] = w[i]", 0, "x cannot be assigned: it is read-only here"),
        ("one = s", 0, "one cannot be assigned"),
        ("s = x", 4, "x has 3 words (got it as one number"),
        ("s = 2 * x", 8, "x has 3 words"),
        ("s = x[3]", 4, "index is past the end of x (got 3, expected 0 to 2)"),
        ("s = one[1]", 4, "index is past the end of one (got 1, expected 0 to 0)"),
        ("s = dot(x, y)", 8, "dot needs equal sizes (got x of 3 and y of 5"),
        ("  w[i] = x[i] + y[i]", 2, "differ in size (got x[3], y[5]"),
        ("w[i] = y[i]", 0, "sizes differ (got 5 words for w, expected 3)"),
        ("w[i] = one[i]", 0, "sizes differ (got 1 words for w, expected 3)"),
        ("w = s", 0, "w has 3 words (got a scalar assignment"),
        ("s = x[i]", 0, "a scalar takes no [i]"),
        ("t = x[i]", 0, "a scalar takes no [i]"),
        ("t[i] = s", 0, "size of t[i] cannot be told"),
        ("w[i] = w[0] * x[i]", 7, "w changes while this statement runs"),
        ("w[i] = x[i] - dot(w, x)", 18, "w changes while this statement runs"),
        ("w[i] = x[i] + (s - sum(w))", 23, "w changes while this statement runs"),
        ("w[i] = -sqrt(w[2]) * x[i]", 13, "w changes while this statement runs"),
        ("t[i] = x[i] + t[i]", 14, "name is not known here (got t"),
    ],
)
def test_a_broken_rule_is_refused_at_its_name(text: str, offset: int, said: str) -> None:
    with pytest.raises(ShapeError) as refused:
        shaped(text)
    assert said in str(refused.value), str(refused.value)
    assert refused.value.offset == offset
    assert ", expected " in str(refused.value)


def test_a_misspelt_name_has_a_hint() -> None:
    scope = Scope({"mean_gradient": 1}, {})
    with pytest.raises(ShapeError) as refused:
        shape(parse("s = mean_gradiant"), scope)
    assert refused.value.hint == "did you mean mean_gradient?"


def test_what_keeps_the_rules_has_its_sizes() -> None:
    assert shaped("w[i] = w[i] - 0.5 * x[i]") == Assignment(
        "w", 3, Binary("-", Word("w", None), Binary("*", Number(0.5), Word("x", None))), local=False
    )
    assert shaped("w[i] = 1") == Assignment("w", 3, Number(1.0), local=False)
    assert shaped("s = dot(x, w) + sum(y)") == Assignment(
        "s", 1, Binary("+", Dot("x", "w", 3), Sum("y", 5)), local=False
    )
    assert shaped("t[i] = y[i] * y[4]") == Assignment(
        "t", 5, Binary("*", Word("y", None), Word("y", 4)), local=True
    )
    # one word does not change while it is written
    assert shaped("s = s + dot(s, s)") == Assignment(
        "s", 1, Binary("+", Word("s", 0), Dot("s", "s", 1)), local=False
    )


def test_one_word_is_one_tree_however_it_is_written() -> None:
    """A statement over one word has no step, so nothing in it may ask for one."""
    assert shaped("s[i] = one[i] + s[i]") == shaped("s = one + s[0]") == shaped("s[i] = one + s")


def test_a_local_is_assigned_once_and_read_afterwards() -> None:
    names = scope()
    assert shape(parse("t[i] = x[i]"), names).local
    assert shape(parse("u = dot(t, x)"), names).size == 1
    with pytest.raises(ShapeError, match="t cannot be assigned"):
        shape(parse("t[i] = w[i]"), names)


def test_a_refused_statement_leaves_no_name_behind() -> None:
    names = scope()
    with pytest.raises(ShapeError):
        shape(parse("t[i] = x[i] + y[i]"), names)
    assert "t" not in names.readable
    assert not names.assigned
