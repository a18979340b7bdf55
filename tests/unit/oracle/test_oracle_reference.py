"""The reference: known trajectories, the order of the combine, owners of nothing, and where it must stop."""

from __future__ import annotations

import math
from array import array
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from declared import SCALAR, VECTOR_ROWS, pair, planned, star
from exact import add, bits, divide, multiply

from orchestrator.oracle.reference import (
    NonFiniteError,
    Reference,
    Version,
    from_bits,
    held_words,
    state_digest,
)
from orchestrator.oracle.reference import bits as shown
from orchestrator.plan.derive import Planned
from orchestrator.plan.model import Role
from orchestrator.plan.ownership import Holding, Ownership
from orchestrator.plan.topology import Topology


def reference(of: Planned) -> Reference:
    return Reference(of.plan, of.words)


def test_every_sample_counts_once(tmp_path: Path) -> None:
    """1/2 where samples are counted; 9/16 would be what roles counted alike give."""
    versions = [version.words[0] for version in islice(reference(pair(tmp_path)).versions(), 5)]
    assert versions[0] == 0.5
    assert 9 / 16 not in versions
    # from there on w = 1 - 2^-n, exactly
    assert versions == [1 - 2.0**-n for n in range(1, 6)]


def test_a_loss_is_of_the_state_that_its_update_read(tmp_path: Path) -> None:
    learner = reference(pair(tmp_path))
    first = learner.at(1)
    assert first.results == {"loss": 0.5 * (1.5**2 + 1.0**2 + 0.5**2)}
    assert learner.initial().results == {}
    assert learner.evaluate(learner.initial()) == first.results
    assert learner.evaluate(first) == learner.at(2).results


def test_a_star_with_momentum_by_plain_loops_over_exact_operations(tmp_path: Path) -> None:
    w, v = [0.25, 0.25, -0.5], [0.0, 0.0, 0.0]
    for version in islice(reference(star(tmp_path)).versions(), 4):
        sums = []
        for rows in (VECTOR_ROWS[:2], (), VECTOR_ROWS[2:]):
            own = [0.0] * 5
            for *x, y in rows:
                products = [multiply(a, b) for a, b in zip(w, x, strict=True)]
                e = add(add(add(products[0], products[1]), products[2]), -y)
                square = multiply(e, e)
                terms = [*(multiply(e, each) for each in x), square, multiply(0.5, square)]
                own = [add(a, b) for a, b in zip(own, terms, strict=True)]
            sums.append(own)
        totals = [add(add(a, b), c) for a, b, c in zip(*sums, strict=True)]
        for i in range(3):
            v[i] = add(multiply(0.9, v[i]), divide(totals[i], 5.0))
        for i in range(3):
            w[i] = add(w[i], -multiply(0.1, v[i]))
        assert [bits(word) for word in version.words] == [bits(word) for word in (*w, *v)]
        assert {name: bits(value) for name, value in version.results.items()} == {
            "square": bits(totals[3]),
            "loss": bits(totals[4]),
        }


def test_a_start_in_the_middle_goes_on_to_the_same_end(tmp_path: Path) -> None:
    learner = reference(star(tmp_path))
    middle = learner.at(3)
    resumed = next(islice(learner.versions(Version(3, middle.words, {})), 1, None))
    assert (resumed.number, resumed.state, resumed.results) == (5, learner.at(5).state, learner.at(5).results)


MEAN_OF_Y = {
    **SCALAR,
    "contribution": ["g = y + 0 * x * w"],
    "evaluate": ["loss = y"],
    "update": ["w = w - rate * mean_g"],
    "rate": "1.0",
}


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ((1e16, 1.0, 1.0), 1e16),  # a + (b + c) is 1e16 + 2
        ((1.0, 1.0, 1e16), 1e16 + 2),  # (c + a) + b is 1e16
        ((1e16, 1.0, -1e16), 0.0),  # (a + c) + b is 1
    ],
)
def test_contributions_are_combined_left_deep_in_role_order(
    tmp_path: Path, values: tuple[float, ...], total: float
) -> None:
    roles = {"root": 1, "left": 1, "right": 1}
    of = planned(tmp_path, MEAN_OF_Y, [(0.0, value) for value in values], roles)
    version = reference(of).at(1)
    assert version.results == {"loss": total}
    assert version.words == array("d", [0.0 - total / 3.0])


def subtotal(values: list[float], fan_out: int, role: int = 0) -> float:
    """S(i) = ((own_i + S(c1)) + S(c2)) + ..., as the tree is defined."""
    total = values[role]
    for child in range(fan_out * role + 1, min(fan_out * role + fan_out + 1, len(values))):
        total = add(total, subtotal(values, fan_out, child))
    return total


@pytest.mark.parametrize("fan_out", [1, 2, 3, 6])
@pytest.mark.parametrize("roles", [2, 4, 7, 9])
def test_contributions_are_combined_up_the_tree(tmp_path: Path, roles: int, fan_out: int) -> None:
    values = [(1e16, 1.0, -1e16, 3.0, 1.0, 1e16, 1.0, -1e16, 1e-3)[role] for role in range(roles)]
    flat = planned(
        tmp_path, MEAN_OF_Y, [(0.0, value) for value in values], {f"r{role}": 1 for role in range(roles)}
    )
    tree = replace(flat.plan, topology=Topology("hierarchy", roles, fan_out))
    found = Reference(tree, flat.words).at(1).results["loss"]
    assert bits(found) == bits(subtotal(values, fan_out))
    if fan_out >= roles - 1:  # a root over leaves: as a star adds
        assert bits(found) == bits(reference(flat).at(1).results["loss"])


