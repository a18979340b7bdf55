"""The shipped samples are what specs/data/README.md says of them, and the systems over them learn."""

import math
from pathlib import Path

import pytest

from orchestrator.spec.data import read_samples
from orchestrator.spec.read import read_lane, read_system

SPECS = Path(__file__).parents[3] / "specs"


def test_every_column_of_the_diabetes_study_is_standardised() -> None:
    samples = read_samples(SPECS / "data" / "diabetes.csv", 11)
    assert samples.rows == 442
    for column in range(11):
        values = samples.words[column::11]
        mean = math.fsum(values) / samples.rows
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / samples.rows)
        assert mean == pytest.approx(0, abs=1e-13)
        assert deviation == pytest.approx(1, abs=1e-13)


def test_the_features_of_the_breast_cancer_data_are_standardised_and_its_labels_are_not() -> None:
    samples = read_samples(SPECS / "data" / "breast_cancer.csv", 11)
    assert samples.rows == 569
    for column in range(10):
        values = samples.words[column::11]
        assert math.fsum(values) / samples.rows == pytest.approx(0, abs=1e-13)
        assert math.fsum(value * value for value in values) / samples.rows == pytest.approx(1)
    labels = samples.words[10::11].tolist()
    assert (labels.count(1.0), labels.count(0.0)) == (357, 212)


def test_the_licence_of_the_data_goes_with_it() -> None:
    licence = (SPECS / "data" / "LICENSE.scikit-learn").read_text(encoding="utf-8")
    assert licence.startswith("BSD 3-Clause License\n")
    assert "scikit-learn developers" in licence


def test_one_update_tells_weighted_from_unweighted() -> None:
    run = read_lane(SPECS.parent / "lanes" / "samples.yaml").run
    words = read_samples(run.system.data, run.system.width).words
    rows = [(words[index], words[index + 1]) for index in range(0, len(words), 2)]
    gradients = [(0 * x - y) * x for x, y in rows]
    first = run.samples[0]
    weighted = math.fsum(gradients) / len(rows)
    by_role = (gradients[0] / first + math.fsum(gradients[first:]) / run.samples[1]) / 2
    assert 0 - run.system.rate * weighted == 1 / 2
    assert 0 - run.system.rate * by_role == 9 / 16


def test_the_rate_of_least_squares_lets_the_loss_fall_at_every_update() -> None:
    system = read_system(SPECS / "systems" / "least-squares.yaml")
    words = read_samples(system.data, 11).words
    rows = [words[index : index + 11] for index in range(0, len(words), 11)]
    w, losses = [0.0] * 10, []
    for _ in range(61):
        errors = [sum(a * b for a, b in zip(w, row, strict=False)) - row[10] for row in rows]
        losses.append(sum(0.5 * error * error for error in errors))
        means = [
            sum(error * row[i] for error, row in zip(errors, rows, strict=True)) / len(rows)
            for i in range(10)
        ]
        w = [value - system.rate * mean for value, mean in zip(w, means, strict=True)]
    assert losses[0] == pytest.approx(221)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] / 2
