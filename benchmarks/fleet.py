"""What a fleet of 200,000 roles costs to plan, beside a tenth of it and an interpreter that does nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.content import CONTENT, orch
from benchmarks.measure import Row, command, row, take_turns

TURNS = 9
SPEC = CONTENT / "specs" / "runs" / "fleet-200k.yaml"


def run(folder: Path) -> tuple[Row, ...]:
    bare, whole, tenth = "python -c pass", "orch plan of 200,000 roles", "orch plan of 20,000 roles"
    one = "orch plan --role of one of 200,000"
    fewer = folder / "fleet-20k.yaml"
    text = SPEC.read_text(encoding="utf-8").replace("../systems", str(CONTENT / "specs" / "systems"))
    fewer.write_text(text.replace("99999", "9999").replace("100000", "10000"), encoding="utf-8")
    turns = take_turns(
        (
            command(bare, [sys.executable, "-c", "pass"], folder),
            command(whole, [*orch(), "plan", str(SPEC), "--json"], folder),
            command(tenth, [*orch(), "plan", str(fewer), "--json"], folder),
            command(one, [*orch(), "plan", str(SPEC), "--role", "worker123456"], folder),
        ),
        TURNS,
    )
    return row(turns, whole, tenth, "1.5"), row(turns, whole, bare, "2 s"), row(turns, one, bare, "0.5 s")
