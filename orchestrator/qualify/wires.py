"""Tunnels for running launches: opened before the roles start, closed when they have ended.

A tunnel is carried by this controller and dies with it; that is told apart from a peer's death, since a role
sees no difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from orchestrator.qualify.crew import Crew
from orchestrator.qualify.endpoints import Way
from orchestrator.remote.base import Remote, Tunnel


@dataclass
class Wires:
    """The tunnels that are open now: launch -> way -> tunnel."""

    open: dict[str, dict[Way, Tunnel]] = field(default_factory=dict)

    def lay(
        self, launch: str, crew: Crew, nodes: Mapping[str, Remote], ways: Mapping[Way, tuple[str, int]]
    ) -> dict[Way, int]:
        """Opens tunnels: way -> the port on its own node.

        Args:
            launch: whose they are.
            crew: who works on the nodes.
            nodes: by name.
            ways: each with the node and the port that it leads to.

        Raises:
            RemoteError: a node forwards nothing (`tunnel-refused`), or is out of reach.
            StopLaneError: the lane is to end now.
        """
        tunnels = crew.each(
            [(near, partial(nodes[near].tunnel, nodes[far], port)) for (near, _), (far, port) in ways.items()]
        )
        opened = dict(zip(ways, tunnels, strict=True))
        self.open.setdefault(launch, {}).update(opened)
        return {way: tunnel.port for way, tunnel in opened.items()}

    def lost(self, launch: str, deadline_s: float) -> dict[Way, str]:
        """Way -> why its tunnel may be to blame: it carries nothing any more, or did not for a while.

        Args:
            launch: whose tunnels.
            deadline_s: the shortest one of its roles; a stall that is longer may have let it pass.
        """
        found = {}
        for way, tunnel in self.open.get(launch, {}).items():
            if not tunnel.is_alive():
                found[way] = tunnel.died or "it is gone"
            elif (stall_s := tunnel.stall_s) > deadline_s:
                found[way] = f"it stalled for {stall_s:.1f} s, and a role waits for {deadline_s:g} s at most"
        return found

    def take_up(self, launch: str) -> None:
        """Takes the tunnels of one launch down."""
        for tunnel in self.open.pop(launch, {}).values():
            tunnel.close()

    def take_up_all(self) -> None:
        """Takes all tunnels down."""
        for launch in tuple(self.open):
            self.take_up(launch)
