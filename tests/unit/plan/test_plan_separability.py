"""What may be computed coordinate by coordinate, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from declared import SCALAR, SCALAR_ROWS, VECTOR, VECTOR_ROWS, run_text, system_text, write_rows

from orchestrator.errors import Label, Refusal, RefusedError
from orchestrator.plan.derive import derive
from orchestrator.plan.programs import type_programs
from orchestrator.plan.separability import separability_refusals
from orchestrator.spec.read import read_run, read_system

ADAM = {
    "state": "{p: {size: 1, initial: 1, shared: true}, q: {size: 1, initial: 1, shared: true},"
    " m: {size: 3, initial: 0}, v: {size: 3, initial: 0}}",
    "update": [
        "p = p * 0.9",
        "q = q * 0.999",
        "a = 1 / (1 - p)",
        "b = 1 / (1 - q)",
        "m[i] = 0.9 * m[i] + 0.1 * mean_g[i]",
        "v[i] = 0.999 * v[i] + 0.001 * (mean_g[i] * mean_g[i])",
        "w[i] = w[i] - rate * (m[i] * a) * (1 / (sqrt(v[i] * b) + 1e-8))",
    ],
}
SHARED_SCALAR = "{s: {size: 1, initial: 1, shared: true}, v: {size: 3, initial: 0}}"
SCALAR_STATE = SHARED_SCALAR.replace(", shared: true", "")


def found(
    folder: Path, declaration: dict[str, object] = VECTOR, **changes: object
) -> tuple[tuple[str, str], ...]:
    """The key and the first name of what is refused, in order; each at the place of that name."""
    return tuple(
        (refusal.key, at_place(folder, refusal)) for refusal in refused(folder, declaration, changes)
    )


def refused(folder: Path, declaration: dict[str, object], changes: dict[str, object]) -> tuple[Refusal, ...]:
    write_rows(folder / "samples.csv", VECTOR_ROWS if declaration is VECTOR else SCALAR_ROWS)
    path = folder / "system.yaml"
    path.write_text(system_text(declaration, **changes), encoding="utf-8")
    spec = read_system(path)
    programs, wrong = type_programs(spec)
    assert programs is not None, wrong
    refusals = separability_refusals(spec, programs)
    assert {refusal.label for refusal in refusals} <= {Label.SEPARABILITY}
    return refusals


def at_place(folder: Path, refusal: Refusal) -> str:
    line = (folder / "system.yaml").read_text(encoding="utf-8").splitlines()[refusal.where.line - 1]
    text = line[refusal.where.column - 1 :]
    return text[: next(at for at, letter in enumerate(text) if not (letter.isalnum() or letter == "_"))]


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "{}", "update": ["w[i] = w[i] - rate * mean_g[i]"]},
        {},
        ADAM,
        # what only shared words go into is shared, of any size, and may be read in any way
        {
            "state": "{c: {size: 3, initial: 1, shared: true}, v: {size: 3, initial: 0}}",
            "update": [
                "c[i] = 0.5 * c[i]",
                "all = sum(c) + c[1]",
                "half[i] = all * c[i]",
                "v[i] = v[i] + mean_g[i] * half[i] + dot(half, c)",
                "w[i] = w[i] - rate * v[i]",
            ],
        },
        # a temporary of a coordinate's own words
        {
            "state": "{}",
            "update": ["step[i] = rate * mean_g[i]", "w[i] = w[i] - step[i]"],
        },
    ],
    ids=["plain", "momentum", "adam", "shared-vector", "own-temporary"],
)
def test_what_comes_apart(tmp_path: Path, changes: dict[str, object]) -> None:
    assert found(tmp_path, **changes) == ()


def test_one_word_comes_apart_from_nothing(tmp_path: Path) -> None:
    assert found(tmp_path, SCALAR) == ()
    update = ["step = rate * mean_g", "w = w - sum(w) * step + w[0]"]
    assert found(tmp_path, SCALAR, update=update) == ()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # Adam with its powers as anybody's words: each coordinate would read coordinate 0 of another owner
        (
            {**ADAM, "state": str(ADAM["state"]).replace(", shared: true", "")},
            (("update[6]", "a"), ("update[6]", "b")),
        ),
        # a shared second moment
        (
            {
                "state": SHARED_SCALAR,
                "update": ["s = 0.9 * s + dot(mean_g, mean_g)", "w[i] = w[i] - s * v[i]"],
            },
            (("update[0]", "mean_g"), ("update[0]", "mean_g")),
        ),
        (
            {
                "state": "{v: {size: 3, initial: 0, shared: true}}",
                "update": ["v[i] = 0.9 * v[i] + mean_g[i]", "w[i] = w[i] - rate * v[i]"],
            },
            (("update[0]", "mean_g"),),
        ),
        (
            {"state": SHARED_SCALAR, "update": ["s = w[0]", "w[i] = s * mean_g[i] + v[i]"]},
            (("update[0]", "w"),),
        ),
        # sums and inner products of what owners hold, and of means
        ({"update": ["v[i] = v[i] + sum(mean_g)", "w[i] = w[i] - v[i]"]}, (("update[0]", "mean_g"),)),
        (
            {"update": ["n = dot(w, v)", "v[i] = mean_g[i] * n", "w[i] = w[i] - v[i]"]},
            (("update[0]", "w"), ("update[0]", "v")),
        ),
        # another coordinate's word
        ({"update": ["v[i] = v[i] + w[2]", "w[i] = v[i] - mean_g[i]"]}, (("update[0]", "w"),)),
        ({"update": ["v[i] = v[i] + mean_g[0]", "w[i] = w[i] - v[i]"]}, (("update[0]", "mean_g"),)),
        ({"update": ["l = w[1]", "v[i] = v[i] + l", "w[i] = v[i] - mean_g[i]"]}, (("update[0]", "w"),)),
        # one word that all coordinates read: a state word, a mean, a temporary of either
        (
            {"state": SCALAR_STATE, "update": ["s = s + v[0]", "v[i] = s * mean_g[i]", "w[i] = w[i] - v[i]"]},
            (("update[1]", "s"),),
        ),
        ({"update": ["v[i] = v[i] + mean_e * mean_g[i]", "w[i] = w[i] - v[i]"]}, (("update[0]", "mean_e"),)),
        (
            {"update": ["l = rate * mean_e", "v[i] = v[i] + l * mean_g[i]", "w[i] = w[i] - v[i]"]},
            (("update[1]", "l"),),
        ),
        # words that are claimed and that no coordinate uses
        (
            {"state": "{v: {size: 3, initial: 0}, u: {size: 3, initial: 0}}"},
            (("state.u", "u"),),
        ),
        (
            {
                "state": "{v: {size: 6, initial: 0}}",
                "update": ["v[i] = 0.9 * v[i]", "w[i] = w[i] - rate * mean_g[i]"],
            },
            (("state.v", "v"),),
        ),
    ],
)
def test_what_does_not(
    tmp_path: Path, changes: dict[str, object], expected: tuple[tuple[str, str], ...]
) -> None:
    assert found(tmp_path, **changes) == expected


def test_a_refusal_says_what_was_got_and_the_way_out(tmp_path: Path) -> None:
    changes: dict[str, object] = {
        "state": SHARED_SCALAR,
        "update": ["s = s + sum(mean_g)", "l = v[1]", "w[i] = w[i] - v[0] * mean_g[i]"],
    }
    shared, scalar, fixed = refused(tmp_path, VECTOR, changes)
    assert shared.message == (
        "s is shared and reads a mean (got all of mean_g, expected rate, constants and shared words alone)"
    )
    assert scalar.message.endswith("(got v[1], expected shared words)")
    assert fixed.message == ("w reads words of other owners in each coordinate (got v[0], expected v[i])")
    assert shared.hint == "replicated ownership computes it everywhere"
    assert fixed.hint == "declare v `shared: true` if it reads no mean; " + shared.hint


@pytest.mark.parametrize("held", ["parameters", "optimizer_state", "gradients"])
def test_a_run_is_held_to_it_where_anything_is_partitioned(tmp_path: Path, held: str) -> None:
    write_rows(tmp_path / "samples.csv", VECTOR_ROWS)
    update = ["v[i] = v[i] + sum(mean_g)", "w[i] = w[i] - v[i]"]
    (tmp_path / "system.yaml").write_text(system_text(VECTOR, update=update), encoding="utf-8")
    path = tmp_path / "run.yaml"
    path.write_text(run_text({"root": 5, "worker": 0}), encoding="utf-8")
    assert derive(read_run(path)).plan.system.update
    path.write_text(
        run_text({"root": 5, "worker": 0}, ownership=f"{{{held}: partitioned}}"), encoding="utf-8"
    )
    with pytest.raises(RefusedError) as raised:
        derive(read_run(path))
    assert Label.SEPARABILITY in {refusal.label for refusal in raised.value.refusals}


def test_shared_words_are_part_of_what_a_system_is(tmp_path: Path) -> None:
    digests = set()
    for state in (
        ADAM["state"],
        str(ADAM["state"]).replace("q: {size: 1, initial: 1, shared: true}", "q: {size: 1, initial: 1}"),
    ):
        write_rows(tmp_path / "samples.csv", VECTOR_ROWS)
        (tmp_path / "system.yaml").write_text(
            system_text(VECTOR, **{**ADAM, "state": state}), encoding="utf-8"
        )
        (tmp_path / "run.yaml").write_text(run_text({"root": 5, "worker": 0}), encoding="utf-8")
        system = derive(read_run(tmp_path / "run.yaml")).plan.system
        assert [field.shared for field in system.state][:2] == [
            True,
            "q: {size: 1, initial: 1}" not in str(state),
        ]
        digests.add(system.digest)
    assert len(digests) == 2
