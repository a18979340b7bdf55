"""Who dials whom: where roles with children listen, and what addresses and ports each role is bound to.

A pure rule over transport, placement and tree, so that a judge can tell whether a launch was wired as
declared. The port numbers are the acting side's to choose; the addresses are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.build.binding import NOWHERE
from orchestrator.errors import Label
from orchestrator.plan.topology import Topology

LOOPBACK = "127.0.0.1"
DIRECT, TUNNEL = "direct", "ssh-tunnel"
Way = tuple[str, str]
"""A tunnel: from a node, to the role whose port it leads to."""


@dataclass(frozen=True)
class Endpoint:
    """An IPv4 or IPv6 literal and a port."""

    address: str = NOWHERE
    port: int = 0


@dataclass(frozen=True)
class Ends:
    """What a role is bound to: where it listens for its children, and what it dials."""

    listens: Endpoint = Endpoint()
    dials: Endpoint = Endpoint()


@dataclass(frozen=True)
class Ports:
    """The port numbers of one launch.

    Attributes:
        listening: role with children -> where it listens on its node.
        tunnels: way -> the near end's port on the way's node.
    """

    listening: Mapping[str, int] = field(default_factory=dict)
    tunnels: Mapping[Way, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Wiring:
    """How the roles of a run reach each other.

    Attributes:
        transport: `loopback` (all on one node), `direct` or `ssh-tunnel`.
        placement: role -> node, in the roles' order; the first role is the root.
        addresses: node -> where the others reach it; needed for `direct`.
        topology: over the roles; None where they find each other by themselves.
    """

    transport: str
    placement: Mapping[str, str]
    addresses: Mapping[str, str] = field(default_factory=dict)
    topology: Topology | None = None

    @property
    def parents(self) -> dict[str, str]:
        """Role -> the role that it dials; the root is not among them."""
        if self.topology is None:
            return {}
        roles = tuple(self.placement)
        above = ((role, self.topology.parent(index)) for index, role in enumerate(roles))
        return {role: roles[parent] for role, parent in above if parent is not None}

    @property
    def listeners(self) -> tuple[str, ...]:
        """Roles with children, in order."""
        have = set(self.parents.values())
        return tuple(role for role in self.placement if role in have)

    @property
    def is_mesh(self) -> bool:
        """Whether roles may open connections of their own: between nodes the ports may be closed."""
        return self.topology is not None and len(set(self.placement.values())) == 1

    @property
    def ways(self) -> dict[str, Way]:
        """Role -> the tunnel through which it reaches its parent; those on their parent's node need none."""
        if self.transport != TUNNEL:
            return {}
        place = self.placement
        return {
            role: (place[role], parent)
            for role, parent in self.parents.items()
            if place[role] != place[parent]
        }

    @property
    def forwards(self) -> dict[str, tuple[str, ...]]:
        """Node -> other nodes that its roles reach through tunnels, in the roles' order."""
        found: dict[str, dict[str, None]] = {}
        for node, parent in self.ways.values():
            found.setdefault(node, {})[self.placement[parent]] = None
        return {node: tuple(others) for node, others in found.items()}

    def advice(self, unmet: tuple[str, ...], ends: Mapping[str, Ends], ports: range) -> str:
        """What to look at where roles met nobody on another node; nothing where we carry them.

        Args:
            unmet: who met nobody.
            ends: role -> what it is bound to, of all that were started.
            ports: from which listening ones are chosen.
        """
        place = self.placement
        apart = (
            ends[role].dials
            for role, parent in self.parents.items()
            if role in ends and {role, parent} & set(unmet) and place[role] != place[parent]
        )
        dialled = next(apart, None)
        if dialled is None or self.transport != DIRECT:
            return ""
        got = f"got no way to {dialled.address} port {dialled.port}"
        expected = f"expected one to any of {ports.start}-{ports.stop - 1}"
        return (
            f"{Label.CONNECT_DEADLINE}: {', '.join(unmet)}: the nodes do not reach each other ({got},"
            f" {expected}); open such ports between them, mend `address`, or say `transport: {TUNNEL}`"
        )

    def ends(self, ports: Ports) -> dict[str, Ends]:
        """Role -> what is bound in."""
        parents, ways = self.parents, self.ways
        listeners = set(parents.values())
        found = {}
        for role in self.placement:
            listens = self._endpoint(role, ports) if role in listeners else Endpoint()
            dials = Endpoint()
            if role in ways:
                dials = Endpoint(LOOPBACK, ports.tunnels.get(ways[role], 0))
            elif role in parents:
                dials = self._endpoint(parents[role], ports)
            found[role] = Ends(listens, dials)
        return found

    def _endpoint(self, role: str, ports: Ports) -> Endpoint:
        """Where a role with children is reached without a tunnel."""
        address = self.addresses[self.placement[role]] if self.transport == DIRECT else LOOPBACK
        return Endpoint(address, ports.listening.get(role, 0))
