"""Who dials whom: where the root listens, and what address and port each role is bound to.

A pure rule over transport and placement, so that a judge can tell whether a launch was wired as declared. The
port numbers are the acting side's to choose; the addresses are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.errors import Label

LOOPBACK = "127.0.0.1"
DIRECT, TUNNEL = "direct", "ssh-tunnel"


@dataclass(frozen=True)
class Endpoint:
    """An IPv4 or IPv6 literal and a port: where the root listens, or what another role dials."""

    address: str
    port: int


@dataclass(frozen=True)
class Wiring:
    """How the roles of a run reach each other.

    Attributes:
        transport: `loopback` (all on one node), `direct` or `ssh-tunnel`.
        placement: role -> node, in the roles' order; the first role is the root.
        addresses: node -> where the others reach it; needed for `direct`.
    """

    transport: str
    placement: Mapping[str, str]
    addresses: Mapping[str, str] = field(default_factory=dict)

    @property
    def root_node(self) -> str:
        """The node that the root listens on."""
        return next(iter(self.placement.values()))

    @property
    def forwarded(self) -> tuple[str, ...]:
        """Nodes whose roles reach the root through a tunnel, in the roles' order."""
        if self.transport != TUNNEL:
            return ()
        return tuple(dict.fromkeys(node for node in self.placement.values() if node != self.root_node))

    def advice(self, unmet: tuple[str, ...], port: int, ports: range) -> str:
        """What to look at where roles met nobody at a port of the root's; nothing where we carry them."""
        if not unmet or self.transport != DIRECT:
            return ""
        got = f"got no way to {self.addresses[self.root_node]} port {port}"
        expected = f"expected one to any of {ports.start}-{ports.stop - 1}"
        return (
            f"{Label.CONNECT_DEADLINE}: {', '.join(unmet)}: the nodes do not reach each other ({got},"
            f" {expected}); open such ports between them, mend `address`, or say `transport: {TUNNEL}`"
        )

    def endpoints(self, ports: Mapping[str, int]) -> dict[str, Endpoint]:
        """Role -> what is bound in.

        Args:
            ports: the root's node -> where the root listens; each forwarded node -> its tunnel's end there.
        """
        address = self.addresses[self.root_node] if self.transport == DIRECT else LOOPBACK
        own = dict.fromkeys(self.forwarded)
        return {
            role: Endpoint(address, ports.get(node if node in own else self.root_node, 0))
            for role, node in self.placement.items()
        }
