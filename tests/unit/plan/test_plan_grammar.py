"""The grammar: a tree that is printed parses back to itself, and hostile text is refused and no more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.plan.grammar import (
    MAX_DEPTH,
    MAX_INDEX_DIGITS,
    MAX_NAME,
    MAX_TEXT,
    Call,
    Constant,
    GrammarError,
    Name,
    Operation,
    Raw,
    parse,
)

Shape = tuple[object, ...]  # a tree without offsets


def plain(node: Raw) -> Shape:
    match node:
        case Name(text, index):
            return ("name", text, index)
        case Constant(value):
            return ("number", value.hex())
        case Call(function, arguments):
            return (function, *map(plain, arguments))
        case Operation(operator, None, right):
            return ("negate", plain(right))
        case Operation(operator, left, right) if left is not None:
            return (operator, plain(left), plain(right))
    raise AssertionError(node)


def printed(tree: Shape) -> list[str]:  # noqa: PLR0911  # one line for each kind of node
    """The tokens of a tree, with no more parentheses than it needs."""
    match tree:
        case ("name", text, None):
            return [str(text)]
        case ("name", text, index):
            return [str(text), "[", str(index), "]"]
        case ("number", value):
            return [repr(float.fromhex(str(value)))]
        case ("negate", operand):
            return ["-", *within(operand, "+-*/")]
        case ("+" | "-" as operator, left, right):
            return [*printed(left), operator, *within(right, "+-")]
        case ("*" | "/" as operator, left, right):
            return [*within(left, "+-"), operator, *within(right, "+-*/")]
        case (function, *arguments):
            inner = [token for argument in arguments for token in (",", *printed(argument))][1:]
            return [str(function), "(", *inner, ")"]
    raise AssertionError(tree)


def refusal_of(text: str) -> GrammarError | None:
    try:
        parse(text)
    except GrammarError as error:
        return error
    return None


def within(tree: Shape, parenthesised: str) -> list[str]:
    tokens = printed(tree)
    return ["(", *tokens, ")"] if tree[0] in tuple(parenthesised) else tokens


def height(tree: Shape) -> int:
    return 1 + max((height(part) for part in tree[1:] if isinstance(part, tuple)), default=0)


words = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True).filter(
    lambda name: name not in ("i", "sqrt", "dot", "sum")
)
names = st.tuples(st.just("name"), words, st.none() | st.just("i") | st.integers(0, 10**9 - 1))
whole = st.tuples(st.just("name"), words, st.none())
numbers = st.floats(0.0, allow_infinity=False, allow_nan=False).map(lambda value: ("number", value.hex()))
leaves = names | numbers | st.tuples(st.just("dot"), whole, whole) | st.tuples(st.just("sum"), whole)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.tuples(st.sampled_from("+-*/"), inner, inner)
        | st.tuples(st.just("negate"), inner)
        | st.tuples(st.just("sqrt"), inner)
    ),
    max_leaves=30,
).filter(lambda tree: height(tree) <= MAX_DEPTH // 2)  # a sign and its parentheses are two levels of text


@given(trees, st.lists(st.sampled_from(["", " ", "  ", "\t", "\n"]), min_size=1))
def test_a_printed_tree_parses_back_to_itself(tree: Shape, blanks: list[str]) -> None:
    tokens = ["t", "[", "i", "]", "=", *printed(tree)]
    spaced = "".join(blanks[at % len(blanks)] + token for at, token in enumerate(tokens))
    statement = parse(spaced + blanks[0])
    assert plain(statement.target) == ("name", "t", "i")
    assert plain(statement.value) == tree


@given(st.text(max_size=60) | st.text("iw0123456789.e+-*/=()[], sqrtdot_", max_size=60))
def test_hostile_text_is_a_statement_or_refused_at_a_place(text: str) -> None:
    refusal = refusal_of(text)
    if refusal is not None:
        assert 0 <= refusal.offset <= len(text)
        assert "(got " in str(refusal)
        assert ", expected " in str(refusal)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("t = a + b - c", ("-", ("+", "a", "b"), "c")),
        ("t = a + b * c", ("+", "a", ("*", "b", "c"))),
        ("t = a / b / c * d", ("*", ("/", ("/", "a", "b"), "c"), "d")),
        ("t = a - (b - c)", ("-", "a", ("-", "b", "c"))),
        ("t = -a * b", ("*", ("negate", "a"), "b")),
        ("t = a - -b", ("-", "a", ("negate", "b"))),
        ("t = ((a))", "a"),
    ],
)
def test_precedence_and_associativity(text: str, tree: object) -> None:
    def short(shape: Shape) -> object:
        return shape[1] if shape[0] == "name" else (shape[0], *map(short, shape[1:]))  # type: ignore[arg-type]

    assert short(plain(parse(text).value)) == tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", 0.1),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e-3", 1e-3),
        ("2E+2", 200.0),
        ("5e-324", 5e-324),
        ("1e-400", 0.0),
    ],
)
def test_numbers_are_rounded_once(text: str, value: float) -> None:
    assert parse(f"t = {text}").value == Constant(value)


@pytest.mark.parametrize(
    ("text", "offset", "said"),
    [
        ("", 0, "the end"),
        ("   ", 3, "the end"),
        ("t", 1, "expected '='"),
        ("t =", 3, "expected a number"),
        ("t = a b", 6, "goes on (got 'b'"),
        ("t = a +", 7, "the end"),
        ("t = (a", 6, "expected ')'"),
        ("t = a)", 5, "goes on"),
        ("t = a $ b", 6, "'$'"),
        ("t = 1e999", 4, "too large"),
        ("t = 1.2.3", 7, "goes on (got '.3'"),
        ("t = 1_000", 5, "goes on (got '_000'"),
        ("t[0] = a", 0, "expected t[i]"),
        ("t[j] = a", 2, "'j'"),
        ("t = a[1.5]", 6, "'1.5'"),
        ("t = a[-1]", 6, "'-'"),
        ("t = a[", 6, "the end"),
        ("t = a[i", 7, "expected ']'"),
        ("t = a[" + "1" * (MAX_INDEX_DIGITS + 1) + "]", 6, "too long"),
        ("i = a", 0, "a word of the grammar"),
        ("t = i", 4, "a word of the grammar"),
        ("dot = a", 0, "a word of the grammar"),
        ("t = sum + a", 4, "a word of the grammar"),
        ("t = dot(a)", 9, "expected ','"),
        ("t = dot(a, b + c)", 13, "expected ')'"),
        ("t = sum(a[i])", 9, "expected ')'"),
        ("t = sum(1)", 8, "the name of a whole field"),
        ("t = tan(a)", 4, "'tan' is no function here (got tan(, expected sqrt, dot, sum)"),
        ("t = a ** 2", 6, "there are no powers (got **, expected a product)"),
        ("t = __import__('os')", 15, "not in the grammar"),
        ("n" * (MAX_NAME + 1) + " = a", 0, "name is too long"),
        ("t = a" + " " * MAX_TEXT, 0, "too long"),
        # digits and blanks beyond ASCII: Python would take them
        ("t = \u0663", 4, "not in the grammar"),
        ("t = a[\u0663]", 6, "not in the grammar"),
        ("t = \u00a0a", 4, "not in the grammar"),
        ("t = a\u2003", 5, "not in the grammar"),
        ("t = \u00e4", 4, "not in the grammar"),
        ("t = a\0", 5, "not in the grammar"),
    ],
)
def test_what_is_not_in_the_grammar_is_refused_where_it_shows(text: str, offset: int, said: str) -> None:
    with pytest.raises(GrammarError) as refused:
        parse(text)
    assert (refused.value.offset, said in str(refused.value)) == (offset, True), str(refused.value)


@pytest.mark.parametrize(
    ("before", "after"), [("(", ")"), ("-", ""), ("sqrt(", ")"), ("a*(", ")"), ("(a+", ")")]
)
def test_nesting_is_bounded(before: str, after: str) -> None:
    def nested(levels: int) -> str:
        return "t = " + before * levels + "a" + after * levels

    parse(nested(MAX_DEPTH // 2))
    for levels in (MAX_DEPTH + 1, MAX_TEXT // (len(before) + len(after)) - 5):
        with pytest.raises(GrammarError, match="nested too deeply"):
            parse(nested(levels))


@pytest.mark.parametrize("operator", ["+", "-", "*", "/"])
def test_a_chain_is_bounded_like_the_tree_that_it_makes(operator: str) -> None:
    parse("t = " + operator.join("a" * MAX_DEPTH))
    for terms in (MAX_DEPTH + 1, 2000):
        with pytest.raises(GrammarError, match="nested too deeply") as refused:
            parse("t = " + operator.join("a" * terms))
        # the first operator that is too many
        assert refused.value.offset == 4 + 2 * MAX_DEPTH - 1
