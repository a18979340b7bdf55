"""Cards against their roles: which card backs what, who uses how much of it when, and whether it suffices.

A card that is not known yet is every role's own, under any driver for which its profile has facts; what no
profile says is open then, and refused once the card is known. Knows nothing of how cards are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.admit.card import card_demand, supply
from orchestrator.admit.graph import (
    Absent,
    Amount,
    Domain,
    Endpoint,
    Envelope,
    Established,
    Graph,
    Lease,
    Link,
    Placement,
    Relation,
    Transfer,
    Use,
)
from orchestrator.admit.hold import Fault, faults
from orchestrator.errors import Label, Refusal
from orchestrator.plan.classes import role_classes
from orchestrator.plan.derive import Planned
from orchestrator.plan.model import Plan, Role
from orchestrator.plan.resident import buffer_words
from orchestrator.spec.device import DeviceSpec
from orchestrator.spec.run import RunSpec

COPY = Envelope(1, Established((1 << 64) - 1, "CUDA driver API: cuMemcpyHtoD and cuMemcpyDtoH take a size_t"))

_HINTS = {
    Label.CAPACITY_UNKNOWN: "`video_memory` of the run says what a role may use, and `orch profile capture` "
    "writes down what a card holds",
    Label.CAPACITY_EXCEEDED: "fewer samples or roles on the card, another card, or a larger quota",
}


@dataclass(frozen=True)
class FoundCard:
    """A card that a role is bound to.

    Attributes:
        node: whose it is.
        name: which one of the node's: its UUID, or its minor where that alone was bound.
        driver: the release that its node has; None where it does not say.
    """

    node: str
    name: str
    driver: str | None

    @property
    def endpoint(self) -> str:
        """Its name in the graph."""
        return f"{self.node}/{self.name}"


@dataclass(frozen=True)
class Part:
    """One part of a lane. Parts follow each other: what one gives back the next can use.

    Attributes:
        planned: programs as they are made for this part.
        cards: device role -> its card; None while no card is known. A role without one is not looked at.
    """

    planned: Planned
    cards: Mapping[str, FoundCard] | None


def admit_cards(run: RunSpec, parts: Sequence[Part]) -> tuple[Refusal, ...]:
    """Every card that does not hold its roles, and every role that does not fit its own quota.

    Args:
        run: the run spec; its `video_memory` sets a role's own quota.
        parts: of the lane, in their order; one of a run alone.

    Returns:
        Refusals of one class (see `orchestrator.admit.hold`), each with key `video_memory.<role>`.
    """
    graph, use = resources(run, parts)
    found = faults(graph, use)
    if any(part.cards is None for part in parts) and any(f.label is Label.CAPACITY_UNKNOWN for f in found):
        found = faults(_open(graph), use)
    return tuple(_refusal(run, each) for each in found)


def resources(run: RunSpec, parts: Sequence[Part]) -> tuple[Graph, Use]:
    """What there is for the device roles of a lane, and what they use of it, step by step."""
    made = _Made()
    for step, part in enumerate(parts):
        for role, device in _device_roles(run, part):
            if part.cards is None:
                card = FoundCard(f"node of {role.name}", "card", None)
                _add(made, run, part.planned, role, card, supply(device, None), step)
            elif role.name in part.cards:
                card = part.cards[role.name]
                _add(made, run, part.planned, role, card, _holds(device, card), step)
    relations = (
        Relation(f"machine {node}", "same-host", (node, *cards))
        for node, cards in made.nodes.items()
        if cards
    )
    graph = Graph(
        (
            *(Endpoint(node, "host") for node in made.nodes),
            *(Endpoint(card, "card") for cards in made.nodes.values() for card in cards),
        ),
        tuple(
            Link(*ends, COPY)
            for node, cards in made.nodes.items()
            for card in cards
            for ends in ((node, card), (card, node))
        ),
        tuple(made.domains.values()),
        tuple(relations),
    )
    return graph, Use(len(parts), tuple(made.placements), tuple(made.leases), tuple(made.transfers))


@dataclass
class _Made:
    """A graph and its use as they grow."""

    nodes: dict[str, dict[str, None]] = field(default_factory=dict)
    domains: dict[str, Domain] = field(default_factory=dict)
    placements: dict[Placement, None] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)


def _device_roles(run: RunSpec, part: Part) -> Iterator[tuple[Role, DeviceSpec]]:
    """Yields device roles with their profiles; while no card is known, of roles that are alike the first."""
    plan, devices = part.planned.plan, part.planned.devices
    if part.cards is None:
        firsts = [each.roles.start for each in role_classes(plan, run.made_for, run.video_memory)]
    else:
        firsts = list(range(len(plan.roles)))
    for index in firsts:
        role = plan.roles[index]
        if (device := devices[role.name]) is not None:
            yield role, device


def _holds(device: DeviceSpec, card: FoundCard) -> Amount:
    if card.driver is None:
        return Absent(f"node {card.node} does not say which driver it has")
    return supply(device, card.driver)


def _add(  # noqa: PLR0913, PLR0917 - one role in one part, with all that it is about
    made: _Made, run: RunSpec, planned: Planned, role: Role, card: FoundCard, holds: Amount, step: int
) -> None:
    made.nodes.setdefault(card.node, {})[card.endpoint] = None
    made.placements |= dict.fromkeys(Placement(role.name, each) for each in (card.node, card.endpoint))
    memory = Domain(f"video memory of {card.endpoint}", (card.endpoint,), holds)
    memory = made.domains.setdefault(memory.name, memory)
    quota = run.video_memory[role.index]
    own = memory.name
    if quota is not None:
        own = f"video_memory of {role.name}"
        reference = str(run.where("video_memory"))
        made.domains[own] = Domain(own, (card.endpoint,), Established(quota, reference))
        if not isinstance(memory.capacity, Absent):  # else the quota is all that is said
            made.leases.append(Lease(role.name, memory.name, f"{role.name}: quota", quota, step, step + 1))
    for line in card_demand(planned.plan, role).lines:
        made.leases.append(Lease(role.name, own, f"{role.name}: {line.what}", line.bytes, step, step + 1))
    made.transfers += _copies(planned.plan, role, card)


def _copies(plan: Plan, role: Role, card: FoundCard) -> Iterator[Transfer]:
    """Yields every sort of copy that a role makes, up and down: host-staged, all of a buffer."""
    words, size, system = buffer_words(plan, role), plan.system.word.size, plan.system
    up = ("state", "samples", "parameters", *(() if system.local else ("total",)))
    down = ("state", "sums", *(("total",) if system.forward else ()))
    for names, source, target in ((up, card.node, card.endpoint), (down, card.endpoint, card.node)):
        for name in names:
            if words[name]:
                yield Transfer(role.name, source, target, words[name] * size)


def _open(graph: Graph) -> Graph:
    """The graph as while planning: what is not known is as much as there could be."""
    most = Established((1 << 64) - 1, "not known yet")
    return Graph(
        graph.endpoints,
        graph.links,
        tuple(
            Domain(each.name, each.endpoints, most if isinstance(each.capacity, Absent) else each.capacity)
            for each in graph.domains
        ),
        graph.relations,
    )


def _refusal(run: RunSpec, fault: Fault) -> Refusal:
    role = fault.roles[-1] if fault.roles else ""
    is_own = fault.domain == f"video_memory of {role}"
    where = run.where("video_memory" if is_own else "pairings")
    key = f"video_memory.{role}" if role else ""
    return Refusal(fault.label, fault.message, where, key, hint=_HINTS.get(fault.label, ""))
