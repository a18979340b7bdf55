"""How two states differ: how many words of each tensor, the first by its bits, and the largest distance.

Words are compared by their bits, as identities are: zeros of different sign differ, and distance is then 0.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from operator import ne

from orchestrator.qualify.command.tensors import FLOATS, Tensor, Tensors, place

_ARRAYS = {"F64": "d", "F32": "f"}
_UNSIGNED = {1: "B", 2: "H", 4: "I", 8: "Q"}


@dataclass(frozen=True)
class Word:
    """A word that differs: where, and how it is shown on either side."""

    name: str
    left: str
    right: str


@dataclass(frozen=True)
class Difference:
    """What differs in one tensor.

    Attributes:
        tensor: its name.
        form: type and shape, left and right, where those differ or a side lacks it (`none`): no word is
            compared then.
        count: words that differ.
        words: words of the tensor.
        first: the first of those that differ.
        largest: largest distance between floating-point words, which may be infinite; None for other types.
    """

    tensor: str
    form: tuple[str, str] | None = None
    count: int = 0
    words: int = 0
    first: Word | None = None
    largest: float | None = None


def differences(left: Tensors, right: Tensors) -> tuple[Difference, ...]:
    """Of every tensor that is not the same, in the left side's order, then those that only the right has."""
    names = dict.fromkeys((*left, *right))
    found = (_difference(name, left.get(name), right.get(name)) for name in names)
    return tuple(each for each in found if each is not None)


def _difference(name: str, left: Tensor | None, right: Tensor | None) -> Difference | None:
    if left is None or right is None or (left.dtype, left.shape) != (right.dtype, right.shape):
        return Difference(name, form=(_form(left), _form(right)))
    if left.data == right.data:
        return None
    kind = _UNSIGNED[left.width]
    one, other = array(kind, left.data), array(kind, right.data)
    index = next(index for index, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
    first = Word(f"{name}{place(left.shape, index)}", left.shown(index), right.shown(index))
    return Difference(name, None, sum(map(ne, one, other)), len(one), first, _largest(left, right))


def _form(tensor: Tensor | None) -> str:
    return f"{tensor.dtype}{list(tensor.shape)}" if tensor else "none"


def _largest(left: Tensor, right: Tensor) -> float | None:
    if left.dtype not in FLOATS:
        return None
    return max(abs(a - b) for a, b in zip(_floats(left), _floats(right), strict=True))


def _floats(tensor: Tensor) -> Sequence[float]:
    """The words as numbers; of the two usual types without a Python object for each, for states are large."""
    if tensor.dtype not in _ARRAYS or sys.byteorder == "big":
        return tensor.numbers
    return array(_ARRAYS[tensor.dtype], tensor.data)
