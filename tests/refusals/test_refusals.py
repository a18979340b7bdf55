"""Every case under `tests/refusals/<label>/` is wrong, and is refused exactly as its expected.json says."""

import json
from pathlib import Path

import pytest

from orchestrator.errors import Label, Refusal
from orchestrator.plan.check import validate

HERE = Path(__file__).parent
CASES = sorted(path.parent for path in HERE.glob("*/*/expected.json"))
FILE_LABELS = {
    Label.FILE_MISSING,
    Label.FILE_UNREADABLE,
    Label.SYNTAX,
    Label.YAML_FEATURE,
    Label.KIND_UNKNOWN,
    Label.KEY_UNKNOWN,
    Label.KEY_DUPLICATE,
    Label.FIELD_MISSING,
    Label.VALUE_TYPE,
    Label.VALUE_RANGE,
    Label.VALUE_FORMAT,
    Label.VALUE_CHOICE,
    Label.NAME_UNKNOWN,
    Label.NAME_DUPLICATE,
    Label.TOPOLOGY,
    Label.ROLE_UNKNOWN,
    Label.SAMPLES_COUNT,
    Label.DATA_FORMAT,
    Label.DATA_SHAPE,
    Label.DATA_CHUNK,
    Label.PAIRING_MISSING,
    Label.DEPENDENCY_CYCLE,
    # what only the plan can say
    Label.EXPRESSION_SYNTAX,
    Label.EXPRESSION_TYPE,
    Label.OWNERSHIP_UNSUPPORTED,
    Label.SEPARABILITY,
    Label.OWNERSHIP_GAP,
    Label.OWNERSHIP_OVERLAP,
    Label.TARGET_UNSUPPORTED,
    Label.SIGNING_UNSUPPORTED,
}


def as_json(refusal: Refusal) -> dict[str, object]:
    shown = {
        "label": str(refusal.label),
        "path": refusal.where.path,
        "line": refusal.where.line,
        "column": refusal.where.column,
        "key": refusal.key,
        "hint": refusal.hint,
    }
    return {name: value for name, value in shown.items() if value != ""}


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_refused_exactly_so(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case)
    expected = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    found = validate(tuple(Path(name) for name in expected["validate"]))
    assert [as_json(refusal) for refusal in found] == expected["refusals"]
    for refusal in found:
        assert "(got " in refusal.message, refusal.message
        assert ", expected " in refusal.message, refusal.message
        assert refusal.message.endswith(")"), refusal.message


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_provokes_its_label_and_no_other(case: Path) -> None:
    refusals = json.loads((case / "expected.json").read_text(encoding="utf-8"))["refusals"]
    assert refusals
    if case.parent.name != "many":
        assert {refusal["label"] for refusal in refusals} == {case.parent.name}


def test_every_label_of_the_files_has_a_case() -> None:
    provoked = {case.parent.name for case in CASES} - {"many"}
    assert {str(label) for label in FILE_LABELS} <= provoked
    assert provoked <= {str(label) for label in Label}


def test_what_the_cases_lean_on_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE / "good")
    files = tuple(sorted(path for path in Path().iterdir() if path.suffix != ".csv"))
    assert len(files) == 10
    assert validate(files) == ()
