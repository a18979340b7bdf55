"""Side by side in one run: experiments take turns, and ratios are taken turn by turn.

What slows one turn down (another process, a cold disk) slows its neighbours down too, so a median of the
turns' ratios holds still where a ratio of two medians, measured one after the other, does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

Experiment = Callable[[], Mapping[str, float]]
"""One turn: what was measured -> seconds. Preparing and clearing away are outside those seconds."""

Turns = tuple[Mapping[str, float], ...]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        ours, theirs: what was measured, and what it stands beside.
        ours_amount, theirs_amount: medians of what was measured, or what was counted.
        ratio: median over the turns of ours / theirs.
        aim: what we want to see, a time or a ratio; empty if the row only informs.
        unit: of the two amounts: seconds, or `B`; of other things that are counted none.
    """

    ours: str
    ours_amount: float
    theirs: str
    theirs_amount: float
    ratio: float
    aim: str
    unit: str = "s"


def take_turns(experiments: Sequence[Experiment], turns: int) -> Turns:
    """Run every experiment once per turn, each turn in the opposite order of the one before."""
    taken = []
    for turn in range(turns):
        measured: dict[str, float] = {}
        for experiment in experiments if turn % 2 == 0 else reversed(experiments):
            measured.update(experiment())
        taken.append(measured)
    return tuple(taken)


def row(turns: Turns, ours: str, theirs: str, aim: str = "") -> Row:
    """Give the line that sets two of the things measured side by side."""
    return Row(
        ours=ours,
        ours_amount=median(turn[ours] for turn in turns),
        theirs=theirs,
        theirs_amount=median(turn[theirs] for turn in turns),
        ratio=median(turn[ours] / turn[theirs] for turn in turns),
        aim=aim,
    )


def timed(name: str, act: Callable[[], object], times: int = 1) -> Experiment:
    """Make an experiment of a call; a short one is called several `times` a turn, and the mean is taken."""

    def experiment() -> Mapping[str, float]:
        begun = time.perf_counter()
        for _ in range(times):
            act()
        return {name: (time.perf_counter() - begun) / times}

    return experiment


def command(name: str, argv: Sequence[str], folder: Path, **environment: str) -> Experiment:
    """Make an experiment of a command: from its start to its end, in `folder`.

    Raises:
        subprocess.CalledProcessError: it fails, and so there is nothing to measure.
    """
    return timed(name, lambda: quietly(argv, folder, **environment))


def quietly(argv: Sequence[str], folder: Path, **environment: str) -> str:
    """Run a command in `folder` and give its standard output.

    Raises:
        subprocess.CalledProcessError: it fails; what it complained of has been shown.
    """
    full = {**os.environ, **environment}
    done = subprocess.run(argv, cwd=folder, env=full, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
    done.check_returncode()
    return done.stdout


def table(rows: Iterable[Row]) -> str:
    """Give the rows as text, columns aligned."""
    head = ("measured", "", "against", "", "ratio", "aim")
    cells = [
        (
            row.ours,
            _shown(row, row.ours_amount),
            row.theirs,
            _shown(row, row.theirs_amount),
            f"{row.ratio:.2f}",
            row.aim,
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in (head, *cells)) for column in range(len(head))]
    rule = tuple("-" * width for width in widths)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in (1, 3, 4) else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (head, rule, *cells)
    )


def _shown(row: Row, amount: float) -> str:
    return _time(amount) if row.unit == "s" else f"{amount:,g} {row.unit}".rstrip()


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"
