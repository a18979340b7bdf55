"""A small chart of one series in text: bars of eighths of a character, or `#` where those cannot be shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_ASCII: Final = " #"


def can_draw(encoding: str | None) -> bool:
    """Say whether an encoding has the characters of bars."""
    try:
        _EIGHTHS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def chart(
    values: Sequence[float], *, width: int = 60, height: int = 6, columns: int = 80, blocks: bool = True
) -> tuple[str, ...]:
    """Draw a series from left to right.

    Args:
        values: finite numbers; where there are more than `width`, each column shows the last of its share.
        width: most bars.
        height: rows.
        columns: of a line at most, labels included; there is at least one bar.
        blocks: whether block characters may be used.

    Returns:
        `height` lines, the first with the highest value, the last with the lowest; none for no finite value.
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ()
    longest = max(len(f"{value:.6g}") for value in finite)
    shown = _thinned(finite, max(1, min(width, columns - longest - 1)))
    low, high = min(shown), max(shown)
    labels = [""] * height
    labels[0], labels[-1] = f"{high:.6g}", f"{low:.6g}"
    margin = max(map(len, labels))
    steps = _EIGHTHS if blocks else _ASCII
    bars = [_level(value, low, high) * height for value in shown]
    rows = []
    for row in range(height):
        floor = height - 1 - row
        cells = "".join(steps[_filled(bar - floor, len(steps) - 1)] for bar in bars)
        rows.append(f"{labels[row]:>{margin}} {cells}".rstrip())
    return tuple(rows)


def _thinned(values: Sequence[float], width: int) -> list[float]:
    count = len(values)
    columns = min(count, width)
    return [values[(column + 1) * count // columns - 1] for column in range(columns)]


def _level(value: float, low: float, high: float) -> float:
    """Give the height of a bar in (0, 1]: the lowest value still shows as a thin one."""
    thin = 1 / 48
    if low == high:
        return 0.5
    # halves keep the difference of two huge numbers finite; that of two tiny ones would be lost with them
    scale = 1.0 if math.isfinite(high - low) else 0.5
    return thin + (1 - thin) * ((value * scale - low * scale) / (high * scale - low * scale))


def _filled(part: float, steps: int) -> int:
    return min(steps, max(0, math.ceil(part * steps - 1e-9)))
