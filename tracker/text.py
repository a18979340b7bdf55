"""Values as text for people: aligned tables, with colour on a terminal only. Knows no database.

What bundles and programmes say is shown with control characters escaped: a name must not drive a terminal.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence

_COLOURS = {
    "pass": "32", "verified": "32", "completed": "32", "fail": "31", "failed": "31", "unknown": "33",
    "interrupted": "33", "running": "36", "in-progress": "36", "implemented": "36",
}  # fmt: skip


_FRACTION = re.compile(r"(?<=:\d\d)\.\d+")
_SHORT = 12


def plain(value: object) -> str:
    """Give a value as one line of printable text; nothing is `-`."""
    text = "-" if value is None or value == "" else str(value)
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def counted(number: int, name: str) -> str:
    """Give a number with what it counts: `1 item`, `2 items`."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def second(time: str | None) -> str | None:
    """Give a time as tables show it: without the fraction of its second."""
    return time and _FRACTION.sub("", time)


def short(digest: str | None) -> str | None:
    """Give the beginning of a digest, as tables show it."""
    return digest and digest[:_SHORT]


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Give rows as aligned columns under their heads; numbers to the right."""
    body = [tuple(map(plain, row)) for row in rows]
    numeric = [bool(body) and all(_is_number(row[at]) for row in body) for at in range(len(heads))]
    widths = [max(len(row[at]) for row in (tuple(heads), *body)) for at in range(len(heads))]
    colour = _has_colours()
    lines = []
    for number, row in enumerate((tuple(heads), *body)):
        cells = [
            cell.rjust(widths[at]) if numeric[at] else cell.ljust(widths[at]) for at, cell in enumerate(row)
        ]
        last = len(cells) - 1
        cells[last] = cells[last].rstrip()
        lines.append(
            "  ".join(_painted(cell, row[at]) if colour and number else cell for at, cell in enumerate(cells))
        )
    return "\n".join(line.rstrip() for line in lines)


def fields(pairs: Iterable[tuple[str, object]]) -> str:
    """Give names and values, one pair a line, the values aligned; pairs without a value are left out."""
    kept = [(name, plain(value)) for name, value in pairs if value is not None and value != ""]
    width = max((len(name) for name, _ in kept), default=0)
    colour = _has_colours()
    return "\n".join(
        f"{name.ljust(width)}  {_painted(said, said) if colour else said}" for name, said in kept
    )


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).removeprefix("-").isdigit()


def _painted(cell: str, word: str) -> str:
    code = _COLOURS.get(word)
    return f"\x1b[{code}m{cell}\x1b[0m" if code else cell


def _has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
