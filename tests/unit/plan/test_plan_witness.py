"""The witness tells the declared order from every other there is, and a program is shown to keep it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from declared import VECTOR, planned, star

from orchestrator.oracle.reference import Reference
from orchestrator.plan import witness as witness_of
from orchestrator.plan.derive import Planned
from orchestrator.plan.topology import Topology
from orchestrator.plan.topology import star as star_topology
from orchestrator.plan.witness import LARGE, SAMPLES_OF_A_ROLE, triples, witness

Tree = int | tuple["Tree", "Tree"]


@cache
def trees(leaves: tuple[int, ...]) -> tuple[Tree, ...]:
    """Every binary tree over these leaves, each once, whatever left and right are."""
    if len(leaves) == 1:
        return (leaves[0],)
    return tuple(grown for tree in trees(leaves[:-1]) for grown in with_leaf(tree, leaves[-1]))


def with_leaf(tree: Tree, leaf: int) -> Iterator[Tree]:
    yield (tree, leaf)
    if isinstance(tree, tuple):
        left, right = tree
        yield from ((grown, right) for grown in with_leaf(left, leaf))
        yield from ((left, grown) for grown in with_leaf(right, leaf))


def total(tree: Tree, words: list[float]) -> float:
    return words[tree] if isinstance(tree, int) else total(tree[0], words) + total(tree[1], words)


def declared(topology: Topology, role: int, samples: int) -> Tree:
    """((own + S(c1)) + S(c2)) + ..., own samples one after the other."""
    tree: Tree = samples * role
    for part in (
        *range(samples * role + 1, samples * (role + 1)),
        *(declared(topology, child, samples) for child in topology.children(role)),
    ):
        tree = (tree, part)
    return tree


def same(one: Tree, other: Tree) -> bool:
    if isinstance(one, int) or isinstance(other, int):
        return one == other
    return any(same(one[0], other[at]) and same(one[1], other[1 - at]) for at in (0, 1))


@pytest.mark.parametrize(
    ("topology", "samples"),
    [
        (star_topology(2), 3),
        (star_topology(1), 3),
        (star_topology(7), 1),
        (Topology("hierarchy", 7, 2), 1),
        (Topology("hierarchy", 7, 1), 1),
        (Topology("hierarchy", 3, 1), 2),
        (Topology("hierarchy", 6, 3), 1),
    ],
)
def test_no_other_order_has_its_totals(
    topology: Topology, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witness_of, "SAMPLES_OF_A_ROLE", samples)
    leaves = samples * topology.roles
    columns = []
    for triple in triples(topology):
        words = [0.0] * leaves
        for sample, word in zip(triple, (LARGE, -LARGE, 1.0), strict=True):
            words[sample] = word
        columns.append(words)
    assert len(columns) == leaves - 2  # the inner edges of a binary tree
    own = declared(topology, 0, samples)
    seen = 0
    for tree in trees(tuple(range(leaves))):
        totals = {total(tree, words) for words in columns}
        assert (totals == {1.0}) == same(tree, own), tree
        seen += same(tree, own)
    assert seen == 1


@pytest.mark.parametrize("topology", [star_topology(2), star_topology(4), Topology("hierarchy", 7, 2)])
def test_the_reference_keeps_the_order(tmp_path: Path, topology: Topology) -> None:
    names = {f"r{index}": 5 if index == 0 else 0 for index in range(topology.roles)}
    of = planned(tmp_path, VECTOR, [(1.0,) * 4] * 5, names)
    made = witness(replace(of, plan=replace(of.plan, topology=topology)))
    rows = SAMPLES_OF_A_ROLE * topology.roles
    version = Reference(made.plan, made.words).at(1)
    assert set(version.words) == {1.0 / rows}
    assert version.results == {"loss": 1.0}


def test_it_is_as_wide_as_what_it_stands_for(tmp_path: Path) -> None:
    of = star(tmp_path)
    assert witness(of).plan.system.combined_words == len(triples(of.plan.topology)) + 2 == 9
    assert wide(of, 100).plan.system.contributions[0].size == 100
    at_most = witness_of.MAX_WORDS // (3 * SAMPLES_OF_A_ROLE)
    assert wide(of, 8 << 20).plan.system.contributions[0].size == at_most


def wide(of: Planned, words: int) -> Planned:
    contributions = (replace(of.plan.system.contributions[0], size=words),)
    system = replace(of.plan.system, contributions=contributions)
    return witness(replace(of, plan=replace(of.plan, system=system)))


def test_it_is_another_plan_over_the_same_roles(tmp_path: Path) -> None:
    of = star(tmp_path)
    made = witness(of)
    assert made.plan.digest != of.plan.digest
    assert [role.name for role in made.plan.roles] == [role.name for role in of.plan.roles]
    assert (made.plan.topology, made.plan.ownership, made.targets) == (
        of.plan.topology,
        of.plan.ownership,
        of.targets,
    )
    assert {len(made.samples_of(role)) for role in made.plan.roles} == {8 * 7 * SAMPLES_OF_A_ROLE}
