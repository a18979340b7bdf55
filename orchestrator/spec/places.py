"""Places in a text: lines and columns from character offsets, and what a parser collects on its way.

Knows texts and key paths; must not know a notation. Lines end at a line feed alone, whatever else a
notation's own library takes for a line end, because that is how editors count.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.errors import Label, Refusal, Where

KeyPath = tuple[str | int, ...]
MAX_DEPTH = 32
MAX_INTEGER = (1 << 53) - 1  # the largest that JSON carries everywhere without loss


@dataclass(frozen=True)
class Place:
    """Line and column, from 1, of a value and, inside a mapping, of its key."""

    value: tuple[int, int]
    key: tuple[int, int] | None = None


class Lines:
    """Offsets of a text's lines; turns a character offset into (line, column) and back."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> tuple[int, int]:
        """Gives line and column, from 1, of a character offset."""
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, place: tuple[int, int]) -> int:
        """Gives the character offset of a line and column."""
        return self._starts[place[0] - 1] + place[1] - 1


@dataclass
class Collector:
    """What a parser finds: places by key path, and refusals."""

    path: str
    lines: Lines
    places: dict[KeyPath, Place] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)

    def refuse(self, label: Label, message: str, offset: int, key_path: KeyPath = (), hint: str = "") -> None:
        """Notes a refusal at a character offset."""
        line, column = self.lines.place(offset)
        self.refusals.append(Refusal(label, message, Where(self.path, line, column), dotted(key_path), hint))

    def offset_near(self, key_path: KeyPath) -> int:
        """Gives the offset of a value, or of the nearest parent whose place is known."""
        while key_path and key_path not in self.places:
            key_path = key_path[:-1]
        place = self.places.get(key_path)
        return self.lines.offset(place.value) if place else 0

    def put(self, key_path: KeyPath, value: int, key: int | None = None) -> None:
        """Notes where a value, and its key, begin."""
        self.places[key_path] = Place(self.lines.place(value), None if key is None else self.lines.place(key))


def dotted(key_path: Sequence[str | int]) -> str:
    """Gives a key path as a person reads it: `pairings.worker.target`, `update[1]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{visible(step)}" for step in key_path).lstrip(
        "."
    )


def visible(text: str, limit: int = 60) -> str:
    """Gives a text as it can be shown: one line, look-alike and control characters escaped, not too long."""
    text = text[: limit + 1]  # no character becomes fewer
    escaped = text.encode("ascii", "backslashreplace").decode("ascii")
    escaped = "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in escaped
    )
    return escaped if len(escaped) <= limit else escaped[: limit - 3] + "..."
