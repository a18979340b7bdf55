"""Captures of real tools, of tests/data/nvidia-smi, and how the tests hand them to the probe."""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orchestrator.probe import Inventory, read
from orchestrator.probe.recognise import recognise

FOLDER = Path(__file__).parents[2] / "data" / "nvidia-smi"
READINGS = json.loads((FOLDER / "readings.json").read_text(encoding="utf-8"))
NAMES = tuple(READINGS)


@dataclass(frozen=True)
class Said:
    """What a command left."""

    exit: int | None
    stdout: bytes
    stderr: bytes = b""


def manifest() -> list[dict[str, str]]:
    text = (FOLDER / "manifest.tsv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


@cache
def raw(name: str) -> bytes:
    return gzip.decompress((FOLDER / f"{name}.gz").read_bytes())


def kind_of(data: bytes) -> str:
    kind = recognise(data.decode("utf-8", "replace"))
    assert kind is not None
    return kind


def inventory_of(*names: str) -> Inventory:
    return read({kind_of(raw(name)): Said(0, raw(name)) for name in names})


def said(text: str, code: int | None = 0) -> Said:
    return Said(code, text.encode())


def machine(
    information: str = "", *, version: str = "", preload: str = "", bus: str = "0000:08:00.0"
) -> Said:
    """What the `machine` question prints where the kernel module lists one card, or none."""
    parts = [f"== /proc/driver/nvidia/version\n{version}\n"]
    if information:
        parts.append(f"== /proc/driver/nvidia/gpus/{bus}/information\n{information}\n")
    parts.append(f"== /etc/ld.so.preload\n{preload}\n== LD_PRELOAD\n\n")
    return said("".join([*parts, "== /proc/meminfo\nMemTotal: 1 kB\n== nvidia-smi\n\n== end\n"]))