def test_a_tree_adds_in_another_order_than_a_star(tmp_path: Path) -> None:
    values = [1e16, 1.0, 1.0, 1.0]  # the star loses each 1; in the tree two of them meet first
    flat = planned(
        tmp_path, MEAN_OF_Y, [(0.0, value) for value in values], {f"r{role}": 1 for role in range(4)}
    )
    tree = replace(flat.plan, topology=Topology("hierarchy", 4, 2))
    assert reference(flat).at(1).results == {"loss": 1e16}
    assert Reference(tree, flat.words).at(1).results == {"loss": 1e16 + 4}  # 3 more, to even


def test_a_deep_tree_is_walked_without_recursion(tmp_path: Path) -> None:
    roles = 2000
    flat = planned(tmp_path, MEAN_OF_Y, [(0.0, 1.0)] * 3, {"root": 3, "r1": 0})
    chain = replace(
        flat.plan,
        roles=(flat.plan.roles[0], *(Role(f"r{index}", index, 3, 0) for index in range(1, roles))),
        topology=Topology("hierarchy", roles, 1),
    )
    assert Reference(chain, flat.words).at(1).results == {"loss": 3.0}


@pytest.mark.parametrize("parameters", ["replicated", "partitioned"])
@pytest.mark.parametrize("state", ["replicated", "partitioned"])
def test_what_a_role_holds_are_its_own_words_in_state_order(
    tmp_path: Path, parameters: Holding, state: Holding
) -> None:
    of = star(tmp_path)
    plan = replace(of.plan, ownership=Ownership(parameters, state, "replicated"))
    words = array("d", [10.0, 11.0, 12.0, 20.0, 21.0, 22.0])
    for role in plan.roles:
        w = [10.0 + role.index] if parameters == "partitioned" else [10.0, 11.0, 12.0]
        v = [20.0 + role.index] if state == "partitioned" else [20.0, 21.0, 22.0]
        assert list(held_words(plan, role, words)) == [*w, *v]


def test_an_owner_past_the_last_coordinate_holds_nothing(tmp_path: Path) -> None:
    of = pair(tmp_path)
    plan = replace(of.plan, ownership=Ownership("partitioned", "partitioned", "partitioned"))
    words = array("d", [0.5])
    assert [list(held_words(plan, role, words)) for role in plan.roles] == [[0.5], []]


def test_an_owner_sums_its_own_samples_before_it_is_combined(tmp_path: Path) -> None:
    rows = [(0.0, value) for value in (1e16, 1.0, 1.0)]
    of = planned(tmp_path, MEAN_OF_Y, rows, {"root": 1, "other": 2})
    assert reference(of).at(1).results == {"loss": 1e16 + 2}


def test_an_owner_of_nothing_adds_positive_zeros_and_no_mass(tmp_path: Path) -> None:
    of = star(tmp_path)
    learner = reference(of)
    own = learner.contributions(learner.initial())(of.plan.roles[1])
    assert [bits(word) for word in own] == [bits(0.0)] * of.plan.system.combined_words


def test_sums_begin_at_positive_zero(tmp_path: Path) -> None:
    declaration = {**MEAN_OF_Y, "contribution": ["g = -(0 * x)"], "evaluate": ["loss = -(0 * y)"]}
    of = planned(tmp_path, declaration, [(1.0, 1.0), (1.0, 1.0)], {"root": 1, "other": 1})
    learner = reference(of)
    own = learner.contributions(learner.initial())(of.plan.roles[0])
    assert [bits(word) for word in own] == [bits(0.0), bits(0.0), bits(1.0)]


def test_a_total_that_is_not_finite_stops_the_run_in_its_round(tmp_path: Path) -> None:
    of = planned(tmp_path, {**SCALAR, "rate": "1e10"}, [(1e10, 1.0)] * 2, {"root": 1, "other": 1})
    learner = reference(of)
    first = learner.at(1)
    assert all(map(math.isfinite, first.words))
    with pytest.raises(NonFiniteError) as stopped:
        list(islice(learner.versions(), 40))
    version = stopped.value.version
    assert version > 1
    assert learner.at(version - 1).number == version - 1
    with pytest.raises(NonFiniteError):
        learner.at(version)


def test_a_state_that_is_not_finite_stops_the_run(tmp_path: Path) -> None:
    declaration = {**MEAN_OF_Y, "update": ["w = mean_g / (1 - 1)"]}
    of = planned(tmp_path, declaration, [(0.0, 1.0), (0.0, 1.0)], {"root": 1, "other": 1})
    with pytest.raises(NonFiniteError, match="the new state is not finite at update 1"):
        reference(of).at(1)


def test_words_that_are_not_finite_are_refused_in_the_state_that_is_evaluated(tmp_path: Path) -> None:
    with pytest.raises(NonFiniteError, match="the combined total"):
        reference(pair(tmp_path)).evaluate(Version(7, array("d", [1e200]), {}))


def test_digests_and_bits() -> None:
    assert state_digest(array("d")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert state_digest(array("d", [1.0])) != state_digest(array("d", [-1.0]))
    assert state_digest(array("d", [0.0])) != state_digest(array("d", [-0.0]))
    assert shown(0.5) == "3fe0000000000000"
    assert from_bits(shown(-0.0)) == 0.0
    assert bits(from_bits(shown(-0.0))) == bits(-0.0)
    for wrong in ("", "3fe", "3fe000000000000g", "3fe00000000000000"):
        with pytest.raises(ValueError, match="hexadecimal"):
            from_bits(wrong)


def test_words_are_those_of_the_file(tmp_path: Path) -> None:
    of = pair(tmp_path)
    assert of.words == array("d", [1.0, 1.5, 1.0, 1.0, 1.0, 0.5])
