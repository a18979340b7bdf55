"""What admission says that a role holds, against the arrays in its program."""

from __future__ import annotations

from dataclasses import replace

import pytest
import role_plans
from role_bench import CONTENT, X86

from orchestrator.admit.memory import demand
from orchestrator.build.compile import Made, build_program
from orchestrator.build.elf import describe
from orchestrator.plan.model import Field, Plan

FIELD = 5000


def wider(plan: Plan, part: str) -> Plan:
    """The same plan with one more field somewhere."""
    initial = (0.0,) * FIELD if part in ("parameters", "state") else ()
    fields = (*getattr(plan.system, part), Field("more", FIELD, initial))
    return replace(plan, system=replace(plan.system, **{part: fields}))


def more_roles(plan: Plan) -> Plan:
    extra = role_plans.roles(*((f"role{i}", 0) for i in range(40)))
    last = plan.roles[-1]
    moved = (replace(role, index=role.index + len(plan.roles), first_sample=5) for role in extra)
    return replace(plan, roles=(*plan.roles[:-1], last, *moved))


PLANS = {
    "small": lambda plan: plan,
    **{
        part: (lambda plan, part=part: wider(plan, part))
        for part in ("parameters", "state", "sample", "contributions")
    },
    "roles": more_roles,
}


@pytest.mark.parametrize("what", PLANS)
@pytest.mark.parametrize("role", [0, 1, 2])
def test_the_demand_is_what_the_program_holds(what, role, program_cache):
    small = role_plans.star().plan
    plan = PLANS[what](small)
    held, least = (
        describe(build_program(each, each.roles[role], Made(X86), CONTENT, program_cache).data)[
            "memory_bytes"
        ]
        for each in (plan, small)
    )
    asked = demand(plan, plan.roles[role]).static
    assert held <= asked
    # what grows with the plan is asked for as it grows: nothing is asked for twice
    assert asked - held <= demand(small, small.roles[role]).static - least + 48 * 1024
