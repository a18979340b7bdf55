"""What a word is, by the numerical contract: its width, and how a number becomes one.

Every operation of `binary32-ordered` is one IEEE 754 binary32 operation. One operation on binary32 words that
is computed in binary64 and rounded once is that operation, for + - * / and sqrt: 53 digits are at least twice
24 and two more.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class WordType:
    """A width of words.

    Attributes:
        dtype: as safetensors call it.
        typecode: as `array` calls it.
        size: bytes.
        c: as C calls it.
    """

    dtype: str
    typecode: Literal["d", "f"]
    size: int
    c: str

    def rounded(self, number: float) -> float:
        """The nearest word, ties to even; infinite where there is none."""
        return float(array(self.typecode, (number,))[0])


BINARY64 = WordType("F64", "d", 8, "double")
BINARY32 = WordType("F32", "f", 4, "float")
WORD_TYPES = {
    "binary64-ordered": BINARY64,
    "binary32-ordered": BINARY32,
    "binary64-approximate": BINARY64,
    "binary32-approximate": BINARY32,
}
"""Numerical contract -> the words that it is about."""
