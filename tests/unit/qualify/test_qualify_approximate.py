"""Nearness as a judge says it: the first word out of bounds, the farthest of all, digests that files tell."""

from array import array
from dataclasses import replace
from pathlib import Path

from declared import star

from orchestrator.oracle.reference import Version, bits, held_words, state_digest
from orchestrator.plan.model import Plan
from orchestrator.plan.ownership import Ownership
from orchestrator.qualify import approximate
from orchestrator.qualify.approximate import Farthest
from orchestrator.qualify.launch import ProgressLine
from orchestrator.qualify.outcome import approximately
from orchestrator.spec.numerics import Bound

WORDS = array("d", (1.0, -2.0, 0.0, 4.0, 5.0, 6.0))  # w, then v
LOSS, ROLES = 2.0, ("root", "idle", "worker")


def plan_of(folder: Path, *, partitioned: bool = False) -> Plan:
    plan = star(folder).plan
    return (
        replace(plan, ownership=Ownership("replicated", "partitioned", "replicated")) if partitioned else plan
    )


def test_the_first_word_out_of_bounds_is_named_and_the_farthest_of_all(tmp_path: Path) -> None:
    system = plan_of(tmp_path).system
    got = array("d", (1.0, -2.0625, 0.0, 4.5, 5.0, 6.0))
    beyond, farthest = approximate.compared(system, Bound(0.01), Version(7, WORDS, {}), got)
    assert beyond is not None
    assert beyond.expected == "w[1] = -2.0 (c000000000000000) within relative 0.01 at update 7"
    assert beyond.got == "w[1] = -2.0625 = -33/16 (c000800000000000)"
    assert str(farthest) == "largest relative difference 0.125 (v[0])"
    beyond, farthest = approximate.compared(system, Bound(0.125), Version(7, WORDS, {}), got)
    assert (beyond, farthest.where) == (None, "v[0]")


def test_a_word_that_should_be_zero_needs_an_absolute_bound(tmp_path: Path) -> None:
    system = plan_of(tmp_path).system
    got = array("d", WORDS)
    got[2] = 2.0**-40
    for bound, is_near in ((Bound(0.5), False), (Bound(0.5, 1e-9), True)):
        beyond, farthest = approximate.compared(system, bound, Version(1, WORDS, {}), got)
        assert (beyond is None) == is_near
        assert str(farthest) == "largest relative difference inf (w[2])"


def test_zeros_of_either_sign_are_the_same(tmp_path: Path) -> None:
    got = array("d", WORDS)
    got[2] = -0.0
    found = approximate.compared(plan_of(tmp_path).system, Bound(1e-9), Version(1, WORDS, {}), got)
    assert found == (None, Farthest())


def lines(states: tuple[str, ...], loss: float = LOSS, version: int = 3) -> dict[str, ProgressLine]:
    return {role: ProgressLine(version, state, bits(loss)) for role, state in zip(ROLES, states, strict=True)}


def test_roles_that_hold_the_same_words_say_the_same_digest(tmp_path: Path) -> None:
    plan, one, other = plan_of(tmp_path), "a" * 64, "b" * 64
    assert approximate.digests_differ(plan, lines((one, one, one)), None) is None
    found = approximate.digests_differ(plan, lines((one, other, one)), None)
    assert found is not None
    assert found.got == f"idle: state {other}"
    # each holds words of its own: nothing can be said where they were not published
    apart = plan_of(tmp_path, partitioned=True)
    assert approximate.digests_differ(apart, lines((one, other, one)), None) is None


def test_digests_are_of_the_published_words_where_there_are_any(tmp_path: Path) -> None:
    for plan in (plan_of(tmp_path), plan_of(tmp_path, partitioned=True)):
        right = tuple(state_digest(held_words(plan, role, WORDS)) for role in plan.roles)
        assert approximate.digests_differ(plan, lines(right), WORDS) is None
        moved = array("d", WORDS)
        moved[4] += 1e-12
        wrong = tuple(state_digest(held_words(plan, role, moved)) for role in plan.roles)
        found = approximate.digests_differ(plan, lines(wrong), WORDS)
        assert found is not None
        assert "of the published words" in found.expected


def test_a_loss_is_held_to_the_bound_in_its_one_form() -> None:
    state = ("a" * 64,) * 3
    assert approximate.losses_differ(lines(state, 2.0625), 3, LOSS, Bound(0.05)) is None
    beyond = approximate.losses_differ(lines(state, 2.0625), 3, LOSS, Bound(0.01))
    assert beyond is not None
    assert beyond.expected == "loss 2.0 (4000000000000000) within relative 0.01"
    assert beyond.got == "root: loss 2.0625 = 33/16 (4000800000000000)"
    for loss in (float("nan"), float("inf")):
        assert approximate.losses_differ(lines(state, loss), 3, LOSS, Bound(0.5)) is not None
    for wrong in (
        lines(state, version=4),
        lines(("A" * 64,) * 3),
        {role: replace(line, loss="4000 00000000000") for role, line in lines(state).items()},
    ):
        assert approximate.losses_differ(wrong, 3, LOSS, Bound(0.5)) is not None


def test_a_headline_says_what_is_no_exact_contract() -> None:
    assert approximately("binary64-approximate, relative 1e-09") == ("approximate, relative 1e-09",)
    assert approximately("binary64-ordered") == approximately(None) == ()
