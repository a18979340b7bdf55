"""`nvidia-smi --query-gpu` and `--query-compute-apps` as CSV, with header and units or without.

Columns are known by their names, from the header or from whoever asked; what has none cannot be read. A line
that does not end is not taken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from orchestrator.errors import Label
from orchestrator.probe import values
from orchestrator.probe.inventory import Card, Fault, Process, Reading
from orchestrator.probe.smi_fields import Field, card_of, first, process_of, release_of
from orchestrator.probe.values import read

QUERY: Final = "nvidia-smi --query-gpu"
APPS: Final = "nvidia-smi --query-compute-apps"
_COLUMN: Final = re.compile(r"([a-z0-9_.]+)(?: \[[A-Za-z%/]+\])?", re.ASCII | re.IGNORECASE)
_FEWEST: Final = 2
_WARNING: Final = "WARNING: "
"""Before what nvidia-smi says beside its rows, as of an InfoROM."""
_NAMES: Final = ("process_name", "name")
Row = Mapping[str, str]


def read_query(text: str, columns: Sequence[str] | None = None) -> Reading:
    """The cards of `--query-gpu`.

    Args:
        text: all that the tool printed.
        columns: in order, where there is no header.
    """
    rows, fault = _rows(text, columns, QUERY, ("name", "gpu_name", "index", "pci.bus_id"))
    cards = tuple(_card(row, place) for place, row in enumerate(rows[: values.MOST_CARDS + 1]))

    def all_of(name: str) -> str | None:
        return " and ".join(dict.fromkeys(row[name] for row in rows if name in row)) or None

    return Reading(
        source=QUERY,
        driver=release_of(lambda field: all_of(field.columns[0])),
        attached=read(all_of("count"), values.whole),
        cards=cards,
        faults=fault,
    )


def read_apps(text: str, columns: Sequence[str] | None = None) -> Reading:
    """The compute processes of `--query-compute-apps`, each under its card; types C and C+G, not told which.

    Args:
        text: all that the tool printed.
        columns: in order, where there is no header.
    """
    lines = text.split("\n")
    kept = [line for line in lines if not _is_untold(line)]
    rows, fault = _rows("\n".join(kept), columns, APPS, ("pid", "gpu_uuid", "gpu_bus_id"))
    cards: dict[tuple[str | None, str | None], tuple[Card, list[Process]]] = {}
    elsewhere = []
    for row in rows:
        bus = read(first(row.get(name) for name in ("gpu_bus_id", "pci.bus_id")), values.bus_id)
        uuid = read(first(row.get(name) for name in ("gpu_uuid", "uuid")), values.uuid)
        process = _process(row)
        if bus.known is None and uuid.known is None:
            elsewhere.append(process)
            continue
        card = Card(bus, uuid=uuid, sources=(APPS,))
        cards.setdefault((bus.known, uuid.known), (card, []))[1].append(process)
    told = tuple(replace(card, processes=tuple(listed)) for card, listed in cards.values())
    notes = () if len(kept) == len(lines) else (f"{APPS}: processes of a card are not told",)
    return Reading(APPS, cards=told, elsewhere=tuple(elsewhere), faults=fault, notes=notes)


def _is_untold(line: str) -> bool:
    """Whether a row says of everything that it is not told: that is neither a process nor none."""
    return all(read(cell, str).state == "unsupported" for cell in _cells(line))


def _card(row: Row, place: int) -> Card:
    def find(field: Field) -> str | None:
        return first(row.get(name) for name in field.columns)

    index = read(row.get("index", str(place)), values.whole).known
    return card_of(find, index=index, source=QUERY, more={})


def _process(row: Row) -> Process:
    names = {"pid": ("pid",), "name": _NAMES, "used": ("used_gpu_memory", "used_memory")}
    return process_of(lambda key: first(row.get(name) for name in names[key]), None)


def _rows(
    text: str, columns: Sequence[str] | None, source: str, expected: Sequence[str]
) -> tuple[list[Row], tuple[Fault, ...]]:
    """The rows by column, and why some cannot be taken."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    torn = lines.pop().strip()
    lines = [line for line in lines if line.strip() and not line.startswith(_WARNING)]
    if not any(", " in line for line in lines):
        lines = [line.replace(",", ", ") for line in lines]  # nvidia-smi has the blank; what went on may not
    if columns is None:
        place = next((i for i, line in enumerate(lines) if _is_header(line, expected)), None)
        if place is None:
            return [], (_fault(source, "no header that names the columns", "one"),)
        columns = [_name(cell) for cell in _cells(lines[place])]
        lines = lines[place + 1 :]
    rows: list[Row] = []
    faults = [_fault(source, f"a last line that does not end, `{torn}`", "whole lines")] if torn else []
    for line in lines:
        row = _row(line, columns)
        if row is None:
            faults.append(_fault(source, f"`{line}`", f"{len(columns)} cells"))
        else:
            rows.append(row)
    if len(set(columns)) < len(columns):
        return [], (_fault(source, "a column twice", "each once"),)
    return rows, tuple(faults)


def _row(line: str, columns: Sequence[str]) -> Row | None:
    """Cells by column; a process's name may hold commas, since nothing is quoted."""
    cells = _cells(line)
    more = len(cells) - len(columns)
    at = next((i for i, name in enumerate(columns) if name in _NAMES and "pid" in columns), None)
    if more > 0 and at is not None:
        cells[at : at + more + 1] = [", ".join(cells[at : at + more + 1])]
    return dict(zip(columns, cells, strict=True)) if len(cells) == len(columns) else None


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(", ")]


def _name(cell: str) -> str:
    match = _COLUMN.fullmatch(cell)
    return match[1].lower() if match else cell


def _is_header(line: str, expected: Sequence[str]) -> bool:
    names = {_name(cell) for cell in _cells(line)}
    return len(names) >= _FEWEST and not names.isdisjoint(expected)


def _fault(source: str, got: str, expected: str) -> Fault:
    message = f"a table cannot be read (got {values.one_line(got)}, expected {expected})"
    return Fault(Label.DEVICE_INVENTORY, message, source=source)
