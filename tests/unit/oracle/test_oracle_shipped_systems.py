"""The shipped systems learn, and the functions that they make of + - * / and sqrt are what they say."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from itertools import islice, pairwise
from pathlib import Path

import pytest

from orchestrator.oracle.arithmetic import columns, compile_statements
from orchestrator.oracle.reference import NonFiniteError, Reference
from orchestrator.plan.derive import Planned, derive
from orchestrator.plan.programs import type_programs
from orchestrator.plan.separability import separability_refusals
from orchestrator.spec.read import read_run, read_system

SPECS = Path(__file__).parents[3] / "specs"
SYSTEMS = sorted((SPECS / "systems").glob("*.yaml"))


def shipped(run: str) -> Planned:
    return derive(read_run(SPECS / "runs" / f"{run}.yaml"))


def losses(run: str, updates: int) -> list[float]:
    planned = shipped(run)
    versions = Reference(planned.plan, planned.words).versions()
    return [version.results["loss"] for version in islice(versions, updates)]


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: path.stem)
def test_every_shipped_system_comes_apart(path: Path) -> None:
    spec = read_system(path)
    programs, refusals = type_programs(spec)
    assert programs is not None, refusals
    assert separability_refusals(spec, programs) == ()


@pytest.mark.parametrize(
    ("run", "updates", "first", "last"),
    [
        # 106.52 is the least loss that a line without intercept has on the standardised study
        ("diabetes", 100, 221, 108),
        ("two-layer", 200, 192, 100),
        # log(2) for each of 569 samples; a constant answer could have 376
        ("logistic", 100, 394.5, 81),
    ],
)
def test_a_step_never_raises_the_loss(run: str, updates: int, first: float, last: float) -> None:
    found = losses(run, updates)
    assert found[0] == pytest.approx(first, rel=0.01)
    assert all(after < before for before, after in pairwise(found))
    assert found[-1] < last


def test_adam_learns_and_carries_its_powers() -> None:
    found = losses("adam", 200)
    assert found[0] == pytest.approx(221)
    assert found[-1] == pytest.approx(106.52, rel=0.002)
    planned = shipped("adam")
    version = Reference(planned.plan, planned.words).at(3)
    p1, p2 = version.words[10:12]
    assert (p1, p2) == (0.9 * 0.9 * 0.9, 0.999 * 0.999 * 0.999)


def test_adam_is_the_textbooks() -> None:
    """Against the formula written with powers, in exact rationals but for the roots."""
    planned = shipped("adam")
    reference = Reference(planned.plan, planned.words)
    width, rows = planned.plan.system.sample_words, planned.plan.system.rows
    samples = [planned.words[at * width : (at + 1) * width] for at in range(rows)]
    w, m, v = [0.0] * 10, [0.0] * 10, [0.0] * 10
    for version in islice(reference.versions(), 20):
        errors = [math.fsum(a * b for a, b in zip(w, row, strict=False)) - row[10] for row in samples]
        for i in range(10):
            mean = math.fsum(error * row[i] for error, row in zip(errors, samples, strict=True)) / rows
            m[i] += (1 - 0.9) * (mean - m[i])
            v[i] += (1 - 0.999) * (mean * mean - v[i])
            bias = 1 - 0.9**version.number, 1 - 0.999**version.number
            w[i] -= 0.05 * (m[i] / bias[0]) / (math.sqrt(v[i] / bias[1]) + 1e-8)
        assert version.words[:10] == pytest.approx(w, rel=1e-9)


@pytest.mark.parametrize("run", ["wide", "wide-adam"])
def test_every_coordinate_of_a_wide_state_is_one_regression(run: str) -> None:
    planned = shipped(run)
    plan = planned.plan
    assert plan.system.sample_words == 2
    assert plan.system.parameters[0].size == 5000
    x, y = planned.words[::2], planned.words[1::2]
    first = Reference(plan, planned.words).at(1)
    mean = math.fsum(a * b for a, b in zip(x, y, strict=True)) / plan.system.rows
    step = plan.system.rate * (mean if run == "wide" else 1)
    (word,) = set(first.words[:5000])
    assert word == pytest.approx(step)


def logistic(z: list[float]) -> dict[str, list[list[float]]]:
    """Every name of the shipped statements at these z, one a sample: w and x are 0, b is z."""
    programs, refusals = type_programs(read_system(SPECS / "systems" / "logistic.yaml"))
    assert programs is not None, refusals
    zeros = [0.0] * len(z)
    store = {"w": [zeros] * 10, "x": [zeros] * 10, "b": [z], "y": [zeros]}
    for step in compile_statements(programs.contribution + programs.evaluate, store, columns(len(z))):
        step()
    return store


def grid() -> list[float]:
    """Densely around zero and where the terms change, then by magnitudes to the ends of the domain."""
    near = [k / 64 for k in range(-64 * 42, 64 * 42 + 1)] + [math.pi * k / 7 for k in range(-2000, 2001)]
    far = [
        sign * scale * 10.0**power for power in range(-320, 154, 3) for scale in (1, 7.3) for sign in (1, -1)
    ]
    return near + far + [0.0, -0.0, 5e-324, 2.0**-511, 2.0**-512, 1e154, -1e154]


def test_the_logistic_function_and_its_loss_are_within_their_bounds() -> None:
    z = grid()
    found = logistic(z)
    worst_p = worst_loss = Decimal(0)
    with localcontext(Context(prec=60, Emin=-(10**9), Emax=10**9)):
        for at, value in enumerate(z):
            exact = Decimal(value)
            if abs(exact) > 2000:  # e^-a is past all digits here
                p, far = Decimal(value > 0), Decimal(0)
            else:
                p, far = 1 / (1 + (-exact).exp()), (1 + (-abs(exact)).exp()).ln()
            worst_p = max(worst_p, abs(p - Decimal(found["p"][0][at])))
            worst_loss = max(worst_loss, abs(far - 2 * Decimal(found["artanh"][0][at])))
    assert worst_p <= Decimal(2) ** -51
    assert worst_loss <= Decimal(2) ** -51


def test_the_logistic_loss_is_what_is_left_of_a_certain_answer() -> None:
    found = logistic([0.0, 40.0, -40.0, 2000.0, -2000.0, -1e154])  # y is 0
    assert found["u"][0][3:] == [math.inf] * 3
    assert found["p"][0] == [0.5, 1.0, 0.0, 1.0, 0.0, 0.0]
    assert found["loss"][0] == [
        pytest.approx(math.log(2)),
        40.0,
        pytest.approx(math.exp(-40)),
        2000.0,
        0.0,
        0.0,
    ]


def test_past_its_domain_the_logistic_loss_leaves_the_finite_numbers(tmp_path: Path) -> None:
    assert not any(map(math.isfinite, logistic([1e155, -1e155])["loss"][0]))
    text = (SPECS / "systems" / "logistic.yaml").read_text(encoding="utf-8")
    text = text.replace("b: {size: 1, initial: 0}", "b: {size: 1, initial: 1e155}")
    text = text.replace("../data/", f"{SPECS}/data/")
    (tmp_path / "system.yaml").write_text(text, encoding="utf-8")
    run = (SPECS / "runs" / "logistic.yaml").read_text(encoding="utf-8")
    (tmp_path / "run.yaml").write_text(
        run.replace("../systems/logistic.yaml", "system.yaml"), encoding="utf-8"
    )
    planned = derive(read_run(tmp_path / "run.yaml"))
    with pytest.raises(NonFiniteError):
        Reference(planned.plan, planned.words).at(1)
