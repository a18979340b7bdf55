"""Narrow words: operations rounded once more are exact, and what is no such word is refused at its place."""

from __future__ import annotations

import math
import operator
import random
import struct
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from declared import VECTOR, VECTOR_ROWS, planned, run_text, star, system_text, write_rows

from orchestrator.errors import Label, RefusedError
from orchestrator.oracle.reference import Reference
from orchestrator.plan.derive import derive
from orchestrator.plan.witness import SAMPLES_OF_A_ROLE, witness
from orchestrator.plan.words import BINARY32, BINARY64
from orchestrator.spec.read import read_run


def nearest(value: Fraction) -> float:
    """The binary32 number nearest to a rational, ties to even, by integers alone."""
    if value == 0:
        return 0.0
    exponent = math.floor(math.log2(abs(value))) - 23
    while abs(value) >= Fraction(2) ** (exponent + 24):
        exponent += 1
    while abs(value) < Fraction(2) ** (exponent + 23):
        exponent -= 1
    exponent = max(exponent, -149)
    return float(round(value / Fraction(2) ** exponent) * Fraction(2) ** exponent)


@pytest.mark.parametrize("sign", ["+", "-", "*", "/"])
def test_one_operation_rounded_once_more_is_the_narrow_one(sign: str) -> None:
    chance = random.Random(sign)
    operation = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}[sign]
    for _ in range(20000):
        left, right = (
            BINARY32.rounded(chance.uniform(1, 2) * 2.0 ** chance.randint(-60, 60)) for _ in range(2)
        )
        exact = operation(Fraction(left), Fraction(right))
        assert BINARY32.rounded(operation(left, right)) == nearest(exact), (left, sign, right)


def test_words_are_what_struct_says() -> None:
    chance = random.Random(0)
    for _ in range(1000):
        number = chance.uniform(-1e38, 1e38)
        assert BINARY32.rounded(number) == struct.unpack("f", struct.pack("f", number))[0]
        assert BINARY64.rounded(number) == number
    assert BINARY32.rounded(1e39) == math.inf


@pytest.mark.parametrize(
    ("changes", "label", "key"),
    [
        ({"rate": "1e-60"}, Label.VALUE_RANGE, "rate"),
        ({"rate": "1e60"}, Label.VALUE_RANGE, "rate"),
        ({"state": "{v: {size: 3, initial: [0, 1e39, 0]}}"}, Label.VALUE_RANGE, "state.v.initial"),
        ({"evaluate": ["square = 1e39 * e", "loss = square"]}, Label.EXPRESSION_TYPE, "evaluate[0]"),
    ],
)
def test_what_is_no_such_word_is_refused(
    tmp_path: Path, changes: dict[str, object], label: Label, key: str
) -> None:
    write_rows(tmp_path / "samples.csv", VECTOR_ROWS)
    text = system_text(VECTOR, **changes)
    (tmp_path / "run.yaml").write_text(run_text({"root": 5, "worker": 0}), encoding="utf-8")
    (tmp_path / "system.yaml").write_text(text, encoding="utf-8")
    assert derive(read_run(tmp_path / "run.yaml"))
    (tmp_path / "system.yaml").write_text(text.replace("binary64", "binary32"), encoding="utf-8")
    with pytest.raises(RefusedError) as raised:
        derive(read_run(tmp_path / "run.yaml"))
    assert [(each.label, each.key) for each in raised.value.refusals] == [(label, key)]


def test_samples_are_rounded_or_refused(tmp_path: Path) -> None:
    write_rows(tmp_path / "samples.csv", [*VECTOR_ROWS[:4], (0.1, 1e39, 0.0, 0.0)])
    (tmp_path / "system.yaml").write_text(
        system_text(VECTOR).replace("binary64", "binary32"), encoding="utf-8"
    )
    (tmp_path / "run.yaml").write_text(run_text({"root": 5, "worker": 0}), encoding="utf-8")
    with pytest.raises(RefusedError) as raised:
        derive(read_run(tmp_path / "run.yaml"))
    assert [each.label for each in raised.value.refusals] == [Label.DATA_FORMAT]
    write_rows(tmp_path / "samples.csv", [*VECTOR_ROWS[:4], (0.1, 1.0, 0.0, 0.0)])
    made = derive(read_run(tmp_path / "run.yaml"))
    assert made.words[16] == BINARY32.rounded(0.1) != 0.1
    assert len(made.samples_of(made.plan.roles[0])) == 4 * 5 * 4


def test_another_width_is_another_system(tmp_path: Path) -> None:
    wide = star(tmp_path).plan.system
    assert replace(wide, numerics="binary32-ordered").digest != wide.digest


def test_the_witness_tells_the_order_of_narrow_words_too(tmp_path: Path) -> None:
    of = planned(tmp_path, VECTOR, VECTOR_ROWS, {"root": 2, "idle": 0, "worker": 3})
    narrow = replace(of.plan, system=replace(of.plan.system, numerics="binary32-ordered"))
    made = witness(replace(of, plan=narrow))
    version = Reference(made.plan, made.words).at(1)
    assert set(version.words) == {BINARY32.rounded(1 / (3 * SAMPLES_OF_A_ROLE))}
