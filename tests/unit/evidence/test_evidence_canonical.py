"""Canonical JSON: the reference implementation's bytes, and strict reading."""

import json
import math
from enum import StrEnum

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from evidence.canonical import MAX_DEPTH, CanonicalError, dumps, loads

SAFE = 2**53 - 1
text = st.text(st.characters(exclude_categories=["Cs"]))
floats = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not 2**53 <= abs(x) < 1e21)
scalars = st.none() | st.booleans() | st.integers(-SAFE, SAFE) | floats | text
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=20)


@given(values)
def test_gives_the_bytes_of_the_reference_implementation(value):
    assert dumps(value) == rfc8785.dumps(value)


@given(values)
def test_what_is_written_reads_back_the_same_and_is_canonical(value):
    data = dumps(value)
    assert loads(data, canonical=True) == value
    assert dumps(loads(data)) == data


@given(values)
def test_other_spellings_read_the_same_but_are_not_canonical(value):
    data = json.dumps(value, indent=1, ensure_ascii=True).encode() + b" "
    assert dumps(loads(data)) == dumps(value)
    with pytest.raises(CanonicalError, match="not the canonical form"):
        loads(data, canonical=True)


@given(st.binary())
def test_any_bytes_are_read_or_refused(data):
    try:
        value = loads(data)
    except CanonicalError:
        return
    assert loads(dumps(value), canonical=True) == value


def test_keys_are_ordered_by_utf16_units():
    assert dumps({"\ufb33": 1, "\U0001f600": 2}) == '{"\U0001f600":2,"\ufb33":1}'.encode()


def test_numbers_are_written_as_ecmascript_does():
    assert dumps([1.0, -0.0, 1e-7, 1e21, 0.1, 100.0]) == b"[1,0,1e-7,1e+21,0.1,100]"


def test_tuples_and_string_enums_are_written_as_what_they_are():
    class Colour(StrEnum):
        RED = "red"

    assert dumps({"a": (1, Colour.RED)}) == b'{"a":[1,"red"]}'


@pytest.mark.parametrize(
    "value",
    [
        2**53,
        -(2**53),
        2.0**53,
        1e16,
        math.nan,
        math.inf,
        -math.inf,
        "\ud800",
        {"\ud800": 1},
        {1: 2},
        {1},
        b"x",
    ],
)
def test_what_has_no_canonical_form_is_refused(value):
    with pytest.raises(CanonicalError):
        dumps([value])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a":1,"b":2,"a":1}', "duplicate key 'a'"),
        (b'[{"a":{"b":1,"b":1}}]', "duplicate key 'b'"),
        (b"NaN", "NaN is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b"9007199254740992", "2\\^53"),
        (b"[-9007199254740992]", "2\\^53"),
        (b"1e16", "2\\^53"),
        (b"1e999", "not finite"),
        (b"1" * 10_000, "2\\^53"),
        (b'"\xff"', "byte 1: not UTF-8"),
        ('"a"'.encode("utf-16"), "not UTF-8"),
        (b"\xef\xbb\xbf1", "BOM"),
        (b'"\\ud800"', "no canonical form"),
        (b"[1,\n2,]", "line 2, column 3"),
        (b"", "line 1, column 1"),
        (b"1 2", "Extra data"),
        (b"[" * 100_000, "nested deeper"),
        (b"[" * 100_000 + b"]" * 100_000, "nested deeper"),
        (b'{"a":' * 70 + b"1" + b"}" * 70, "nested deeper"),
    ],
)
def test_reading_is_strict(data, message):
    with pytest.raises(CanonicalError, match=message):
        loads(data)


def test_nesting_is_bounded_the_same_both_ways():
    data = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert dumps(loads(data)) == data
    with pytest.raises(CanonicalError, match="nested deeper"):
        dumps([loads(data)])


@pytest.mark.parametrize("data", [b'{"b":1,"a":2}', b"1.0", b"-0", b'"\\u0041"', b"[1, 2]", b"1\n", b"1E2"])
def test_bytes_that_are_not_canonical_are_refused_only_where_asked(data):
    loads(data)
    with pytest.raises(CanonicalError, match=r"byte [0-9]+: not the canonical form"):
        loads(data, canonical=True)
