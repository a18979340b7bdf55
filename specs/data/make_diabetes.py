"""Makes diabetes.csv from the two data files of a scikit-learn distribution; standard library only.

    python make_diabetes.py PATH/sklearn/datasets/data > diabetes.csv

Every column of x and y is standardised: its mean is subtracted and it is divided by its population standard
deviation. Sums are exact (`math.fsum`), so the file is the same on every machine.
"""

# ruff: noqa: INP001 - a script beside its data, in no package

from __future__ import annotations

import gzip
import math
import sys
from collections.abc import Sequence
from pathlib import Path


def read(path: Path) -> list[list[float]]:
    """Gives the rows of a gzipped table with blanks between numbers."""
    with gzip.open(path, "rt", encoding="ascii") as file:
        return [[float(cell) for cell in line.split()] for line in file]


def standardise(column: Sequence[float]) -> list[float]:
    """Gives the column with mean 0 and standard deviation 1."""
    mean = math.fsum(column) / len(column)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in column) / len(column))
    return [(value - mean) / deviation for value in column]


def write(columns: Sequence[Sequence[float]]) -> None:
    """Writes columns x0, x1, ... and y as a table to standard output."""
    lines = [",".join([*(f"x{index}" for index in range(len(columns) - 1)), "y"])]
    lines += [",".join(map(repr, row)) for row in zip(*columns, strict=True)]
    sys.stdout.write("\n".join(lines) + "\n")


def main() -> None:
    """Writes the table to standard output."""
    folder = Path(sys.argv[1])
    x, y = read(folder / "diabetes_data_raw.csv.gz"), read(folder / "diabetes_target.csv.gz")
    rows = [[*inputs, *target] for inputs, target in zip(x, y, strict=True)]
    write([standardise(column) for column in zip(*rows, strict=True)])


if __name__ == "__main__":
    main()
