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

MAX_BYTES = 32 << 20
MAX_WIDTH = 1 << 20
MAX_REFUSALS = 20  # a file of the wrong kind is wrong in every line; the first few say all
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")
_PLAIN = re.compile(r"[-+.,0-9eE \n]*")
_BLOCK = 1 << 16  # characters that are read at once, as far as nothing in them is strange
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
    line = 1
    for lines in _blocks(text):
        if line == 1 and _is_header(lines[0]):
            _check_header(reading, lines.pop(0), header)
            line += 1
        if not _take(reading, lines):
            for number, row in enumerate(lines, start=line):
                _row(reading, number, row)
                if len(reading.refusals) >= MAX_REFUSALS:
                    raise RefusedError(reading.refusals[:MAX_REFUSALS])
        line += len(lines)
    if not reading.rows and not reading.refusals:
        reading.refuse(Label.DATA_SHAPE, "holds no samples (got 0 rows, expected at least 1)")
    if reading.refusals:
        raise RefusedError(reading.refusals)
    return Samples(reading.rows, width, reading.words)


def _blocks(text: str) -> Iterator[list[str]]:
    """Yields the lines, many at a time, without their ends."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + _BLOCK) + 1 or len(text)
        yield text[start:end].replace("\r\n", "\n").removesuffix("\n").split("\n")
        start = end


def _take(reading: _Reading, lines: list[str]) -> bool:
    """Takes the words of lines that are right in every way; takes none, and says so, if one line is not.

    Of the characters that are let through, `float` reads what a sample word is and nothing else.
    """
    text = "\n".join(lines)
    if not _PLAIN.fullmatch(text) or any(line.count(",") != reading.width - 1 for line in lines):
        return False
    try:
        words = array("d", map(float, text.replace("\n", ",").split(",") if lines else ()))
    except ValueError:
        return False
    if not all(map(math.isfinite, words)):
        return False
    reading.words.extend(words)
    reading.rows += len(lines)
    return True


def _cells(line: str, most: int) -> Iterator[tuple[int, str]]:
    """Yields the first cells of a line, each with its column."""
    column = 1
    for cell in line.removesuffix("\r").split(",", most)[:most]:
        stripped = cell.strip(" ")
        yield column + len(cell) - len(cell.lstrip(" ")) if stripped else column, stripped
        column += len(cell) + 1


def _is_header(line: str) -> bool:
    names = (cell for _, cell in _cells(line, MAX_WIDTH))
    return all(_LETTER.match(name) and name.lower() not in ("nan", "inf", "infinity") for name in names)


def _check_header(reading: _Reading, line: str, header: tuple[str, ...]) -> None:
    columns = line.count(",") + 1
    if columns != reading.width:
        message = f"the header has the wrong width (got {columns} columns, expected {reading.width})"
        reading.refuse(Label.DATA_SHAPE, message, 1, 1)
        return
    for (column, name), expected in zip(_cells(line, columns), header, strict=False):
        if name != expected:
            message = f"the header names another column (got {visible(name)}, expected {expected})"
            reading.refuse(Label.DATA_FORMAT, message, 1, column)
            return


def _row(reading: _Reading, number: int, line: str) -> None:
    reading.rows += 1
    columns = line.count(",") + 1
    is_empty = line.strip(" \r") == ""
    if is_empty or columns != reading.width:
        got = "an empty line" if is_empty else f"{columns} columns"
        message = f"a row has the wrong width (got {got}, expected {reading.width})"
        reading.refuse(Label.DATA_SHAPE, message, number, 1)
    for column, cell in () if is_empty else _cells(line, reading.width):
        value = float(cell) if _NUMBER.match(cell) else math.nan
        if math.isfinite(value):
            reading.words.append(value)
            continue
        got = f"`{visible(cell)}`" if cell else "nothing"
        message = f"is no sample word (got {got}, expected a finite number)"
        reading.refuse(Label.DATA_FORMAT, message, number, column)
        if len(reading.refusals) >= MAX_REFUSALS:
            return
