"""Which role goes to which node: as the pods file says, else in order, in blocks of neighbours.

Pure. Knows roles and nodes by name; reaches none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from orchestrator.errors import Label, Refusal
from orchestrator.spec.faults import one_of, suggest
from orchestrator.spec.places import visible
from orchestrator.spec.pods import NODE_ONLY, Placement, PodsSpec


def place(roles: Sequence[str], pods: PodsSpec, with_card: Collection[str] = ()) -> dict[str, Placement]:
    """Role -> node and card, in the roles' order.

    Without `roles:` in the file, neighbours go together and no node gets two roles more than another; where
    there are more nodes than roles the last nodes get none. A device role for which the file names no card
    gets the next of its node that is nobody's, in the file's order; there may be none left.
    """
    if pods.roles:
        placed = {role: pods.roles[role] for role in roles}
    else:
        names, count = tuple(pods.nodes), min(len(pods.nodes), len(roles))
        placed = {
            role: Placement(names[index * count // len(roles)], None) for index, role in enumerate(roles)
        }
    named = {where.card for where in placed.values()}
    free = {name: [card for card in node.cards if card not in named] for name, node in pods.nodes.items()}
    for role, where in placed.items():
        if role in with_card and where.card is None and free[where.node]:
            placed[role] = replace(where, card=free[where.node].pop(0))
    return placed


def minor_of(card: str, cards: Mapping[str, int]) -> int:
    """The minor number of a card as a role's place names it: by its UUID, or `node-only:N`."""
    return int(card.removeprefix(NODE_ONLY)) if card.startswith(NODE_ONLY) else cards[card]


def uuid_of(card: str) -> str | None:
    """Its UUID; None where the place is `node-only:N`."""
    return None if card.startswith(NODE_ONLY) else card


def without_card(
    placed: Mapping[str, Placement], pods: PodsSpec, roles: Collection[str]
) -> Iterator[Refusal]:
    """Device roles that are left without a card."""
    for role in (role for role in roles if placed[role].card is None):
        node = placed[role].node
        count = len(pods.nodes[node].cards)
        message = (
            f"no card is left for role `{visible(role)}` on node {node} (got {count}, expected one more)"
        )
        hint = f"`orch pods pin {node}` writes down the cards that it has; `roles` says which one is whose"
        yield pods.document.at(Label.DEVICE_ABSENT, message, ("nodes", node, "cards"), hint=hint)


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
