"""Tensors as a program of the user's own published them: read, compared word by word, never executed.

Knows the safetensors format through its own library, and no framework: words are compared by their bits, so
that a type which Python lacks, such as BF16 or an eight-bit float, is as good as any.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import safetensors

SUFFIX = ".safetensors"
_BYTES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2}
_BYTES |= {"U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8, "C64": 8}
_FORMS = {"BOOL": "?", "U8": "B", "I8": "b", "U16": "H", "I16": "h", "F16": "e", "U32": "I", "I32": "i"}
_FORMS |= {"F32": "f", "U64": "Q", "I64": "q", "F64": "d"}
# eight-bit floats: words that are infinite or no number
_NOT_FINITE = {
    "F8_E5M2": bytes((*range(0x7C, 0x80), *range(0xFC, 0x100))),
    "F8_E4M3": b"\x7f\xff",
    "F8_E4M3FNUZ": b"\x80",
    "F8_E5M2FNUZ": b"\x80",
    "F8_E8M0": b"\xff",
}
FLOATS = ("F64", "F32", "F16", "BF16")
_CHUNK = 1 << 16


class TensorsError(ValueError):
    """What was published is no set of tensors."""


class NotFiniteError(TensorsError):
    """A word of a tensor is infinite, or no number."""


@dataclass(frozen=True)
class Tensor:
    """One tensor: its type as the format calls it, its shape, and its words, little-endian."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @property
    def width(self) -> int:
        """Bytes of a word; 1 for a type whose words are no whole bytes."""
        return _BYTES.get(self.dtype, 1)

    @property
    def numbers(self) -> tuple[float, ...]:
        """The words as binary64, for types that have that: exact for all four."""
        count = len(self.data) // self.width
        if self.dtype == "BF16":
            wide = b"".join(b"\0\0" + self.data[at : at + 2] for at in range(0, len(self.data), 2))
            return struct.unpack(f"<{count}f", wide)
        return struct.unpack(f"<{count}{_FORMS[self.dtype]}", self.data)

    def shown(self, index: int) -> str:
        """A word as people read it, and its bits."""
        word = self.data[index * self.width : (index + 1) * self.width]
        bits = word[::-1].hex()
        if self.dtype == "BF16":
            return f"{struct.unpack('<f', bytes(2) + word)[0]!r} ({bits})"
        form = _FORMS.get(self.dtype)
        return f"{struct.unpack(f'<{form}', word)[0]!r} ({bits})" if form else bits


Tensors = Mapping[str, Tensor]


def read(files: Mapping[str, bytes]) -> dict[str, Tensor]:
    """The tensors of a published state: of the one file that it is, or of its `.safetensors` files.

    Args:
        files: name below the published one -> bytes; the name of a single file is empty.

    Raises:
        TensorsError: a file cannot be read, two hold a tensor of one name, a word is not finite, or there is
            no tensor at all.
    """
    found: dict[str, Tensor] = {}
    for name, data in sorted(files.items()):
        if name and not name.endswith(SUFFIX):
            continue
        for tensor, held in sorted(_file(name, data).items()):
            if tensor in found:
                raise TensorsError(f"{tensor} is in two files")
            if (index := first_not_finite(held)) is not None:
                where = f"{tensor}{place(held.shape, index)}"
                raise NotFiniteError(f"non-finite: {where} = {held.shown(index)}")
            found[tensor] = held
    if not found:
        raise TensorsError(f"there is no tensor (got {', '.join(sorted(files)) or 'nothing'})")
    return found


def _file(name: str, data: bytes) -> dict[str, Tensor]:
    try:
        held = safetensors.deserialize(data)  # type: ignore[no-untyped-call]  # compiled, without stubs
    except safetensors.SafetensorError as error:
        raise TensorsError(f"{name or 'the file'} is not whole safetensors ({error})") from error
    return {
        str(tensor): Tensor(str(each["dtype"]), tuple(each["shape"]), bytes(each["data"]))
        for tensor, each in held
    }


