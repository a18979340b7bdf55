"""Progress of a program of the user's own: lines `update loss` or `update state loss`.

Such a program may write none, or not one for every update; what it writes goes forward, and is finite.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_UPDATE = re.compile(r"[0-9]{1,10}", re.ASCII)
_LOSS = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?|nan|inf)", re.ASCII)
_FIELDS = (2, 3)  # update and loss, and between them a state that is only compared


@dataclass(frozen=True)
class Line:
    """One line: the update, the state as the program calls it (may be empty), and the loss as written."""

    update: int
    state: str
    loss: str

    @property
    def value(self) -> float:
        """The loss as a number."""
        return float(self.loss)


def parse(data: bytes) -> tuple[tuple[Line, ...], str]:
    """The lines up to the first that is none, and what is wrong with that one; empty if nothing is."""
    found: list[Line] = []
    whole, _, rest = data.rpartition(b"\n")
    for number, text in enumerate(whole.split(b"\n") if whole or rest != data else [], start=1):
        fields = text.decode("utf-8", "replace").split()
        if len(fields) not in _FIELDS or not _UPDATE.fullmatch(fields[0]) or not _LOSS.fullmatch(fields[-1]):
            return tuple(found), f"line {number} is {text[:80]!r}, expected `update loss`"
        line = Line(int(fields[0]), fields[1] if len(fields) == _FIELDS[1] else "", fields[-1])
        if not math.isfinite(line.value):
            return tuple(found), f"line {number}: the loss is not finite ({line.loss})"
        found.append(line)
    return tuple(found), f"what follows line {len(found)} is no whole line" if rest else ""


def fault(lines: tuple[Line, ...], first: int, last: int) -> str:
    """Why these are not the lines of a run from update `first` to `last`; empty if they may be."""
    before = first - 1
    for line in lines:
        if not before < line.update <= last:
            return f"update {line.update} after {before} (expected {before + 1} to {last})"
        before = line.update
    return ""


def first_difference(left: tuple[Line, ...], right: tuple[Line, ...]) -> tuple[int, str]:
    """The first update of which two programs say something else, and what; (0, "") if there is none."""
    for one, other in zip(left, right, strict=False):
        if one.update != other.update:
            update = min(one.update, other.update)
            return update, f"a line for update {other.update}, expected one for {one.update}"
        if one != other:
            key = "loss" if one.loss != other.loss else "state"
            return one.update, f"{key} {getattr(other, key)}, expected {getattr(one, key)}"
    if len(left) != len(right):
        longer = max(left, right, key=len)
        return longer[min(len(left), len(right))].update, f"{len(right)} lines, expected {len(left)}"
    return 0, ""
