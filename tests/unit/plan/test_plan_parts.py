"""Parts of fields: their arithmetic, and what a role holds at first."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, pairwise, repeat
from pathlib import Path

import pytest
from declared import star
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.plan.model import Field, Plan
from orchestrator.plan.ownership import Holding, Ownership, part


@given(st.integers(0, 30), st.integers(1, 9), st.integers(0, 20), st.integers(0, 200))
def test_coordinates_are_counted_without_being_laid_out(
    first: int, stride: int, count: int, end: int
) -> None:
    own = part(first, stride, count)
    assert own.count_before(end) == sum(each < end for each in own.coordinates)


def laid_out(plan: Plan, index: int) -> list[float]:
    role = plan.roles[index]
    return [
        field.initial[i] for field in plan.system.state_fields for i in plan.held(field, role).coordinates
    ]


@pytest.mark.parametrize("how", ["replicated", "partitioned"])
def test_a_role_begins_with_what_it_holds(tmp_path: Path, how: Holding) -> None:
    plan = star(tmp_path).plan
    words = (0.0, 0.0, -0.0, 1.0, 1.0, 1.0, 2.0)
    system = replace(plan.system, state=(*plan.system.state, Field("more", len(words), words)))
    plan = replace(plan, system=system, ownership=Ownership(how, how, how))
    for role in plan.roles:
        runs = plan.initial_runs(role)
        found = chain.from_iterable(repeat(word, count) for word, count in runs)
        assert list(map(float.hex, found)) == list(map(float.hex, laid_out(plan, role.index)))
        assert all(one[0].hex() != other[0].hex() for one, other in pairwise(runs))
