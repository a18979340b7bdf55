"""`python -m benchmarks [NAME...]`: run them all, or some, and print one table.

Knows which benchmarks there are; must not know what any of them measures. Nothing is asserted: a ratio is for
a person to read, on the machine that it was measured on.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path
from typing import Protocol, cast

from benchmarks.measure import Row, table

NAMES = ("startup", "lane", "build", "rounds", "combine", "hashing", "fleet", "device", "ssh")


class Benchmark(Protocol):
    """What the module of a benchmark offers."""

    def run(self, folder: Path) -> tuple[Row, ...]:
        """Measure; everything that is written goes under `folder`, which is removed afterwards."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="What the parts of orch cost here."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)}; all by default")
    names = parser.parse_args().names or NAMES
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"no such benchmark (got {', '.join(unknown)}, expected {', '.join(NAMES)})")
    rows: list[Row] = []
    for name in names:
        begun = time.monotonic()
        benchmark = cast("Benchmark", importlib.import_module(f"benchmarks.{name}"))
        with tempfile.TemporaryDirectory(prefix="orch-bench-") as folder:
            rows += benchmark.run(Path(folder))
        print(f"{name}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
