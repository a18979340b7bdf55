"""Systems whose owners have coordinates: against plain loops in exact arithmetic, in the declared order."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import pytest
from exact import add, bits, divide, multiply, square_root

from orchestrator.oracle.kinds import reference_of
from orchestrator.oracle.reference import NonFiniteError, Reference
from orchestrator.plan.derive import encode
from orchestrator.plan.model import Field, Plan, Role, System
from orchestrator.plan.ownership import Ownership
from orchestrator.plan.programs import type_programs
from orchestrator.plan.topology import Topology, star
from orchestrator.spec.data import read_samples
from orchestrator.spec.read import read_system

SYSTEMS = Path(__file__).parents[3] / "specs" / "systems"
PARTITIONED = Ownership("partitioned", "partitioned", "partitioned")


def shipped(name: str, topology: Topology, ownership: Ownership = PARTITIONED) -> tuple[Plan, Reference]:
    spec = read_system(SYSTEMS / f"{name}.yaml")
    programs, refusals = type_programs(spec)
    assert programs is not None, refusals
    samples = read_samples(spec.data, spec.width)
    system = System(
        name=spec.name,
        kind=spec.kind,
        parameters=tuple(Field(each.name, each.size, tuple(each.initial)) for each in spec.parameters),
        state=tuple(Field(each.name, each.size, tuple(each.initial)) for each in spec.state),
        sample=tuple(Field(each.name, each.size) for each in spec.sample),
        contributions=programs.contributions,
        contribution=programs.contribution,
        update=programs.update,
        evaluate=programs.evaluate,
        results=programs.results,
        rate=spec.rate,
        rows=samples.rows,
        samples_sha256=str(len(encode(samples.words))),
        numerics=spec.numerics,
        forward=programs.forward,
        local=programs.local,
    )
    roles = tuple(Role(f"r{index}", index, 0, 0) for index in range(topology.roles))
    plan = Plan(system, roles, topology, ownership)
    return plan, reference_of(plan, samples.words)


def rows() -> list[list[float]]:
    words = read_samples(SYSTEMS.parent / "data" / "diabetes.csv", 11).words
    return [words[at : at + 11].tolist() for at in range(0, len(words), 11)]


def combined(parts: list[float], topology: Topology, role: int = 0) -> float:
    total = parts[role]
    for child in topology.children(role):
        total = add(total, combined(parts, topology, child))
    return total


def forward(w: list[float], x: list[float], topology: Topology) -> float:
    parts = []
    for role in range(topology.roles):
        products = [multiply(w[i], x[i]) for i in range(role, 10, topology.roles)]
        own = products[0] if products else 0.0
        for product in products[1:]:
            own = add(own, product)
        parts.append(own)
    return combined(parts, topology)


TOPOLOGIES = [star(1), star(2), star(4), Topology("hierarchy", 7, 2), star(16)]


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
def test_owners_of_coordinates_predict_together_and_learn_apart(topology: Topology) -> None:
    plan, reference = shipped("coordinates", topology)
    w, h = [0.0] * 10, [0.0] * 10
    for version in islice(reference.versions(), 2):
        sums, loss = [0.0] * 10, 0.0
        for *x, y in rows():
            e = add(forward(w, x, topology), -y)
            sums = [add(total, multiply(e, column)) for total, column in zip(sums, x, strict=True)]
            loss = add(loss, multiply(multiply(0.5, e), e))
        means = [divide(total, 442.0) for total in sums]
        h = [add(old, multiply(mean, mean)) for old, mean in zip(h, means, strict=True)]
        steps = [divide(mean, add(square_root(a), 1e-8)) for mean, a in zip(means, h, strict=True)]
        w = [add(old, -multiply(0.2, step)) for old, step in zip(w, steps, strict=True)]
        assert [bits(word) for word in version.words] == [bits(word) for word in (*w, *h)]
        assert bits(version.results["loss"]) == bits(loss)
    assert plan.system.combined_words == 442 + 1 + 1


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
def test_coordinates_that_go_by_themselves(topology: Topology) -> None:
    plan, reference = shipped("correlations", topology)
    first, second = islice(reference.versions(), 2)
    c, spread = [0.0] * 10, [1.0] * 10
    for *x, y in rows():
        d = [add(multiply(column, y), -old) for column, old in zip(x, c, strict=True)]
        strays = [add(multiply(each, each), -old) for each, old in zip(d, spread, strict=True)]
        spread = [add(old, multiply(0.002, each)) for old, each in zip(spread, strays, strict=True)]
        c = [add(old, multiply(0.002, each)) for old, each in zip(c, d, strict=True)]
    assert [bits(word) for word in first.words] == [bits(word) for word in (*c, *spread)]
    parts = []
    for role in range(topology.roles):
        own = 0.0
        for *x, y in rows():
            d = [add(multiply(x[i], y), -c[i]) for i in range(role, 10, topology.roles)]
            squares = [multiply(each, each) for each in d] or [0.0]
            row = squares[0]
            for square in squares[1:]:
                row = add(row, square)
            own = add(own, row)
        parts.append(own)
    assert bits(second.results["loss"]) == bits(combined(parts, topology))
    assert plan.system.combined_words == 2


def test_they_learn() -> None:
    _, reference = shipped("coordinates", star(4))
    losses = [version.results["loss"] for version in islice(reference.versions(), 60)]
    assert losses[0] == pytest.approx(221)
    assert losses[-1] < 110
    _, reference = shipped("correlations", star(4))
    versions = list(islice(reference.versions(), 8))
    assert all(after.results["loss"] < before.results["loss"] for before, after in pairwise(versions[:3]))
    for i in range(10):
        correlation = sum(row[i] * row[10] for row in rows()) / 442
        assert versions[-1].words[i] == pytest.approx(correlation, abs=0.06)


def test_who_owns_what_changes_predictions_in_the_last_bits_alone_and_independent_states_not_at_all() -> None:
    ends = [shipped("coordinates", topology)[1].at(20).words for topology in TOPOLOGIES]
    assert len({end.tobytes() for end in ends}) > 1
    for end in ends[1:]:
        assert list(end) == pytest.approx(list(ends[0]), rel=1e-10)
    alone = [shipped("correlations", topology)[1].at(2).words for topology in TOPOLOGIES]
    assert len({end.tobytes() for end in alone}) == 1


def test_declared_ranges_are_the_owners_coordinates() -> None:
    ranges = replace(PARTITIONED, ranges=(range(8), range(8, 10)))
    by_range = shipped("coordinates", star(2), ranges)[1].at(3)
    dealt = shipped("coordinates", star(2))[1].at(3)
    assert by_range.state != dealt.state
    all_of_one = replace(PARTITIONED, ranges=(range(10), range(10, 10)))
    assert (
        shipped("coordinates", star(2), all_of_one)[1].at(3).state
        == shipped("coordinates", star(1))[1].at(3).state
    )


def test_a_row_of_its_own_columns_is_what_a_role_has() -> None:
    plan, _ = shipped("coordinates", Topology("hierarchy", 7, 2))
    x, y = plan.system.sample
    assert [plan.columns(x, role).coordinates for role in plan.roles[:3]] == [
        range(0, 14, 7),
        range(1, 15, 7),
        range(2, 16, 7),
    ]
    assert {plan.columns(y, role).count for role in plan.roles} == {1}
    assert {plan.rows(role) for role in plan.roles} == {range(442)}


def test_words_that_are_not_finite_end_the_round() -> None:
    for name in ("coordinates", "correlations"):
        plan, reference = shipped(name, star(2))
        start = reference.initial()
        start.words[3] = 1e308
        with pytest.raises(NonFiniteError) as raised:
            next(reference.versions(start))
        assert raised.value.version == 1
        assert plan.system.rows == 442
