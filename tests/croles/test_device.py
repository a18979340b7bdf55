"""Device roles on the stand-in: the host's bits, one card touched, every launch and byte as counted."""

from __future__ import annotations

from dataclasses import replace

import pytest
import role_cards
import role_plans
from role_bench import Setup
from role_cards import BOUND, OTHER, OWN
from test_kinds import shipped
from test_partitions import partitioned

from orchestrator.build.counted import Counted
from orchestrator.plan.topology import star

SHADOWED = replace(BOUND, is_shadowed=True)
CASES = {
    "pair": role_plans.pair,
    "star": role_plans.star,
    "adam": lambda: partitioned("adam", "seven"),
    "coordinates": lambda: shipped("coordinates", star(2)),
    "correlations": lambda: shipped("correlations", star(4)),
}


def check(run, updates: int, bound=BOUND) -> None:
    """Bits by the reference, counts by the plan and by the stand-in, no other card touched."""
    case = run.case
    ends = run.ends()
    assert {role: run.progress(role) for role in ends} == role_cards.expected(case, updates), ends
    for role in case.plan.roles:
        device = ends[role.name].results["device"]
        assert (device["uuid"], device["minor"], device["product"]) == (OWN.uuid, OWN.minor, OWN.name)
        assert (device["simulated"], device["shadowed"]) == (True, bound.is_shadowed)
        counted = role_cards.account(case, role, updates)
        assert role_cards.told(ends[role.name]) == counted
        calls = role_cards.asked(run.work(role.name))
        own = calls[OWN.minor]
        assert counted == Counted(own.launches, own.to_device, own.from_device, own.bytes_allocated)
        assert (own.races, own.error) == (0, 0)
        assert calls[OTHER.minor].calls == 0


@pytest.mark.parametrize("name", CASES)
def test_a_card_yields_what_the_host_yields(bench, name: str) -> None:
    run = bench(CASES[name]())
    role_cards.place(run, Setup(target=3))
    run.start()
    check(run, 3)
