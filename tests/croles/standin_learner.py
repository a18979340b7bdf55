"""What the device roles of a plan do in a round, on the stand-in, with the combine made here.

Each round begins at the reference's state, so that what a round leaves is compared by itself.
"""

from __future__ import annotations

import ctypes
import operator
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from role_plans import Case
from standin_bench import Driver

from orchestrator.build.kernels import Kernels, kernels
from orchestrator.build.ptx import BLOCK
from orchestrator.oracle.arithmetic import single
from orchestrator.oracle.kinds import reference_of
from orchestrator.oracle.reference import Version, held_words
from orchestrator.plan.derive import own_samples
from orchestrator.plan.model import Plan, Role
from orchestrator.plan.places import Extents, extents, own_means_of

Words = Sequence[float]
UPDATES = 2


@dataclass(frozen=True)
class Card:
    """One role's buffers; those of no words are 0."""

    plan: Plan
    role: Role
    driver: Driver
    made: Kernels
    words: Extents
    module: ctypes.c_void_p
    addresses: tuple[int, ...]

    def launch(self, entry: str, threads: int) -> None:
        function = self.driver.entry(self.module, entry)
        blocks = -(-threads // BLOCK)
        assert self.driver.launch(function, *self.addresses, grid=blocks, block=BLOCK) == 0, entry

    def put(self, buffer: int, words: Words) -> None:
        if words:
            data = array(self.plan.system.word.typecode, words).tobytes()
            assert self.driver.copy_to(self.addresses[buffer], data) == 0

    def get(self, buffer: int, count: int) -> list[float]:
        word = self.plan.system.word
        if not count:
            return []
        return array(word.typecode, self.driver.get(self.addresses[buffer], count * word.size)).tolist()


STATE, SAMPLES, PARAMETERS, WORK, SUMS, TOTAL = range(6)


def card(driver: Driver, plan: Plan, role: Role, words: array[float]) -> Card:
    made, sizes, word = kernels(plan, role, "7.5"), extents(plan, role), plan.system.word
    replica = (
        sizes.parameters if plan.system.has_own_rows and plan.ownership.parameters != "replicated" else 0
    )
    total = max(sizes.total, plan.system.combined_words)
    counts = (sizes.held, sizes.samples * sizes.sample, replica, made.work_words, sizes.terms, total)
    addresses = [driver.allocate(count * word.size)[1] if count else 0 for count in counts]
    if not replica:
        addresses[PARAMETERS] = addresses[STATE]
    result, module = driver.load(made.ptx)
    assert result == 0, made.ptx
    whole = Card(plan, role, driver, made, sizes, module, tuple(addresses))
    whole.put(SAMPLES, own_samples(plan, role, words))
    return whole


def advance(cards: Sequence[Card], before: Version) -> tuple[list[array[float]], list[float]]:
    """What each role holds after one more update, and the results."""
    plan = cards[0].plan
    system = plan.system
    for each in cards:
        each.put(STATE, held_words(plan, each.role, before.words))
        if each.addresses[PARAMETERS] != each.addresses[STATE]:
            each.put(PARAMETERS, before.words[: each.words.parameters])
    total = _combined(plan, [_contribution(each) for each in cards])
    results = total[-1 - len(system.results) : -1]
    for each in cards:
        if system.has_own_rows:
            each.put(TOTAL, _own(each, total))
        elif system.forward:
            each.put(TOTAL, total)
            results = _sums(each)[-len(system.results) :]
        for number, threads in enumerate(each.made.update):
            each.launch(f"update_{number}", threads)
    _assemble(cards)
    return [array(system.word.typecode, each.get(STATE, each.words.held)) for each in cards], results


def _assemble(cards: Sequence[Card]) -> None:
    """Words that all roles hold and one computes, from their owners."""
    plan, size = cards[0].plan, cards[0].plan.system.word.size
    for number, field in enumerate(plan.system.state_fields):
        if not plan.ownership.is_partitioned or plan.is_partitioned(field) or field.shared:
            continue
        held = [each.get(STATE, each.words.held) for each in cards]
        firsts = [
            sum(plan.held(before, each.role).count for before in plan.system.state_fields[:number])
            for each in cards
        ]
        owners = [plan.ownership.owner(i, len(plan.roles)) for i in range(field.size)]
        words = [held[owner][firsts[owner] + i] for i, owner in enumerate(owners)]
        for each, first in zip(cards, firsts, strict=True):
            data = array(plan.system.word.typecode, words).tobytes()
            assert each.driver.copy_to(each.addresses[STATE] + first * size, data) == 0


def _sums(each: Card) -> list[float]:
    if not each.made.terms:
        return [0.0] * each.words.terms
    each.launch("terms", each.made.terms)
    each.launch("sums", each.made.sums)
    return each.get(SUMS, each.words.terms)


def _contribution(each: Card) -> list[float]:
    system, rows = each.plan.system, each.plan.rows(each.role)
    if system.has_own_rows:
        return [*_sums(each), float(len(rows))]
    mass = float(len(rows)) if each.role.index == 0 else 0.0
    if not system.forward:
        return [*_sums(each), mass]
    each.launch("forward", each.made.forward)
    forward = each.get(TOTAL, each.made.forward * len(system.forward))
    return [*forward, *[0.0] * len(system.results), mass]


def _combined(plan: Plan, contributions: Sequence[Words], role: int = 0) -> list[float]:
    add: Callable[..., float] = single(plan.system.word).each(operator.add)
    total = list(contributions[role])
    for child in plan.topology.children(role):
        total = list(map(add, total, _combined(plan, contributions, child)))
    return total


def _own(each: Card, total: Words) -> list[float]:
    """Of the totals those that the role receives: its own means, the results, the mass."""
    system = each.plan.system

    def means() -> Iterator[float]:
        at = 0
        for field, part in zip(system.contributions, own_means_of(each.plan, each.role), strict=True):
            yield from (total[at + i] for i in part.coordinates)
            at += field.size

    return [*means(), *total[-1 - len(system.results) :]]


def check(driver: Driver, case: Case) -> None:
    """Two updates leave the reference's words in every role, with no error and no race.

    Raises:
        NonFiniteError: the reference leaves the finite numbers.
    """
    plan, words = case.plan, array(case.plan.system.word.typecode, case.words)
    driver.begin()
    cards = [card(driver, plan, role, words) for role in plan.roles]
    reference = reference_of(plan, words)
    before = reference.initial()
    for version in islice(reference.versions(), UPDATES):
        held, results = advance(cards, before)
        expected = [held_words(plan, role, version.words) for role in plan.roles]
        assert [words.tobytes() for words in held] == [words.tobytes() for words in expected]
        assert results == list(version.results.values())
        before = version
    (calls,) = driver.calls()
    assert (calls.error, calls.races) == (0, 0)
