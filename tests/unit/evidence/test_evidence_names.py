"""Names of files in a bundle."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.names import fault, printable


@pytest.mark.parametrize(
    "name", ["a", "a/b/c", "données.csv", ".hidden", "...", "a..b", "-x", " a", "日本/語"]
)
def test_good(name):
    assert fault(name) is None
    assert printable(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "../a",
        "a/..",
        "a/./b",
        "a\\b",
        "a\nb",
        "\x00",
        "a\x7f",
        "\x85",
        "a\u2028b",
        "a\u2029b",
        "a\u202egpj.exe",
        "a\u200b",
        "\ufeffa",
        os.fsdecode(b"\xff"),
        "\ud800",
        "a\x1b[31m",
    ],
)
def test_bad(name):
    assert fault(name)


@given(st.text(st.characters()) | st.binary().map(os.fsdecode))
def test_what_is_shown_is_one_line_of_good_unicode_and_says_which_name(name):
    shown = printable(name)
    assert not fault(f"x{shown.replace('/', '').replace(chr(92), '')}")
    if fault(name) is None:
        assert shown == name


def test_hostile_names_are_told_apart():
    names = ["a\x1b[31m", "a\x1b[32m", os.fsdecode(b"\xff"), os.fsdecode(b"\xfe"), "\ud800", "a\nb"]
    assert len({printable(name) for name in names}) == len(names)