def first_not_finite(tensor: Tensor) -> int | None:
    """Index of the first infinite word or not-a-number; None if every word is finite, or none can be else."""
    if tensor.dtype in ("F16", "BF16"):
        mask = 0x7C00 if tensor.dtype == "F16" else 0x7F80
        words = array("H", tensor.data)
        return _first(words, lambda word: word & mask == mask, set(words))
    if tensor.dtype in ("F32", "F64"):
        return _first_of(tensor.numbers)
    if tensor.dtype == "C64":
        index = _first_of(struct.unpack(f"<{len(tensor.data) // 4}f", tensor.data))
        return None if index is None else index // 2  # a real part and an imaginary one
    wrong = (tensor.data.find(word) for word in _NOT_FINITE.get(tensor.dtype, b""))
    return min((index for index in wrong if index >= 0), default=None)


def _first_of(floats: tuple[float, ...]) -> int | None:
    return None if all(map(math.isfinite, floats)) else [math.isfinite(f) for f in floats].index(False)


def _first(words: array[int], is_wrong: Callable[[int], bool], kinds: set[int]) -> int | None:
    """Index of the first word that is wrong; there are few kinds of words, so each is asked about once."""
    wrong = {word for word in kinds if is_wrong(word)}
    return next((index for index, word in enumerate(words) if word in wrong), None) if wrong else None


def place(shape: tuple[int, ...], index: int) -> str:
    """`[2,0]` for a word's index, counted through; nothing for a scalar."""
    found: list[int] = []
    for size in reversed(shape):
        found.append(index % size)
        index //= size
    return f"[{','.join(map(str, reversed(found)))}]" if shape else ""


def difference(expected: Tensors, got: Tensors) -> str:
    """The first word, by names in order, whose bits differ; empty if the tensors are the same."""
    for name in sorted({*expected, *got}):
        left, right = expected.get(name), got.get(name)
        if left is None or right is None:
            return f"{name} is {'new' if left is None else 'not there'}"
        if said := _unlike(name, left, right):
            return said
        if left.data != right.data:
            index = first_byte(left.data, right.data) // left.width
            where = f"{name}{place(left.shape, index)}"
            return f"{where} = {right.shown(index)}, expected {left.shown(index)}"
    return ""


def beyond(expected: Tensors, got: Tensors, *, relative: float, absolute: float) -> str:
    """The first word that is farther from a reference's than allowed; empty if there is none.

    Every tensor of the reference counts, and no other. Words that are no floating-point numbers are the same.
    """
    for name, left in sorted(expected.items()):
        right = got.get(name)
        if right is None:
            return f"{name} is not there"
        if said := _unlike(name, left, right):
            return said
        if left.dtype not in FLOATS or not (relative or absolute):
            if said := difference({name: left}, {name: right}):
                return said
            continue
        for index, (wanted, found) in enumerate(zip(left.numbers, right.numbers, strict=True)):
            if abs(found - wanted) > absolute + relative * abs(wanted):
                where = f"{name}{place(left.shape, index)}"
                return f"{where} = {right.shown(index)}, expected {left.shown(index)}"
    return ""


def _unlike(name: str, expected: Tensor, got: Tensor) -> str:
    form, other = (f"{each.dtype}{list(each.shape)}" for each in (expected, got))
    return "" if form == other else f"{name} is {other}, expected {form}"


def first_byte(left: bytes, right: bytes) -> int:
    """Offset of the first byte that differs, or the length of the shorter."""
    end = min(len(left), len(right))
    for at in range(0, end, _CHUNK):
        one, other = left[at : at + _CHUNK], right[at : at + _CHUNK]
        if one != other:
            pairs = enumerate(zip(one, other, strict=False))
            return at + next((number for number, (a, b) in pairs if a != b), end - at)
    return end
