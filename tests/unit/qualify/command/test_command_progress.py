"""Lines of progress as other people's programs write them."""

from __future__ import annotations

import pytest

from orchestrator.qualify.command.node import last_line
from orchestrator.qualify.command.progress import Line, fault, first_difference, parse


def lines(text: str) -> tuple[Line, ...]:
    found, wrong = parse(text.encode())
    assert wrong == ""
    return found


def test_two_forms_are_read() -> None:
    assert lines("1 0.5\n2 ab12 -1e-3\n3 .5\n4 5.\n") == (
        Line(1, "", "0.5"),
        Line(2, "ab12", "-1e-3"),
        Line(3, "", ".5"),
        Line(4, "", "5."),
    )
    assert lines("") == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 0.5\nhello\n", "line 2 is b'hello', expected `update loss`"),
        ("1 0x10\n", "line 1 is"),
        ("-1 0.5\n", "line 1 is"),
        ("1 2 3 4\n", "line 1 is"),
        ("\n", "line 1 is"),
        ("1 nan\n", "line 1: the loss is not finite (nan)"),
        ("1 -inf\n", "line 1: the loss is not finite"),
        ("1 1e9999\n", "line 1: the loss is not finite"),
        ("1 0.5\n2 0.", "what follows line 1 is no whole line"),
        ("9" * 5000 + " 1\n", "line 1 is"),
        ("1 \xff\n", "line 1 is"),
    ],
)
def test_what_is_no_progress_is_told(text: str, said: str) -> None:
    assert parse(text.encode("latin-1"))[1].startswith(said)


def test_updates_go_forward_within_what_was_asked() -> None:
    assert fault(lines("3 1\n4 1\n6 1\n"), 3, 6) == ""
    assert fault((), 3, 6) == ""
    assert fault(lines("3 1\n3 1\n"), 3, 6) == "update 3 after 3 (expected 4 to 6)"
    assert fault(lines("2 1\n"), 3, 6) == "update 2 after 2 (expected 3 to 6)"
    assert fault(lines("7 1\n"), 3, 6) == "update 7 after 2 (expected 3 to 6)"


def test_the_first_update_that_is_told_otherwise() -> None:
    left = lines("1 0.5\n2 0.25\n3 0.125\n")
    assert first_difference(left, left) == (0, "")
    assert first_difference(left, lines("1 0.5\n2 0.26\n")) == (2, "loss 0.26, expected 0.25")
    assert first_difference(left, lines("1 0.5\n3 0.125\n"))[0] == 2
    assert first_difference(left, lines("1 0.5\n")) == (2, "1 lines, expected 3")
    assert first_difference(lines("1 a 5\n"), lines("1 b 5\n")) == (1, "state b, expected a")


def test_the_last_line_of_a_tail_that_begins_in_the_middle() -> None:
    assert last_line(b".25\n3 0.125\n4 0.5\n") == (4, 0.5)
    assert last_line(b"1 0.5\n") == (1, 0.5)
    assert last_line(b"") is None
