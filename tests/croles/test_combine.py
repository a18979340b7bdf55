"""The combine alone: whichever schedule adds the words up, the total has the bits of the declared order."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from role_bench import ARM, EMULATORS, X86

from benchmarks.mesh import Rounds, compile_role, run

FIXED = ("gather", "slices", "root")


@pytest.fixture(scope="module", params=["as-shipped", "sanitized"])
def program(request, tmp_path_factory) -> Path:
    sanitizers = ["-fsanitize=undefined", "-fsanitize-trap=undefined"]
    more = sanitizers if request.param == "sanitized" else []
    return compile_role(tmp_path_factory.mktemp("combine"), more=more)


def total(vectors: Sequence[Sequence[float]], fan_out: int) -> list[float]:
    """S(i) = ((own_i + S(c1)) + S(c2)) + ..., word by word."""

    def subtree(role: int) -> list[float]:
        words = list(vectors[role])
        for child in range(role * fan_out + 1, min(role * fan_out + fan_out, len(vectors) - 1) + 1):
            words = [one + other for one, other in zip(words, subtree(child), strict=True)]
        return words

    return subtree(0)


def vectors_of(chance: random.Random, roles: int, count: int) -> list[list[float]]:
    """Words whose sums depend on their order, and the zeros of both signs."""
    sizes = (1.0, -1.0, 1e16, -1e16, 1e-9, 0.0, -0.0)
    return [
        [chance.choice(sizes) * chance.choice((1.0, chance.random())) for _ in range(count)]
        for _ in range(roles)
    ]


def packed(words: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(words)}d", *words)


@pytest.mark.parametrize("roles", range(2, 10))
def test_every_schedule_gives_the_bits_of_the_order(program, roles):
    chance = random.Random(roles)
    for fan_out in sorted({roles - 1, 2, 3}):
        for count in (0, 1, roles, 515, 20_011):
            vectors = vectors_of(chance, roles, count)
            expected = packed(total(vectors, fan_out))
            for schedule in (*FIXED, "chosen"):
                what = Rounds(roles, fan_out, schedule, count)
                assert run(program, what, [packed(words) for words in vectors]) == (expected,) * roles, what


def test_the_order_shows():
    """The words are such that another order gives other bits: the test above could fail."""
    vectors = vectors_of(random.Random(9), 9, 515)
    assert len({packed(total(vectors, fan_out)) for fan_out in (1, 2, 3, 8)}) == 4


@pytest.mark.parametrize("schedule", FIXED)
def test_a_vector_longer_than_what_roles_keep_of_others(program, schedule):
    chance = random.Random(7)
    vectors = vectors_of(chance, 4, 100_003)
    expected = packed(total(vectors, 2))
    got = run(program, Rounds(4, 2, schedule, 100_003), [packed(words) for words in vectors])
    assert got == (expected,) * 4


@pytest.mark.parametrize("schedule", FIXED)
def test_many_rounds_follow_each_other(program, schedule):
    said = run(program, Rounds(5, 2, schedule, 1000, rounds=200))
    assert all(int(text) > 0 for text in said)


def test_the_other_instruction_set_adds_the_same_bits(tmp_path):
    vectors = vectors_of(random.Random(3), 3, 1001)
    given = [packed(words) for words in vectors]
    program = compile_role(tmp_path, ARM)
    for schedule in FIXED:
        got = run(program, Rounds(3, 2, schedule, 1001), given, EMULATORS[ARM])
        assert got == (packed(total(vectors, 2)),) * 3


def test_both_instruction_sets_make_small_programs(tmp_path):
    for target in (X86, ARM):
        (tmp_path / target).mkdir()
        assert compile_role(tmp_path / target, target).stat().st_size <= 8 * 1024
