"""The declared order is shown to have run: over the witness's words a program's bits tell its order."""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import product

import pytest
import role_cards
import role_plans
from covering import some
from role_bench import Setup
from role_plans import Case

from orchestrator.build import kernels
from orchestrator.oracle.reference import Reference, bits
from orchestrator.plan.derive import Planned
from orchestrator.plan.model import Plan
from orchestrator.plan.places import Extents
from orchestrator.plan.topology import Topology, star
from orchestrator.plan.witness import SAMPLES_OF_A_ROLE, witness


def witnessed(case: Case) -> Case:
    made = witness(Planned(case.plan, array("d", case.words), {}, {}))
    return Case(made.plan, tuple(made.words))


@pytest.mark.parametrize("case", [role_plans.single, role_plans.pair, role_plans.star])
def test_programs_add_in_the_declared_order(bench, case):
    of = witnessed(case())
    expected = Reference(of.plan, array("d", of.words)).at(1)
    assert set(expected.words) == {1.0 / (SAMPLES_OF_A_ROLE * len(of.plan.roles))}
    run = bench(of)
    ends = run.run(Setup(target=1))
    assert {end.results["state"] for end in ends.values()} == {expected.state}
    lines = {line for role in of.plan.roles for line in run.progress(role.name)}
    assert lines == {f"1 {expected.state} {bits(1.0)}"}


@pytest.mark.parametrize(
    ("topology", "words"),
    some(
        product([star(4), Topology("hierarchy", 7, 2)], [3, 70000]),
        lambda at: (at[0].kind == "star") == (at[1] > 3),
    ),
    ids=str,
)
def test_programs_of_every_tree_and_width_add_in_the_declared_order(bench, topology, words):
    """Whatever way the additions go by: one for short vectors, others for long ones."""
    who = role_plans.roles(*((f"r{index}", 0) for index in range(topology.roles)))
    plan = replace(role_plans.star().plan, roles=who, topology=topology)
    gradient = (replace(plan.system.contributions[0], size=words),)
    plan = replace(plan, system=replace(plan.system, contributions=gradient))
    of = witnessed(Case(plan, ()))
    assert of.plan.system.contributions[0].size >= min(words, 30000)
    expected = Reference(of.plan, array("d", of.words)).at(1)
    run = bench(of)
    ends = run.run(Setup(target=1))
    assert {end.results["state"] for end in ends.values()} == {expected.state}


def test_another_order_shows_in_the_state(bench):
    """Two roles' samples are handed to each other, so that they are added in each other's place."""
    of = witnessed(role_plans.star())
    root, second, third = of.plan.roles
    swapped = (
        replace(second, first_sample=third.first_sample),
        replace(third, first_sample=second.first_sample),
    )
    run = bench(Case(replace(of.plan, roles=(root, *swapped)), of.words))
    expected = Reference(of.plan, array("d", of.words)).at(1)
    assert expected.state not in {end.results["state"] for end in run.run(Setup(target=1)).values()}


def summed_backwards(plan: Plan, words: Extents, row: int) -> str:
    """The kernel `sums`, from the last sample to the first."""
    code = kernels.Code(plan.system.word, words.terms)
    names = kernels.Words(code, {}, {"row": kernels.Base("work", 1), "sums": kernels.Base("sums", 1)})
    address, out = names.address("row"), names.address("sums")
    total = code.made("f", f"mov.{code.type}", kernels.constant(0.0, code.word))
    for sample in reversed(range(words.samples)):
        term = code.made("f", f"ld.global.{code.type}", code.at(address, sample * row))
        code.put(f"add.rn.{code.type}", total, total, term)
    code.put(f"st.global.{code.type}", code.at(out, 0), total)
    return code.entry("sums")


@pytest.mark.parametrize("is_declared", some([False, True], lambda is_declared: not is_declared), ids=str)
def test_the_order_of_a_card_shows_in_the_state(bench, monkeypatch, is_declared):
    if not is_declared:
        monkeypatch.setattr(kernels, "_sums", summed_backwards)
    of = witnessed(role_plans.pair())
    run = bench(of)
    role_cards.place(run, Setup(target=1), ["worker"])
    run.start()
    expected = Reference(of.plan, array("d", of.words)).at(1)
    assert ({end.results["state"] for end in run.ends().values()} == {expected.state}) == is_declared
