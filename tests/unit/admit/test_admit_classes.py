"""Roles of one class ask for the same memory: one of them is asked for all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.admit.memory import demand
from orchestrator.plan.classes import role_classes
from orchestrator.plan.derive import derive
from orchestrator.plan.model import Field, Plan
from orchestrator.plan.ownership import Ownership
from orchestrator.plan.roles import Roles
from orchestrator.plan.topology import Topology, star
from orchestrator.spec.names import expand
from orchestrator.spec.read import read_native_run
from orchestrator.spec.repeated import repeated

RUNS = Path(__file__).parents[3] / "specs" / "runs"
P, R = "partitioned", "replicated"
RANGES = tuple(range(start, stop) for start, stop in ((0, 4), (4, 5), (5, 5), (5, 12), (12, 12)))


def narrow(field: Field) -> Field:
    """Twelve words that are not all alike; of a shared field the one that it has."""
    initial = (0.5, 0.5, *map(float, range(8)), 0.25, 0.25)
    return field if field.shared else replace(field, size=12, initial=initial)


def plan_of(topology: Topology, ownership: Ownership) -> Plan:
    system = derive(read_native_run(RUNS / "wide-adam.yaml")).plan.system
    system = replace(
        system,
        parameters=tuple(map(narrow, system.parameters)),
        state=tuple(map(narrow, system.state)),
        contributions=tuple(replace(field, size=12) for field in system.contributions),
    )
    rows = repeated(((3, 1), (1, min(8, topology.roles - 1)), (0, max(0, topology.roles - 9))), int)
    names = expand(f"root,w[1-{topology.roles - 1}]")
    return Plan(system, Roles(names, rows), topology, ownership)


@pytest.mark.parametrize("held", [(R, R, R), (R, P, R), (P, R, R), (R, R, P), (P, P, P)])
@pytest.mark.parametrize("topology", [star(2), star(5), Topology("hierarchy", 40, 3)], ids=str)
def test_every_role_asks_for_what_its_class_does(topology: Topology, held: tuple[str, str, str]) -> None:
    for ranges in ((), RANGES) if topology.roles == len(RANGES) else ((),):
        plan = plan_of(topology, Ownership(*held, ranges))
        classes = role_classes(plan)
        assert len(classes) < topology.roles or topology.roles <= len(RANGES)
        for each in classes:
            asked = {demand(plan, plan.roles[index]).lines for index in each.roles}
            assert len(asked) == 1
