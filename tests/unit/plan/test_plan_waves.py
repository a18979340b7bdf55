"""Which statements may be one kernel: as many as no thread has to wait for another in."""

from __future__ import annotations

import pytest

from orchestrator.plan import grammar, shapes
from orchestrator.plan.places import Step
from orchestrator.plan.waves import used, waves

FIELDS = {"w": 4, "v": 4, "p": 1, "b": 1}


def steps(*program: str) -> tuple[Step, ...]:
    scope = shapes.Scope({**FIELDS, "g": 4, "rate": 1}, FIELDS)
    return tuple(Step(shapes.shape(grammar.parse(text), scope), None) for text in program)


def targets(*program: str) -> list[list[str]]:
    return [[each.step.assignment.target for each in wave] for wave in waves(steps(*program))]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        # each coordinate reads its own
        (["v[i] = v[i] + g[i]", "w[i] = w[i] - rate * v[i]"], [["v", "w"]]),
        # what a coordinate reads of others waits for them; and so does who would overwrite it meanwhile
        (["w[i] = g[i]", "v[i] = w[0]"], [["w"], ["v"]]),
        (["v[i] = sum(w)", "w[i] = g[i]"], [["v"], ["w"]]),
        (["t[i] = sum(w) * g[i]", "w[i] = t[i]"], [["t"], ["w"]]),
        # words of one that all read: made first, or by everyone where nothing writes what they are made of
        (["p = p * 0.5", "v[i] = g[i]", "r = 1 / p", "w[i] = v[i] * r"], [["p", "v"], ["r", "w"]]),
        (["r = 1 / p", "w[i] = w[i] * r", "p = p * 0.5"], [["r", "w"], ["p"]]),
        (["r = sum(w)", "v[i] = v[i] * r"], [["r", "v"]]),
        # of one thread's own words none is waited for
        (["p = p * 0.5", "t = p + b", "b = t", "w[i] = g[i]"], [["p", "t", "b", "w"]]),
        # a chain is as long as it is, whatever stands between
        (["p = dot(w, g)", "w[i] = w[i] * p", "b = sum(w)", "v[i] = g[i]"], [["p", "v"], ["w"], ["b"]]),
        ([], []),
    ],
)
def test_waves(program: list[str], expected: list[list[str]]) -> None:
    assert targets(*program) == expected


def test_what_later_waves_read_is_stored_and_what_many_read_is_everywhere() -> None:
    (first, second) = waves(steps("r = 1 / p", "t[i] = w[i] * r", "v[i] = t[0] + r"))
    told = [(each.step.assignment.target, each.is_everywhere, each.is_stored) for each in (*first, *second)]
    assert told == [("r", True, True), ("t", False, True), ("v", False, False)]


def test_what_nobody_reads_is_left_out() -> None:
    kept = used(steps("t = p + 1", "s = t * t", "r = b + 1", "w[i] = g[i] * r"), FIELDS)
    assert [each.assignment.target for each in kept] == ["r", "w"]
