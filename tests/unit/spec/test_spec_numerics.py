"""The numerical contract: its short names, and the long form that declares a bound."""

import math
from pathlib import Path

import pytest
from declared import SCALAR, SCALAR_ROWS, planned, system_text, write_rows

from orchestrator.errors import Label
from orchestrator.spec.matrix import systems_fit
from orchestrator.spec.numerics import Bound
from orchestrator.spec.read import read_system, validate

NEAR = "{kind: approximate, word: binary64, relative: 1e-9}"


def refused(folder: Path, numerics: str) -> list[tuple[str, str]]:
    write_rows(folder / "samples.csv", SCALAR_ROWS)
    path = folder / "system.yaml"
    path.write_text(system_text(SCALAR, numerics=numerics))
    return [(refusal.label, refusal.key) for refusal in validate((path,))]


@pytest.mark.parametrize(
    "numerics",
    [
        "binary64-ordered",
        "binary32-ordered",
        NEAR,
        "{kind: approximate, word: binary32, relative: 1e-3, absolute: 1e-6}",
    ],
)
def test_short_names_and_a_bounded_long_form_are_read(tmp_path: Path, numerics: str) -> None:
    assert refused(tmp_path, numerics) == []


@pytest.mark.parametrize("amount", ["0", "0.0", "-1e-9", ".inf", "-.inf", ".nan", "1", "2.5"])
@pytest.mark.parametrize("key", ["relative", "absolute"])
def test_a_bound_that_bounds_nothing_is_refused_at_its_place(tmp_path: Path, key: str, amount: str) -> None:
    bounds = {"relative": "1e-9", "absolute": "1e-9"} | {key: amount}
    said = ", ".join(f"{name}: {value}" for name, value in bounds.items())
    found = refused(tmp_path, f"{{kind: approximate, word: binary64, {said}}}")
    assert found == [(Label.VALUE_RANGE, f"numerics.{key}")]


@pytest.mark.parametrize(
    ("numerics", "expected"),
    [
        ("{kind: approximate, word: binary64}", [(Label.FIELD_MISSING, "numerics.relative")]),
        (
            "{kind: approximate, word: binary64, absolute: 1e-9}",
            [(Label.FIELD_MISSING, "numerics.relative")],
        ),
        ("{kind: approximate, relative: 1e-9}", [(Label.FIELD_MISSING, "numerics.word")]),
        ("{kind: ordered, word: binary64, relative: 1e-9}", [(Label.VALUE_CHOICE, "numerics.kind")]),
        ("{kind: approximate, word: bfloat16, relative: 1e-9}", [(Label.VALUE_CHOICE, "numerics.word")]),
        (
            "{kind: approximate, word: binary64, relative: 1e-9, ulps: 4}",
            [(Label.KEY_UNKNOWN, "numerics.ulps")],
        ),
        ("{kind: approximate, word: binary64, relative: true}", [(Label.VALUE_TYPE, "numerics.relative")]),
        ("binary64-approximate", [(Label.VALUE_CHOICE, "numerics")]),
        ("1e-9", [(Label.VALUE_TYPE, "numerics")]),
        ("[binary64-ordered]", [(Label.VALUE_TYPE, "numerics")]),
    ],
)
def test_what_declares_no_contract_is_refused(
    tmp_path: Path, numerics: str, expected: list[tuple[str, str]]
) -> None:
    assert refused(tmp_path, numerics) == expected


def test_the_contract_and_its_bound_are_in_the_identity(tmp_path: Path) -> None:
    roles = {"coordinator": 1, "worker": 2}
    contracts = (
        "binary64-ordered",
        NEAR,
        "{kind: approximate, word: binary64, relative: 1.0e-09}",
        "{kind: approximate, word: binary64, relative: 1e-8}",
        "{kind: approximate, word: binary64, relative: 1e-9, absolute: 1e-12}",
        "{kind: approximate, word: binary32, relative: 1e-9}",
    )
    digests = [
        planned(tmp_path / str(at), SCALAR, SCALAR_ROWS, roles, numerics=contract).plan.system.digest
        for at, contract in enumerate(contracts)
    ]
    assert digests[1] == digests[2]
    assert len(set(digests)) == len(contracts) - 1


def test_cells_of_a_matrix_have_no_bound(tmp_path: Path) -> None:
    assert refused(tmp_path, NEAR) == []
    system = read_system(tmp_path / "system.yaml")
    found = [refusal.label for refusal in systems_fit(system.document, {"near": system})]
    assert found == [Label.VALUE_CHOICE]


def test_a_bound_holds_up_to_its_edge_and_for_finite_words_alone() -> None:
    assert Bound(0.25).holds(-4.0, -5.0)
    assert not Bound(0.25).holds(-4.0, math.nextafter(-5.0, -6.0))
    assert not Bound(0.25).holds(0.0, 5e-324)
    assert Bound(0.25, 0.5).holds(0.0, 0.5)
    assert Bound(0.25, 0.5).holds(4.0, 5.5)
    assert not any(Bound(0.5, 0.5).holds(1.0, word) for word in (math.inf, -math.inf, math.nan))
    assert [str(Bound(1e-9)), str(Bound(1e-9, 0.5))] == ["relative 1e-09", "relative 1e-09, absolute 0.5"]
