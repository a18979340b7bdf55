"""Who may read and write what, told from whole files, with the places of what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from declared import SCALAR, SCALAR_ROWS, VECTOR, VECTOR_ROWS, planned, star, system_text, write_rows

from orchestrator.build.compile import Made, build_program
from orchestrator.build.elf import verify
from orchestrator.errors import Label, Refusal, RefusedError
from orchestrator.plan.grammar import MAX_DEPTH
from orchestrator.plan.model import Field
from orchestrator.plan.programs import Programs, type_programs
from orchestrator.plan.separability import separability_refusals
from orchestrator.spec.read import read_system


def typed(
    folder: Path, declaration: dict[str, object] = VECTOR, **changes: object
) -> tuple[Programs | None, tuple[Refusal, ...]]:
    write_rows(folder / "samples.csv", VECTOR_ROWS if declaration is VECTOR else SCALAR_ROWS)
    path = folder / "system.yaml"
    path.write_text(system_text(declaration, **changes), encoding="utf-8")
    return type_programs(read_system(path))


def test_contributions_are_what_the_update_reads_the_mean_of_in_order_of_assignment(tmp_path: Path) -> None:
    programs, refusals = typed(
        tmp_path,
        contribution=["e = dot(w, x) - y", "h = e", "unused[i] = x[i]", "g[i] = e * x[i]"],
        update=["v[i] = v[i] + mean_g[i] * sqrt(-mean_h)", "w[i] = w[i] - rate * v[i]"],
    )
    assert not refusals
    assert programs is not None
    assert programs.contributions == (Field("h", 1), Field("g", 3))
    assert programs.results == ("square", "loss")


@pytest.mark.parametrize(
    ("section", "statements", "place", "said"),
    [
        ("contribution", ["g[i] = v[i] * x[i]"], "contribution[0]", "parameters and one sample"),
        ("contribution", ["e = rate", "g[i] = x[i]"], "contribution[0]", "name is not known"),
        ("contribution", ["x[i] = w[i]", "g[i] = x[i]"], "contribution[0]", "x cannot be assigned"),
        ("contribution", ["w[i] = x[i]", "g[i] = x[i]"], "contribution[0]", "w cannot be assigned"),
        ("contribution", ["v[i] = x[i]", "e = y", "g[i] = x[i]"], "contribution[0]", "v cannot be assigned"),
        ("evaluate", ["loss = dot(v, v)"], "evaluate[0]", "v cannot be read here"),
        ("evaluate", ["e = y", "loss = e"], "evaluate[0]", "e cannot be assigned"),
        ("evaluate", ["loss[i] = x[i]"], "evaluate[0]", "evaluation assigns scalars (got loss of 3 words"),
        ("evaluate", ["error = e"], "evaluate[0]", "evaluation assigns no loss (got error, expected loss)"),
        ("update", ["w[i] = w[i] - x[i] * mean_g[i]"], "update[0]", "means, not single samples"),
        ("update", ["y = 1", "w[i] = mean_g[i]"], "update[0]", "y cannot be assigned"),
        ("update", ["w[i] = mean_g[i]", "rate = 1"], "update[1]", "rate cannot be assigned"),
        ("update", ["mean_g[i] = w[i]", "w[i] = mean_g[i]"], "update[0]", "mean_g cannot be assigned"),
        ("update", ["w[i] = mean_g[i] + mean_q[i]"], "update[0]", "name is not known here (got mean_q"),
        ("update", ["w[i] = g[i]", "v[i] = mean_g[i]"], "update[0]", "name is not known here (got g"),
        ("update", ["w[i] = v[i]"], "contribution[1]", "uses no contribution (got e, g, expected"),
    ],
)
def test_each_program_reads_and_writes_its_own_only(
    tmp_path: Path, section: str, statements: list[str], place: str, said: str
) -> None:
    programs, refusals = typed(tmp_path, **{section: statements})
    assert programs is None
    first = next(refusal for refusal in refusals if refusal.key == place)
    assert first.label == Label.EXPRESSION_TYPE
    assert said in first.message, first.message


def test_a_refusal_stands_at_its_character_in_the_file(tmp_path: Path) -> None:
    _, refusals = typed(tmp_path, update=["v[i] = mean_g[i]", "w[i] = w[i] - rata * v[i]", "w[i] = 1 $"])
    lines = (tmp_path / "system.yaml").read_text(encoding="utf-8").splitlines()
    assert [(each.label, each.key, each.hint) for each in refusals] == [
        (Label.EXPRESSION_TYPE, "update[1]", "did you mean rate?"),
        (Label.EXPRESSION_SYNTAX, "update[2]", ""),
    ]
    for refusal, text in zip(refusals, ("rata * v", "$"), strict=True):
        assert lines[refusal.where.line - 1][refusal.where.column - 1 :].startswith(text)


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        # neither e, nor what reads it in any program, is refused once more
        ({"contribution": ["e = dot(w, x) - y $", "g[i] = e * x[i]"]}, ["contribution[0]"]),
        ({"contribution": ["e = dot(w, y) - y", "f = e", "g[i] = f * x[i]"]}, ["contribution[0]"]),
        ({"contribution": ["e = dot(w, x) - y", "g[i] = e x[i]"]}, ["contribution[1]"]),
        ({"contribution": ["e = dot(w, x) - y", "g[0] = e * x[0]"]}, ["contribution[1]"]),
        ({"contribution": ["e[i = y", "g[i] = e * x[i]"]}, ["contribution[0]"]),
        ({"contribution": ["e = y $", "e = y", "g[i] = e * x[i]"]}, ["contribution[0]"]),
        ({"evaluate": ["square = e ** 2", "loss = 0.5 * square"]}, ["evaluate[0]"]),
        ({"update": ["v[i] = 0.9 * v[i] + mean_g[i] $", "w[i] = w[i] - rate * v[i]"]}, ["update[0]"]),
        ({"update": ["v[i] + mean_g[i]", "w[i] = w[i] - rate * v[i]"]}, ["update[0]"]),
        ({"update": ["s = rata", "v[i] = s * mean_g[i]", "w[i] = s * v[i]"]}, ["update[0]"]),
        # other faults of a statement that reads it are
        (
            {"contribution": ["e = y $", "w[i] = e * x[i]", "g[i] = e * z[i]", "h = e - q"]},
            ["contribution[0]", "contribution[1]", "contribution[2]", "contribution[3]"],
        ),
        (
            {"contribution": ["e = y $", "g[i] = e * x[i]"], "evaluate": ["loss = e $"]},
            ["contribution[0]", "evaluate[0]"],
        ),
        # a name of no statement's is unknown
        (
            {"contribution": ["dot(w, x) - y", "g[i] = e * x[i]"]},
            ["contribution[0]", "contribution[1]", "evaluate[0]"],
        ),
    ],
)
def test_a_refused_statement_is_refused_once(
    tmp_path: Path, changes: dict[str, object], keys: list[str]
) -> None:
    programs, refusals = typed(tmp_path, **changes)
    assert programs is None
    assert [refusal.key for refusal in refusals] == keys


def test_an_update_may_name_a_temporary_like_a_mean(tmp_path: Path) -> None:
    programs, refusals = typed(tmp_path, update=["mean_e = 3", "w[i] = w[i] - rate * mean_g[i]"])
    assert not refusals
    assert programs is not None
    assert programs.contributions == (Field("g", 3),)


def test_an_update_may_have_temporaries(tmp_path: Path) -> None:
    programs, refusals = typed(
        tmp_path, SCALAR, update=["step = rate * mean_g", "w = w - step", "twice = step + step"]
    )
    assert not refusals
    assert programs is not None
    assert [(each.target, each.local) for each in programs.update] == [
        ("step", True),
        ("w", False),
        ("twice", True),
    ]


def test_the_tallest_statement_has_an_identity(tmp_path: Path) -> None:
    """Nothing that walks an accepted tree may run out of stack, or of JSON's own nesting."""
    tall = " + ".join(["e"] * MAX_DEPTH)
    plan = planned(
        tmp_path / "tall", SCALAR, SCALAR_ROWS, {"coordinator": 1, "worker": 2}, evaluate=[f"loss = {tall}"]
    ).plan
    assert len(plan.digest) == 64
    _, refusals = typed(tmp_path, evaluate=["square = e", f"loss = {tall} + e"])
    assert [(each.label, each.key) for each in refusals] == [(Label.EXPRESSION_SYNTAX, "evaluate[1]")]


