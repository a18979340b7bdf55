"""Identities: they cover what a plan means, and nothing of how or where it is written, built or run."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from declared import (
    SCALAR,
    SCALAR_ROWS,
    VECTOR,
    VECTOR_ROWS,
    planned,
    run_text,
    star,
    system_text,
    write_rows,
)
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import Label, RefusedError
from orchestrator.plan import topology
from orchestrator.plan.check import validate
from orchestrator.plan.derive import Planned, derive, encode, other_plan
from orchestrator.plan.model import Field, Plan, Role, System
from orchestrator.plan.ownership import Ownership
from orchestrator.plan.topology import Topology
from orchestrator.spec.read import read_run

ROLES = {"root": 2, "idle": 0, "worker": 3}


def star_of(folder: Path, **changes: object) -> Planned:
    return planned(folder, VECTOR, VECTOR_ROWS, ROLES, **changes)


def test_how_it_is_written_changes_no_identity(tmp_path: Path) -> None:
    base = star(tmp_path / "base").plan
    folder = tmp_path / "other"
    folder.mkdir()
    write_rows(folder / "samples.csv", VECTOR_ROWS)
    head, *keys = system_text(
        VECTOR,
        name="renamed",
        update=["v[ i ]=0.90*v[i]+(mean_g[i])", "w[i] = w[i] - rate * v[i]"],
        rate="1.0e-1",
    ).splitlines()
    text = "\n\n".join([head, *(f"{key}  # said" for key in reversed(keys)), "# the end", ""])
    (folder / "system.yaml").write_text(text, encoding="utf-8")
    head, *keys = run_text(ROLES, name="renamed").splitlines()
    (folder / "run.yaml").write_text("\n".join([head, *reversed(keys), ""]), encoding="utf-8")
    other = derive(read_run(folder / "run.yaml")).plan
    assert other.system.name == "renamed"
    assert other.as_json() == base.as_json()
    assert (other.digest, other.system.digest) == (base.digest, base.system.digest)


def test_what_it_is_made_for_changes_no_identity(tmp_path: Path) -> None:
    base = star(tmp_path).plan
    other = "{root: {target: aarch64-linux}, idle: {target: x86_64-linux}, worker: {target: aarch64-linux}}"
    (tmp_path / "run.yaml").write_text(
        run_text(ROLES, pairings=other, memory="{root: 1GiB}"), encoding="utf-8"
    )
    there = derive(read_run(tmp_path / "run.yaml"))
    assert there.targets == {"root": "aarch64-linux", "idle": "x86_64-linux", "worker": "aarch64-linux"}
    assert there.plan.digest == base.digest
    assert "linux" not in json.dumps(there.plan.as_json())


@pytest.mark.parametrize(
    "changes",
    [
        {"rate": "0.10000000000000000400"},  # the same binary64, so the base itself
        {"name": "another"},
    ],
)
def test_what_rounds_to_the_same_is_the_same(tmp_path: Path, changes: dict[str, object]) -> None:
    assert star_of(tmp_path / "other", **changes).plan.digest == star(tmp_path / "base").plan.digest


@pytest.mark.parametrize(
    "changes",
    [
        {"rate": "0.10000000000000002"},
        {"parameters": "{w: {size: 3, initial: [0.25, 0.25, 0.5]}}"},
        {"state": "{v: {size: 3, initial: -0.0}}"},
        {"contribution": ["e = y - dot(w, x)", "g[i] = e * x[i]"]},
        {"contribution": ["e = dot(x, w) - y", "g[i] = e * x[i]"]},
        {"contribution": ["e = dot(w, x) - y", "g[i] = x[i] * e"]},
        {"update": ["w[i] = w[i] - rate * v[i]", "v[i] = 0.9 * v[i] + mean_g[i]"]},
        {"update": ["v[i] = 0.9 * v[i] + mean_g[i]", "w[i] = (w[i]) - (rate * v[i]) * 1"]},
        {"evaluate": ["square = e * e", "loss = 0.25 * square"]},
        {"evaluate": ["loss = 0.5 * e * e"]},
        {"sample": "{x: 3, z: 1}", "contribution": ["e = dot(w, x) - z", "g[i] = e * x[i]"]},
    ],
    ids=str,
)
def test_what_a_system_means_changes_both_identities(tmp_path: Path, changes: dict[str, object]) -> None:
    base, other = star(tmp_path / "base").plan, star_of(tmp_path / "other", **changes).plan
    assert other.system.digest != base.system.digest
    assert other.digest != base.digest


def test_samples_are_part_of_the_system(tmp_path: Path) -> None:
    rows = (*VECTOR_ROWS[:-1], (*VECTOR_ROWS[-1][:-1], 0.0))
    other = planned(tmp_path / "other", VECTOR, rows, ROLES).plan
    assert other.system.digest != star(tmp_path / "base").plan.system.digest


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: replace(plan, topology=Topology("hierarchy", len(plan.roles), 2)),
        lambda plan: replace(plan, ownership=Ownership("replicated", "partitioned", "replicated")),
        lambda plan: replace(plan, roles=tuple(reversed(plan.roles))),
        lambda plan: replace(plan, roles=plan.roles[:-1]),
        lambda plan: replace(plan, roles=(replace(plan.roles[0], name="other"), *plan.roles[1:])),
        lambda plan: replace(plan, roles=(replace(plan.roles[0], samples=3), *plan.roles[1:])),
        lambda plan: replace(plan, roles=(replace(plan.roles[0], first_sample=1), *plan.roles[1:])),
    ],
)
def test_who_takes_part_changes_the_plan_alone(tmp_path: Path, change: Callable[[Plan], Plan]) -> None:
    base = star(tmp_path).plan
    other = change(base)
    assert other.digest != base.digest
    assert other.system.digest == base.system.digest


def system_of(rate: float) -> System:
    digest = "0" * 64
    return System(
        "s",
        "data-parallel",
        (Field("w", 1, (0.0,)),),
        (),
        (),
        (),
        (),
        (),
        (),
        (),
        rate,
        1,
        digest,
        "binary64-ordered",
    )


@given(st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1.0]))
def test_another_plan_is_another_one_whatever_the_rate(rate: float) -> None:
    plan = Plan(system_of(rate), (Role("r", 0, 0, 1),), topology.star(1), Ownership(*["replicated"] * 3))
    other = other_plan(Planned(plan, array("d"), {}, {})).plan
    assert other.digest != plan.digest
    assert replace(other, system=replace(other.system, rate=rate)) == plan


def test_another_plan_of_a_declaration_halves_its_rate(tmp_path: Path) -> None:
    base = star(tmp_path)
    other = other_plan(base)
    assert other.plan.system.rate == base.plan.system.rate / 2
    assert (other.words, other.targets) == (base.words, base.targets)


@given(st.integers(1, 200), st.integers(1, 40))
def test_publications_are_the_whole_field_once(size: int, count: int) -> None:
    roles = tuple(Role(f"r{index}", index, 0, 0) for index in range(count))
    plan = Plan(system_of(1.0), roles, topology.star(len(roles)), Ownership(*["replicated"] * 3))
    regions = [plan.published(Field("w", size), role).coordinates for role in roles]
    assert [word for region in regions for word in region] == list(range(size))
    assert max(map(len, regions)) - min(map(len, regions)) <= 1


def test_sample_files_are_the_rows_of_their_roles(tmp_path: Path) -> None:
    base = star(tmp_path)
    files = [base.samples_of(role) for role in base.plan.roles]
    assert [len(data) for data in files] == [2 * 4 * 8, 0, 3 * 4 * 8]
    assert b"".join(files) == encode(base.words)
    assert array("d", files[2]).tolist() == [word for row in VECTOR_ROWS[2:] for word in row]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (
            {
                "pairings": "{root: {target: x86_64-linux}, "
                "idle: {target: command}, worker: {target: x86_64-linux}}"
            },
            [(Label.TARGET_UNSUPPORTED, "pairings.idle")],
        ),
    ],
)
def test_what_is_not_built_is_refused_by_name(
    tmp_path: Path, changes: dict[str, object], found: list[tuple[Label, str]]
) -> None:
    star(tmp_path)
    path = tmp_path / "run.yaml"
    path.write_text(run_text(ROLES, **changes), encoding="utf-8")
    with pytest.raises(RefusedError) as refused:
        derive(read_run(path))
    assert [(each.label, each.key) for each in refused.value.refusals] == found
    assert validate([path]) == refused.value.refusals


def test_statements_and_run_are_refused_together(tmp_path: Path) -> None:
    planned(tmp_path, SCALAR, SCALAR_ROWS, {"coordinator": 1, "worker": 2})
    path = tmp_path / "run.yaml"
    path.write_text(
        run_text(
            {"coordinator": 1, "worker": 2},
            pairings="{coordinator: {target: command}, worker: {target: x86_64-linux}}",
        ),
        encoding="utf-8",
    )
    (tmp_path / "system.yaml").write_text(
        system_text(SCALAR, update=["w = w -", "w = mean_q"]), encoding="utf-8"
    )
    labels = [refusal.label for refusal in validate([path, path])]
    assert labels.count(Label.TARGET_UNSUPPORTED) == 1
    assert labels.count(Label.EXPRESSION_SYNTAX) == 1
    assert Label.EXPRESSION_TYPE in labels
