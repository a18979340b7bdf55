"""Text in fewer bytes: pairs of bytes that stand together often become one byte.

Knows bytes; must not know what the text says. The same text is packed the same way everywhere, and a few
lines of C unpack it (`roles/native/learner_device.c`): a byte below 128 is itself, any other stands for two.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

FIRST = 128
"""The first byte that stands for a pair."""

_CODES = 256 - FIRST
_LEAST = 4  # a pair that stands less often saves nothing: its own two bytes are in the table


@dataclass(frozen=True)
class Packed:
    """A packed text.

    Attributes:
        data: the bytes.
        pairs: what byte `FIRST`, `FIRST` + 1, ... stand for: two bytes each, both below it.
        size: bytes of the text.
    """

    data: bytes
    pairs: tuple[tuple[int, int], ...]
    size: int


def packed(text: str) -> Packed:
    """The text, packed.

    Raises:
        UnicodeEncodeError: it is not ASCII.
    """
    data = text.encode("ascii")
    pairs: list[tuple[int, int]] = []
    while len(pairs) < _CODES:
        counts = Counter(pairwise(data))
        pair = max(counts, key=lambda each: (counts[each], each), default=None)
        if pair is None or counts[pair] < _LEAST:
            break
        data = data.replace(bytes(pair), bytes([FIRST + len(pairs)]))
        pairs.append(pair)
    return Packed(data, tuple(pairs), len(text))
