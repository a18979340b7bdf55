"""What is said of a wrong value: our words and labels at every place, and never a library's."""

from pathlib import Path

import pytest

from orchestrator.errors import Refusal
from orchestrator.spec.document import load
from orchestrator.spec.faults import check, one_of, suggest
from orchestrator.spec.schema import MODELS

GOOD = Path(__file__).parents[2] / "refusals" / "good"
VALUES = ["{}", "[]", "[[]]", "{a: 1}", "1", "-1", "1.5", "true", "null", "'x'", "''", "1e300", "[1, {}]"]
PYDANTIC = (
    "input",
    "pydantic",
    "string_",
    "valid ",
    "greater than",
    "validation",
    "literal",
    "<class",
    "Input",
    "type=",
)


def wrong(kind: str, text: str, number: int = 0) -> tuple[Refusal, ...]:
    document, refusals = load(Path(f"{kind}.yaml"), text.encode())
    assert document is not None
    return (*refusals, *check(document, MODELS[kind][number])[1])


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    ("kind", "number", "key"),
    [
        (kind, number, key)
        for kind, models in MODELS.items()
        for number, model in enumerate(models)
        for key in model.model_fields
    ],
)
def test_every_key_with_every_kind_of_value(kind: str, number: int, key: str, value: str) -> None:
    for refusal in wrong(kind, f"{key}: {value}\n", number):
        assert refusal.message.startswith("`")
        assert "(got " in refusal.message
        assert refusal.message.endswith(")")
        said = refusal.message.replace("is not valid", "")
        assert not any(word in said for word in PYDANTIC), refusal.message
        assert refusal.where.line == 1


def test_an_entry_of_a_list_is_named_with_its_list() -> None:
    (refusal,) = (refusal for refusal in wrong("run", "roles: [a, 2]\n") if refusal.key == "roles[1]")
    assert refusal.message == "`roles[1]` is of the wrong type (got 2, expected text)"
    assert (refusal.where.line, refusal.where.column) == (1, 12)


def test_suggestions_are_near_or_none() -> None:
    assert suggest("cordinator", ["coordinator", "worker1"]) == "did you mean `coordinator`?"
    assert suggest("gpu", ["coordinator", "worker1"]) == ""
    assert suggest("x" * 10_000, ["x" * 9_999]) == ""
    assert suggest("a1", [f"a{number}" for number in range(10_000)]) == ""


def test_choices_are_listed_up_to_a_bound() -> None:
    assert one_of([]) == "none"
    assert one_of(["a"]) == "a"
    assert one_of(["a", "b", "c"]) == "a, b or c"
    assert one_of([f"n{number}" for number in range(100)]).endswith("n15 or 84 more")
