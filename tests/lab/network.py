"""Nodes in networks of their own, on one bridge, and the wire between them and the tests.

    tests' network -- TAP == relay (delay, loss, black hole) == TAP -- bridge -- veth -- each node

The bridge is in a network of its own too: nothing is added to the tests' network but one TAP device, which
is gone with the relay's process.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lab.node import SshNode, sshd
from lab.space import BOUND, Space, need_spaces, space

_counted = itertools.count()
RELAY = Path(__file__).parent / "relay.py"
FIRST_NODE = 11
NOBODY = "02:00:00:00:00:77"


@dataclass(frozen=True)
class Network:
    """Nodes that reach each other over a bridge; the tests' network reaches them over the wire.

    Attributes:
        nodes: each listens on its IPv4 address, or its IPv6 one where that was asked for.
        addresses: the nodes' IPv4 addresses.
        addresses6: their IPv6 addresses.
    """

    nodes: tuple[SshNode, ...]
    addresses: tuple[str, ...]
    addresses6: tuple[str, ...]
    hub: Space
    relay: subprocess.Popen[str] = field(repr=False)

    def cut(self, node: SshNode) -> None:
        """Takes a node's link down, at the bridge: nobody reaches it, and nobody is told."""
        self._link(node, "down")

    def heal(self, node: SshNode) -> None:
        """Puts the link up again."""
        self._link(node, "up")

    def wire(
        self,
        *,
        delay_ms: float = 0,
        loss: float = 0,
        swallow: Sequence[str] = (),
        only: Sequence[SshNode] = (),
    ) -> None:
        """What the wire does from now on, to frames that name one of `only`, or to all.

        Args:
            delay_ms: how long each frame takes, one way.
            loss: the part of all frames that never arrives, 0 to 1.
            swallow: `out` (towards the nodes), `in`: nothing arrives that way any more, and nobody is told.
            only: the nodes whose frames it is about; all if empty.
        """
        named = [one for node in only for one in self._both(node)]
        asked = {"delay_ms": delay_ms, "loss": loss, "swallow": list(swallow), "only": named}
        assert self.relay.stdin is not None
        assert self.relay.stdout is not None
        self.relay.stdin.write(json.dumps(asked) + "\n")
        self.relay.stdin.flush()
        assert self.relay.stdout.readline() == "ok\n"

    def part(self, one: SshNode, other: SshNode) -> None:
        """Has nothing arrive between two nodes any more; the wire reaches both."""
        for node, peer in ((one, other), (other, one)):
            address = self.addresses[self.nodes.index(peer)]
            _ip(node.space, f"neigh replace {address} lladdr {NOBODY} dev eth0 nud permanent")

    def join(self, one: SshNode, other: SshNode) -> None:
        """Lets them reach each other again."""
        for node, peer in ((one, other), (other, one)):
            _ip(node.space, f"neigh del {self.addresses[self.nodes.index(peer)]} dev eth0")

    def _both(self, node: SshNode) -> tuple[str, str]:
        index = self.nodes.index(node)
        return self.addresses[index], self.addresses6[index]

    def _link(self, node: SshNode, state: str) -> None:
        _ip(self.hub, f"link set node{self.nodes.index(node)} {state}")


@contextmanager
def network(folder: Path, count: int, *, ipv6: bool = False, **wants: Any) -> Iterator[Network]:
    """Makes `count` nodes (see `lab.node.sshd` for `wants`) and what joins them; all is gone afterwards.

    Args:
        folder: an empty or absent folder of the test's, for these nodes alone.
        count: how many.
        ipv6: the nodes' sshds listen on their IPv6 addresses.
    """
    need_spaces()
    if not Path("/dev/net/tun").exists():
        pytest.skip("there is no /dev/net/tun")
    with ExitStack() as stack:
        hub = stack.enter_context(space(network=True))
        subnet = _free_subnet()
        relay = stack.enter_context(_relay(hub, f"orl{os.getpid()}.{next(_counted)}"[-15:], subnet))
        near = [f"198.18.{subnet}.{FIRST_NODE + index}" for index in range(count)]
        near6 = [f"fd6f:7263:68:{subnet:x}::{FIRST_NODE + index}" for index in range(count)]
        nodes = []
        for index in range(count):
            listen = near6[index] if ipv6 else near[index]
            node = stack.enter_context(
                sshd(folder / f"node{index}", network=True, start=False, listen=listen, **wants)
            )
            _plug(hub, node, index, (f"{near[index]}/24", f"{near6[index]}/64"))
            node.start_sshd()
            nodes.append(node)
        yield Network(tuple(nodes), tuple(near), tuple(near6), hub, relay)


def _free_subnet() -> int:
    """The third number of a network for benchmarks (RFC 2544) that no interface here has."""
    taken = subprocess.run(["ip", "-4", "addr"], check=True, capture_output=True, text=True).stdout
    for offset in range(256):
        subnet = (os.getpid() * 7 + offset) % 256
        if f"198.18.{subnet}." not in taken:
            return subnet
    pytest.skip("every network in 198.18.0.0/16 is taken")


@contextmanager
def _relay(hub: Space, name: str, subnet: int) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*BOUND, sys.executable, str(RELAY), name, str(hub.init), "uplink"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ok\n"
        _ip(hub, "link set lo up", "link add bridge type bridge", "link set bridge up")
        _ip(hub, "link set uplink master bridge up")
        _ip(None, f"link set {name} up", f"addr add 198.18.{subnet}.1/24 dev {name}")
        _ip(None, f"addr add fd6f:7263:68:{subnet:x}::1/64 dev {name} nodad")
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def _plug(hub: Space, node: SshNode, index: int, addresses: tuple[str, str]) -> None:
    assert node.space is not None
    _ip(hub, f"link add node{index} type veth peer name eth0 netns {node.space.init}")
    _ip(hub, f"link set node{index} master bridge up")
    _ip(node.space, "link set lo up", "link set eth0 up", f"addr add {addresses[0]} dev eth0")
    _ip(node.space, f"addr add {addresses[1]} dev eth0 nodad")


def _ip(place: Space | None, *lines: str) -> None:
    """Tells `ip`, in the network of a space (pids are the tests' own), or in the tests'."""
    enter = ("nsenter", "-t", str(place.init), "-n", "--") if place else ()
    done = subprocess.run(
        [*enter, "ip", "-batch", "-"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (lines, done.stderr)
