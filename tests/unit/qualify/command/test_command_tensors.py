"""Tensors of every type, compared by their bits; what is no set of tensors, or not finite, is refused."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from orchestrator.qualify.command.tensors import (
    Tensor,
    TensorsError,
    beyond,
    difference,
    first_byte,
    place,
    read,
)


def raw(dtype: str, shape: list[int], data: bytes, name: str = "t") -> bytes:
    header = json.dumps({name: {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


def one(dtype: str, shape: list[int], data: bytes) -> dict[str, Tensor]:
    return read({"": raw(dtype, shape, data)})


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"])
def test_what_numpy_saved_is_read_and_its_first_other_word_named(kind: str) -> None:
    left = np.arange(6).reshape(2, 3).astype(kind)
    right = left.copy()
    right[1, 0] = not left[1, 0] if kind == "?" else left[1, 0] + 1
    right[1, 2] = not left[1, 2] if kind == "?" else left[1, 2] + 1
    files = [read({"": save({"w": left, "a": left})}), read({"": save({"w": right, "a": left})})]
    assert difference(files[0], files[0]) == ""
    assert difference(*files).startswith("w[1,0] = ")


@pytest.mark.parametrize("dtype", ["F8_E5M2", "F8_E4M3"])
def test_types_that_python_lacks_are_compared_by_their_bits(dtype: str) -> None:
    left, right = one(dtype, [4], b"\1\2\3\4"), one(dtype, [4], b"\1\2\7\4")
    assert difference(left, right) == "t[2] = 07, expected 03"


def test_bf16_is_shown_by_value_and_bits() -> None:
    left, right = one("BF16", [2], bytes.fromhex("803f003f")), one("BF16", [2], bytes.fromhex("803f0040"))
    assert difference(left, right) == "t[1] = 2.0 (4000), expected 0.5 (3f00)"
    assert left["t"].numbers == (1.0, 0.5)


def test_a_negative_zero_is_another_word_and_within_every_tolerance() -> None:
    left, right = one("F64", [1], struct.pack("<d", 0.0)), one("F64", [1], struct.pack("<d", -0.0))
    assert difference(left, right) == "t[0] = -0.0 (8000000000000000), expected 0.0 (0000000000000000)"
    assert beyond(left, right, relative=1e-9, absolute=0) == ""
    assert beyond(left, right, relative=0, absolute=0) != ""


@pytest.mark.parametrize(
    ("dtype", "data"),
    [
        ("F64", struct.pack("<2d", 1, float("nan"))),
        ("F64", struct.pack("<2d", 1, float("inf"))),
        ("F32", struct.pack("<2f", 1, float("-inf"))),
        ("F16", struct.pack("<2e", 1, float("nan"))),
        ("BF16", bytes.fromhex("803fc07f")),
        ("BF16", bytes.fromhex("803f80ff")),
        ("C64", struct.pack("<4f", 1, 1, 1, float("nan"))),
        ("C64", struct.pack("<4f", 1, 1, float("inf"), 1)),
        ("F8_E5M2", b"\x7b\x7c"),
        ("F8_E5M2", b"\xfb\xff"),
        ("F8_E4M3", b"\x7e\xff"),
        ("F8_E4M3FNUZ", b"\x7f\x80"),
        ("F8_E5M2FNUZ", b"\xff\x80"),
        ("F8_E8M0", b"\xfe\xff"),
    ],
)
def test_a_word_that_is_not_finite_is_refused_by_name(dtype: str, data: bytes) -> None:
    with pytest.raises(TensorsError, match=r"^non-finite: t\[1\] = "):
        one(dtype, [2], data)


@pytest.mark.parametrize(
    "files",
    [
        {"": b""},
        {"": b"not safetensors at all"},
        {"": raw("F64", [2], bytes(16))[:-1]},
        {"": raw("F64", [2], bytes(16)) + b"\0"},
        {"model.bin": b"\0"},
        {},
        {"a.safetensors": raw("F64", [1], bytes(8)), "b.safetensors": raw("F64", [1], bytes(8))},
    ],
    ids=["empty", "text", "short", "long", "other files", "nothing", "twice"],
)
def test_what_is_no_set_of_tensors_is_refused(files: dict[str, bytes]) -> None:
    with pytest.raises(TensorsError):
        read(files)


def test_other_files_beside_tensors_are_left_alone() -> None:
    assert list(read({"w.safetensors": raw("F64", [1], bytes(8)), "config.json": b"{}"})) == ["t"]


def test_shapes_types_and_names_count() -> None:
    base = one("F64", [2, 1], bytes(16))
    assert difference(base, one("F64", [1, 2], bytes(16))) == "t is F64[1, 2], expected F64[2, 1]"
    assert difference(base, one("I64", [2, 1], bytes(16))) == "t is I64[2, 1], expected F64[2, 1]"
    assert difference(base, {}) == "t is not there"
    assert difference({}, base) == "t is new"


@pytest.mark.parametrize("dtype", ["<f8", "<f4", "<f2"])
def test_tolerance_is_a_fraction_of_the_references_word(dtype: str) -> None:
    expected = read({"": save({"w": np.array([1000, 1], dtype)})})
    near = read({"": save({"w": np.array([1001, 1], dtype)})})
    assert beyond(expected, near, relative=2e-3, absolute=0) == ""
    assert beyond(expected, near, relative=1e-4, absolute=0).startswith("w[0] = 1001.0")
    assert beyond(expected, near, relative=0, absolute=2) == ""


def test_whole_numbers_have_no_tolerance() -> None:
    expected, near = (read({"": save({"n": np.array([value])})}) for value in (10**6, 10**6 + 1))
    assert beyond(expected, near, relative=0.1, absolute=5).startswith("n[0] = 1000001")


def test_only_the_references_tensors_count_beside_it() -> None:
    held = read({"": save({"w": np.ones(1), "extra": np.ones(3)})})
    assert beyond(read({"": save({"w": np.ones(1)})}), held, relative=0, absolute=0) == ""
    assert beyond(held, read({"": save({"w": np.ones(1)})}), relative=0, absolute=0) == "extra is not there"


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_the_first_byte_that_differs(left: bytes, right: bytes) -> None:
    at = first_byte(left, right)
    assert left[:at] == right[:at]
    assert at == min(len(left), len(right)) or left[at] != right[at]


@given(st.lists(st.integers(1, 5), max_size=4), st.data())
def test_a_place_is_numpys(shape: list[int], data: Any) -> None:
    size = int(np.prod(shape)) if shape else 1
    index = data.draw(st.integers(0, size - 1))
    expected = ",".join(str(int(each)) for each in np.unravel_index(index, shape)) if shape else ""
    assert place(tuple(shape), index) == (f"[{expected}]" if shape else "")
