"""From a command line to its end, beside an interpreter that does nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.content import CONTENT, orch, tracker
from benchmarks.measure import Row, command, quietly, row, take_turns

TURNS = 9


def run(folder: Path) -> tuple[Row, ...]:
    bare, helps, status = "python -c pass", "orch --help", "tracker status"
    database = f"sqlite:///{folder}/tracker.sqlite3"
    quietly([*tracker(), "--db", database, "load", str(CONTENT / "specs/programmes/orch.yaml")], folder)
    turns = take_turns(
        (
            command(bare, [sys.executable, "-c", "pass"], folder),
            command(helps, [*orch(), "--help"], folder),
            command(status, [*tracker(), "--db", database, "status"], folder),
        ),
        TURNS,
    )
    return row(turns, helps, bare, "0.2 s"), row(turns, status, bare, "0.45 s")
