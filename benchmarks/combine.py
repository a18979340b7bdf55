"""The combine of all roles' words on loopback, beside gloo's all-reduce, MPICH's, and a bare stream.

Two and four processes, from one word to eight million. Every cell's ways take turns; a measurement is many
rounds one after the other, over about as much time for every way, and its time is one round's at the first
process.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from benchmarks import mesh
from benchmarks.combine_ways import PACKAGES, Gloo, Way, compiled, mpich, ours, stream
from benchmarks.measure import Experiment, Row, Turns, row, take_turns
from benchmarks.peers import environment

TURNS = 9
PROCESSES = (2, 4)
SIZES = {
    "8 B": 8,
    "1 KiB": 1 << 10,
    "64 KiB": 1 << 16,
    "1 MiB": 1 << 20,
    "16 MiB": 1 << 24,
    "64 MiB": 1 << 26,
}
SMALL_BYTES, LARGE_BYTES = 1 << 16, 1 << 26
A_MEASUREMENT_NS = 30_000_000
MOST_ROUNDS = 2_000
GLOO, MPICH, STREAM = "gloo", "MPICH over TCP", "a stream of the bytes"


def run(folder: Path) -> tuple[Row, ...]:
    python = environment("bench-combine", PACKAGES)
    if python is None:
        print("combine: without gloo and MPICH", file=sys.stderr)
    role = mesh.compile_role(folder)
    plain = compiled("stream", folder)
    rows: list[Row] = []
    for processes in PROCESSES:
        with ExitStack() as stack:
            ways: dict[str, Way] = {}
            if python is not None:
                ways[GLOO] = stack.enter_context(Gloo(python, folder, processes))
                ways[MPICH] = mpich(python, folder, processes)
            ways[STREAM] = stream(plain, processes)
            for size, count in SIZES.items():
                rows += _cell(f"{processes} roles, {size}", count, ours(role, processes), ways)
    return tuple(rows)


def _cell(title: str, size: int, own: Way, ways: Mapping[str, Way]) -> list[Row]:
    """One row for each of the others."""
    experiments = [_experiment(title, own, size)]
    experiments += [_experiment(name, way, size) for name, way in ways.items()]
    turns: Turns = take_turns(experiments, TURNS)
    aims = {
        GLOO: "0.2" if size <= SMALL_BYTES else "1.0",
        MPICH: "1.0",
        STREAM: "1.7" if size == LARGE_BYTES else "",
    }
    return [row(turns, title, name, aims[name]) for name in ways]


def _experiment(name: str, way: Way, size: int) -> Experiment:
    """As many rounds as take the time of a measurement, found out beforehand."""
    tried = max(1, way(size, 2) // 2)
    rounds = max(2, min(MOST_ROUNDS, A_MEASUREMENT_NS // tried))
    return lambda: {name: way(size, rounds) / 1e9 / rounds}
