"""Sample files: comma-separated decimal numbers, one sample a line.

Knows rows and columns; must not know what a column means. The words come out as they are to be computed with:
IEEE 754 binary64, each decimal rounded once.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.spec.document import decode, read_bytes
from orchestrator.spec.places import visible

MAX_BYTES = 256 << 20
MAX_WIDTH = 1 << 20
MAX_REFUSALS = 20  # a file of the wrong kind is wrong in every line; the first few say all
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")
_EMPTY_LINE = [(1, "")]
_LETTER = re.compile(r"[A-Za-z_]")


@dataclass(frozen=True)
class Samples:
    """Every sample word, row by row: `rows` rows of `width` binary64 words."""

    rows: int
    width: int
    words: array[float]


@dataclass
class _Reading:
    path: Path
    width: int
    words: array[float] = field(default_factory=lambda: array("d"))
    rows: int = 0
    refusals: list[Refusal] = field(default_factory=list)

    def refuse(self, label: Label, message: str, line: int = 0, column: int = 0) -> None:
        self.refusals.append(Refusal(label, message, Where(str(self.path), line, column)))


def read_samples(path: Path, width: int, header: tuple[str, ...] = ()) -> Samples:
    """Reads a sample file.

    Args:
        path: a CSV file: numbers, separated by commas; a first line with names is a header.
        width: how many words one sample has.
        header: the names that a header must have, if there is one; empty for any.

    Returns:
        The words, row by row.

    Raises:
        RefusedError: with `data-format` for what is no finite number and for a header with other names,
            `data-shape` for rows of another width or no rows, each at its line and column.
    """
    data, refusal = read_bytes(path, MAX_BYTES)
    text = None
    if data is not None:
        text, refusal = decode(path, data)
    if text is None:
        raise RefusedError([refusal] if refusal else [])
    reading = _Reading(path, width)
    for number, cells in _rows(text):
        if number == 1 and _is_header(cells):
            _check_header(reading, cells, header)
        else:
            _row(reading, number, cells)
        if len(reading.refusals) >= MAX_REFUSALS:
            break
    if not reading.rows and not reading.refusals:
        reading.refuse(Label.DATA_SHAPE, "holds no samples (got 0 rows, expected at least 1)")
    if reading.refusals:
        raise RefusedError(reading.refusals)
    return Samples(reading.rows, width, reading.words)


def _rows(text: str) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """Yields line number and cells, each with its column."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    for number, line in enumerate(lines, start=1):
        column = 1
        cells = []
        for cell in line.removesuffix("\r").split(","):
            stripped = cell.strip(" ")
            cells.append((column + len(cell) - len(cell.lstrip(" ")) if stripped else column, stripped))
            column += len(cell) + 1
        yield number, cells


def _is_header(cells: list[tuple[int, str]]) -> bool:
    return all(_LETTER.match(cell) and cell.lower() not in ("nan", "inf", "infinity") for _, cell in cells)


def _check_header(reading: _Reading, cells: list[tuple[int, str]], header: tuple[str, ...]) -> None:
    names = tuple(cell for _, cell in cells)
    if len(names) != reading.width:
        message = f"the header has the wrong width (got {len(names)} columns, expected {reading.width})"
        reading.refuse(Label.DATA_SHAPE, message, 1, 1)
        return
    for (column, name), expected in zip(cells, header, strict=False):
        if name != expected:
            message = f"the header names another column (got {visible(name)}, expected {expected})"
            reading.refuse(Label.DATA_FORMAT, message, 1, column)
            return


def _row(reading: _Reading, line: int, cells: list[tuple[int, str]]) -> None:
    reading.rows += 1
    if len(cells) != reading.width:
        got = f"{len(cells)} columns" if cells != _EMPTY_LINE else "an empty line"
        message = f"a row has the wrong width (got {got}, expected {reading.width})"
        reading.refuse(Label.DATA_SHAPE, message, line, 1)
    for column, cell in cells if cells != _EMPTY_LINE else ():
        value = float(cell) if _NUMBER.match(cell) else math.nan
        if math.isfinite(value):
            reading.words.append(value)
        else:
            got = f"`{visible(cell)}`" if cell else "nothing"
            reading.refuse(
                Label.DATA_FORMAT, f"is no sample word (got {got}, expected a finite number)", line, column
            )