def test_the_plan_of_a_star(tmp_path: Path) -> None:
    plan = star(tmp_path).plan
    assert (plan.system.state_words, plan.system.sample_words, plan.system.combined_words) == (6, 4, 6)
    assert [(role.first_sample, role.samples) for role in plan.roles] == [(0, 2), (2, 0), (2, 3)]
    assert [plan.topology.parent(index) for index in range(3)] == [None, 0, 0]
    assert plan.topology.combine_json() == {"kind": "left-deep"}


def test_the_tallest_statement_and_a_stepped_scalar_compile(tmp_path: Path) -> None:
    """What the grammar and the shapes let through is C that the compiler takes."""
    plan = planned(
        tmp_path,
        SCALAR,
        SCALAR_ROWS,
        {"coordinator": 1, "worker": 2},
        contribution=["e[i] = w[i] * x[i] - y[i]", "g = e * x"],
        update=["w[i] = w[i] - " + " + ".join(["mean_g"] * (MAX_DEPTH - 1))],
        evaluate=["loss = " + "sqrt(e * " * (MAX_DEPTH // 2 - 1) + "e" + ")" * (MAX_DEPTH // 2 - 1)],
    ).plan
    program = build_program(plan, plan.roles[0], Made("x86_64-linux"), Path(__file__).parents[3], None)
    assert verify(program.data, target="x86_64-linux", plan=plan.digest) == ()


COORDINATES = {
    **VECTOR,
    "kind": "coordinate-owned",
    "forward": ["s = dot(w, x)"],
    "contribution": ["e = s - y", "g[i] = e * x[i]"],
}
ALONE: dict[str, object] = {
    **{name: value for name, value in VECTOR.items() if name not in ("contribution", "update", "state")},
    "state": "{}",
    "kind": "independent",
    "local": ["w[i] = w[i] + rate * (x[i] * y - w[i])"],
    "evaluate": ["d[i] = x[i] * y - w[i]", "loss = dot(d, d)"],
}


def typed_kind(
    folder: Path, declaration: dict[str, object], **changes: object
) -> tuple[Programs | None, tuple[Refusal, ...]]:
    write_rows(folder / "samples.csv", VECTOR_ROWS)
    path = folder / "system.yaml"
    path.write_text(system_text(declaration, **changes), encoding="utf-8")
    spec = read_system(path)
    programs, refusals = type_programs(spec)
    return programs, refusals or (separability_refusals(spec, programs) if programs else ())


def test_the_programs_of_the_other_kinds(tmp_path: Path) -> None:
    programs, refusals = typed_kind(tmp_path, COORDINATES)
    assert programs is not None
    assert not refusals
    assert [each.target for each in programs.forward] == ["s"]
    assert (programs.contributions, programs.results) == ((Field("g", 3),), ("square", "loss"))
    programs, refusals = typed_kind(tmp_path, ALONE)
    assert programs is not None
    assert not refusals
    assert (programs.contributions, programs.update, programs.results) == ((), (), ("loss",))
    assert [each.target for each in programs.local] == ["w"]


@pytest.mark.parametrize(
    ("declaration", "changes", "key", "said"),
    [
        (
            COORDINATES,
            {"forward": ["s = dot(w, x) + 1"]},
            "forward[0]",
            "one sum over",
        ),
        (COORDINATES, {"forward": ["s = w[0]"]}, "forward[0]", "one sum over"),
        (COORDINATES, {"forward": ["s = sum(y)"]}, "forward[0]", "one sum over"),
        (COORDINATES, {"forward": ["s = dot(v, x)"]}, "forward[0]", "parameters"),
        (
            COORDINATES,
            {"contribution": ["s = y", "g[i] = x[i]"]},
            "contribution[0]",
            "s",
        ),
        (
            COORDINATES,
            {"contribution": ["e = dot(w, x) - y", "g[i] = e * x[i]"]},
            "contribution[0]",
            "all of w",
        ),
        (
            COORDINATES,
            {"evaluate": ["square = e * e", "loss = square + w[0]"]},
            "evaluate[1]",
            "loss is shared and reads a word of one owner (got w[0]",
        ),
        (
            COORDINATES,
            {"update": ["v[i] = v[i] + sum(mean_g)", "w[i] = w[i] - v[i]"]},
            "update[0]",
            "all of mean_g",
        ),
        (ALONE, {"local": ["w[i] = w[i] + rate * mean_g[i]"]}, "local[0]", "mean_g"),
        (ALONE, {"local": ["w[i] = w[i] + sum(w)"]}, "local[0]", "changes while"),
        (ALONE, {"local": ["n = dot(w, x)", "w[i] = n * x[i]"]}, "local[0]", "all of w"),
        (ALONE, {"evaluate": ["loss = w[0]"]}, "evaluate[0]", "no loss"),
        (
            ALONE,
            {"evaluate": ["loss = dot(w, x)", "d[i] = loss * x[i]"]},
            "evaluate[1]",
            "no owner has it",
        ),
        (
            ALONE,
            {"evaluate": ["d[i] = x[i] - w[1]", "loss = dot(d, d)"]},
            "evaluate[0]",
            "got w[1], expected w[i]",
        ),
    ],
)
def test_owners_of_coordinates_read_their_own(
    tmp_path: Path,
    declaration: dict[str, object],
    changes: dict[str, object],
    key: str,
    said: str,
) -> None:
    _, refusals = typed_kind(tmp_path, declaration, **changes)
    assert refusals[0].label in (Label.EXPRESSION_TYPE, Label.SEPARABILITY)
    assert refusals[0].key == key
    assert said in refusals[0].message, refusals[0].message
    assert "replicated" not in refusals[0].hint


@pytest.mark.parametrize(
    ("changes", "label", "key"),
    [
        ({"kind": "independent"}, Label.KEY_UNKNOWN, "contribution"),
        ({"kind": "coordinate-owned"}, Label.FIELD_MISSING, "forward"),
        ({"local": ["w[i] = x[i]"]}, Label.KEY_UNKNOWN, "local"),
    ],
)
def test_each_kind_has_its_own_programs(
    tmp_path: Path, changes: dict[str, object], label: Label, key: str
) -> None:
    with pytest.raises(RefusedError) as raised:
        typed(tmp_path, **changes)
    assert (label, key) in {(each.label, each.key) for each in raised.value.refusals}
