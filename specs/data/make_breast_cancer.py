"""Makes breast_cancer.csv from the data file of a scikit-learn distribution; standard library only.

    python make_breast_cancer.py PATH/sklearn/datasets/data > breast_cancer.csv

Of the thirty features the first ten are taken, the means over a sample's nuclei, each standardised as in
`make_diabetes.py`. y is left as it is: 0 for malignant, 1 for benign.
"""

# ruff: noqa: INP001 - a script beside its data, in no package

from __future__ import annotations

import csv
import sys
from pathlib import Path

from make_diabetes import standardise, write

FEATURES = 10


def main() -> None:
    """Writes the table to standard output."""
    with (Path(sys.argv[1]) / "breast_cancer.csv").open(encoding="ascii", newline="") as file:
        _, *rows = csv.reader(file)
    columns = [[float(cell) for cell in column] for column in zip(*rows, strict=True)]
    write([*map(standardise, columns[:FEATURES]), [float(int(label)) for label in columns[-1]]])


if __name__ == "__main__":
    main()
