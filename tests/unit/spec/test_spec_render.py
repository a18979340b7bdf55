"""Printing: one line each, or with the source line and a caret; never a byte that moves the cursor."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import Label, Refusal, Where
from orchestrator.spec.render import render

WRONG = Refusal(
    Label.VALUE_CHOICE,
    "is wrong (got `b`, expected `a`)",
    Where("dir/run.yaml", 2, 4),
    "k.x",
    "did you mean `a`?",
)
SOURCE = {"dir/run.yaml": "k:\n  x: b\n"}


def test_plain_is_one_line_each() -> None:
    line = "dir/run.yaml:2:4: value-choice: is wrong (got `b`, expected `a`); did you mean `a`?\n"
    assert render([WRONG, WRONG], SOURCE, colour=False, caret=False) == line * 2


def test_caret_stands_under_the_place() -> None:
    wrong = Refusal(WRONG.label, WRONG.message, Where("dir/run.yaml", 2, 6), hint=WRONG.hint)
    assert render([wrong], SOURCE, colour=False, caret=True) == (
        "dir/run.yaml:2:6: value-choice: is wrong (got `b`, expected `a`)\n"
        "    2 |   x: b\n"
        "      |      ^\n"
        "  did you mean `a`?\n"
    )


def test_wide_letters_and_tabs_keep_the_caret_in_its_column() -> None:
    source = {"f": "漢字\té: b\n"}
    text = render([Refusal(Label.SYNTAX, "m", Where("f", 1, 7))], source, colour=False, caret=True)
    assert text.splitlines()[1:] == ["    1 | 漢字\té: b", "      |     \t   ^"]


def test_a_long_line_is_cut_around_the_place() -> None:
    source = {"f": "a" * 500 + "!" + "b" * 500}
    _, line, caret = render(
        [Refusal(Label.SYNTAX, "m", Where("f", 1, 501))], source, colour=False, caret=True
    ).splitlines()
    assert line[caret.index("^")] == "!"
    assert len(line) < 120


def test_no_excerpt_for_what_is_no_line() -> None:
    for where in (Where("f"), Where("f", 9, 1), Where("g", 1, 1)):
        text = render([Refusal(Label.SYNTAX, "m", where)], {"f": "a\n"}, colour=False, caret=True)
        assert text == f"{where}: syntax: m\n"


def test_colour_is_all_that_colour_adds() -> None:
    plain = render([WRONG], SOURCE, colour=False, caret=True)
    coloured = render([WRONG], SOURCE, colour=True, caret=True)
    assert coloured != plain
    for code in ("\x1b[1m", "\x1b[31m", "\x1b[2m", "\x1b[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain


@given(st.text(max_size=30), st.text(max_size=60), st.integers(0, 4), st.integers(0, 80), st.booleans())
def test_nothing_from_a_file_can_move_the_cursor(
    name: str,
    source: str,
    line: int,
    column: int,
    caret: bool,  # noqa: FBT001
) -> None:
    refusal = Refusal(Label.SYNTAX, name, Where(name, line, column), hint=source)
    text = render([refusal], {name: source}, colour=False, caret=caret)
    assert all(character.isprintable() or character in "\n\t" for character in text)
    assert caret or text.count("\n") == 1
