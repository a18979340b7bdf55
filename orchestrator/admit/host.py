"""Host memory against quotas: every role against its own, and all roles of a node against the node's.

A quota that is not known is open while planning and refused at preflight: pass `quotas=None` to plan.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.admit.memory import demand
from orchestrator.errors import Label, Refusal
from orchestrator.plan.classes import role_classes
from orchestrator.plan.model import Plan
from orchestrator.spec.repeated import Repeated
from orchestrator.spec.run import RunSpec


def admit(
    plan: Plan, run: RunSpec, placement: Mapping[str, str], quotas: Mapping[str, int | None] | None
) -> tuple[Refusal, ...]:
    """Every role that does not fit, in role order.

    Args:
        plan: the plan.
        run: the run spec; its `memory` sets a role's own quota.
        placement: role -> node; may be empty while planning.
        quotas: node -> bytes that processes may use there, None where the node does not say; None as a whole
            while no node is known.

    Returns:
        Refusals `capacity-exceeded` or `capacity-unknown`, each with key `memory.<role>`.
    """
    refusals = []
    used: dict[str, int] = {}
    for role, own, need in zip(plan.roles, run.memory, _needs(plan, run), strict=True):
        key = f"memory.{role.name}"
        if own is not None and need > own:
            message = (
                f"{role.name} does not fit its memory (got a demand of {need} bytes, expected at most {own})"
            )
            refusals.append(Refusal(Label.CAPACITY_EXCEEDED, message, run.where("memory"), key))
            continue
        if quotas is None:
            continue
        node = placement[role.name]
        quota = quotas[node]
        used[node] = used.get(node, 0) + (own if own is not None else need)
        if quota is None:
            message = f"node {node} does not say how much memory it has (got nothing, expected a quota)"
            refusals.append(Refusal(Label.CAPACITY_UNKNOWN, message, run.where("roles"), key))
        elif used[node] > quota:
            got = f"{used[node]} bytes with the roles before it"
            message = f"{role.name} does not fit node {node} (got {got}, expected at most {quota})"
            refusals.append(Refusal(Label.CAPACITY_EXCEEDED, message, run.where("roles"), key))
    return tuple(refusals)


def _needs(plan: Plan, run: RunSpec) -> Repeated[int]:
    """What each role asks for, in bytes; of roles that are alike it is asked once."""
    return Repeated(
        tuple(
            (demand(plan, plan.roles[first], run.devices[first]).total, len(each.roles))
            for each in role_classes(plan, run.made_for)
            for first in each.roles[:1]
        )
    )
