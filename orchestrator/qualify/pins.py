"""`pods.json`: what a run pinned of its rental before it reached for any node, and where each role goes.

In it is what the evidence is about: host keys, cards, pods, addresses that roles dial. Not in it is how the
controller gets there: no host, no port, no user, no key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import Label, Refusal, Where
from orchestrator.qualify.cards import BoundCard
from orchestrator.qualify.endpoints import DIRECT, Wiring
from orchestrator.qualify.placement import minor_of, uuid_of
from orchestrator.spec.pods import Placement, PodsSpec

FILE = "pods.json"
SCHEMA = "orch-pods/v1"


@dataclass(frozen=True)
class Pinned:
    """One rental as a run is bound to it.

    Attributes:
        transport: `loopback`, `ssh-tunnel` or `direct`.
        nodes: node -> what is pinned of it: `pod`, `host_key`, `cards`, `emulators`, `remote_root`, `address`
            (where roles dial it, for `direct`); and what it costs: `price`, `owned`.
        placement: role -> node and card.
        rental: `started` and `cap`, or None.
    """

    transport: str
    nodes: Mapping[str, Mapping[str, Any]]
    placement: Mapping[str, Placement]
    rental: Mapping[str, str] | None = None

    @classmethod
    def of(cls, pods: PodsSpec, placement: Mapping[str, Placement]) -> Pinned:
        """What to pin of a rental."""
        is_direct = pods.transport == DIRECT
        return cls(
            transport=pods.transport,
            nodes={
                name: {
                    "pod": node.pod,
                    "host_key": node.host_key,
                    "cards": dict(node.cards),
                    "emulators": dict(node.emulators),
                    "remote_root": node.remote_root,
                    "address": node.address if is_direct else None,
                    "price": f"{node.price}/h" if node.price else None,
                    "owned": node.owned,
                }
                for name, node in pods.nodes.items()
            },
            placement=dict(placement),
            rental={"started": pods.started, "cap": str(pods.cap)} if pods.started else None,
        )

    def as_json(self) -> dict[str, Any]:
        """As in the bundle."""
        return {
            "schema": SCHEMA,
            "transport": self.transport,
            "nodes": {name: dict(node) for name, node in self.nodes.items()},
            "roles": [
                {"role": role, "node": place.node, "card": place.card}
                for role, place in self.placement.items()
            ],
            "rental": dict(self.rental) if self.rental else None,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Pinned:
        """The inverse of `as_json`.

        Raises:
            ValueError, LookupError, TypeError: it is not of that form.
        """
        if value["schema"] != SCHEMA:
            raise ValueError(f"not a pods file of a bundle (got {value['schema']!r}, expected {SCHEMA!r})")
        placement = {each["role"]: Placement(each["node"], each["card"]) for each in value["roles"]}
        return cls(value["transport"], value["nodes"], placement, value["rental"])

    @property
    def used(self) -> tuple[str, ...]:
        """Nodes that some role goes to, in the file's order."""
        placed = {place.node for place in self.placement.values()}
        return tuple(name for name in self.nodes if name in placed)

    @property
    def cards(self) -> dict[str, BoundCard]:
        """Role -> the card that it goes to; roles that go to a node alone are left out."""
        return {
            role: BoundCard(
                place.node, minor_of(place.card, self.nodes[place.node]["cards"]), uuid_of(place.card)
            )
            for role, place in self.placement.items()
            if place.card is not None
        }

    @property
    def wiring(self) -> Wiring:
        """How these roles reach each other."""
        return Wiring(
            self.transport,
            {role: place.node for role, place in self.placement.items()},
            {name: str(node["address"]) for name, node in self.nodes.items()},
        )

    def changes(self, now: Pinned) -> Iterator[str]:
        """What a rental as it is now has otherwise, one line each; costs are no pins."""
        if now.transport != self.transport:
            yield f"transport (got {now.transport}, expected {self.transport})"
        for name, node in self.nodes.items():
            other = now.nodes.get(name)
            if other is None:
                yield f"node {name} (got none, expected it)"
                continue
            for key in ("host_key", "pod", "cards", "address", "emulators", "remote_root"):
                if other[key] != node[key]:
                    yield f"{key} of node {name} (got {other[key]}, expected {node[key]})"
        for role, place in self.placement.items():
            if now.placement.get(role) != place:
                yield f"place of {role} (got {_said(now.placement.get(role))}, expected {_said(place)})"


def changed(pinned: Pinned, now: Pinned, where: str) -> tuple[Refusal, ...]:
    """Refusals of a rental that is not the one that a run is bound to."""
    hint = (
        "--pods with the file as it was when the run began goes on with it;"
        " `orch run LANE --pods NEW --from BUNDLE:checkpoint@N` goes on from its checkpoint on other pods"
    )
    return tuple(
        Refusal(Label.POD_CHANGED, f"not what this run is bound to: {change}", Where(where), hint=hint)
        for change in pinned.changes(now)
    )


def _said(place: Placement | None) -> str:
    return "nowhere" if place is None else f"{place.node}/{place.card}" if place.card else place.node
