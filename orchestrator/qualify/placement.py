"""Which role goes to which node: as the pods file says, else in order, in blocks of neighbours.

Pure. Knows roles and nodes by name; reaches none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from orchestrator.errors import Label, Refusal
from orchestrator.spec.faults import one_of, suggest
from orchestrator.spec.places import visible
from orchestrator.spec.pods import Placement, PodsSpec


def place(roles: Sequence[str], pods: PodsSpec) -> dict[str, Placement]:
    """Role -> node and card, in the roles' order.

    Without `roles:` in the file, neighbours go together and no node gets two roles more than another; where
    there are more nodes than roles the last nodes get none.
    """
    if pods.roles:
        return {role: pods.roles[role] for role in roles}
    names, count = tuple(pods.nodes), min(len(pods.nodes), len(roles))
    return {role: Placement(names[index * count // len(roles)], None) for index, role in enumerate(roles)}


def refusals(roles: Sequence[str], pods: PodsSpec) -> Iterator[Refusal]:
    """Roles that the file's placement leaves out. Roles of other runs may stand there too."""
    for role in (role for role in roles if pods.roles and role not in pods.roles):
        message = f"role `{visible(role)}` goes nowhere (got no node for it, expected {one_of(pods.nodes)})"
        hint = suggest(role, pods.roles) or "without `roles` they go to the nodes in order"
        yield pods.document.at(Label.FIELD_MISSING, message, ("roles", role), hint=hint)


def described(placement: Mapping[str, str], nodes: Sequence[str]) -> str:
    """The placement in a line, by node: `coordinator, worker1 on a; worker2 on b; nothing on c`."""
    on = {node: [role for role, where in placement.items() if where == node] for node in nodes}
    return "; ".join(f"{', '.join(roles) or 'nothing'} on {node}" for node, roles in on.items())
