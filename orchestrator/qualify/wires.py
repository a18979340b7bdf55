"""Tunnels for running launches: opened before the roles start, closed when they have ended.

A tunnel is carried by this controller and dies with it; that is told apart from a peer's death, since a role
sees no difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from orchestrator.qualify.crew import Crew
from orchestrator.remote.base import Remote, Tunnel


@dataclass
class Wires:
    """The tunnels that are open now: launch -> node -> tunnel."""

    open: dict[str, dict[str, Tunnel]] = field(default_factory=dict)

    def lay(
        self, launch: str, crew: Crew, nodes: Mapping[str, Remote], ends: Sequence[str], to: tuple[str, int]
    ) -> dict[str, int]:
        """Opens a tunnel from every one of these nodes to a port of another; node -> its own port.

        Raises:
            RemoteError: a node forwards nothing (`tunnel-refused`), or is out of reach.
            StopLaneError: the lane is to end now.
        """
        root, port = to
        tunnels = crew.each([(end, partial(nodes[end].tunnel, nodes[root], port)) for end in ends])
        self.open.setdefault(launch, {}).update(zip(ends, tunnels, strict=True))
        return {end: tunnel.port for end, tunnel in zip(ends, tunnels, strict=True)}

    def lost(self, launch: str, deadline_s: float) -> dict[str, str]:
        """Node -> why its tunnel may be to blame: it carries nothing any more, or did not for a while.

        Args:
            launch: whose tunnels.
            deadline_s: the shortest one of its roles; a stall that is longer may have let it pass.
        """
        found = {}
        for node, tunnel in self.open.get(launch, {}).items():
            if not tunnel.is_alive():
                found[node] = tunnel.died or "it is gone"
            elif (stall_s := tunnel.stall_s) > deadline_s:
                found[node] = f"it stalled for {stall_s:.1f} s, and a role waits for {deadline_s:g} s at most"
        return found

    def take_up(self, launch: str) -> None:
        """Takes the tunnels of one launch down."""
        for tunnel in self.open.pop(launch, {}).values():
            tunnel.close()

    def take_up_all(self) -> None:
        """Takes all tunnels down."""
        for launch in tuple(self.open):
            self.take_up(launch)
