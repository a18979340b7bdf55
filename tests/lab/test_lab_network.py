"""The network bench: nodes reach each other, and the wire does what it is told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.network import Network, network
from lab.space import until
from lab.test_lab_bench import ssh

QUICK = ("-o", "ConnectTimeout=2")


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Network]:
    with network(tmp_path, 2) as made:
        yield made


def test_nodes_are_reached_and_reach_each_other(net: Network):
    one, other = net.nodes
    assert ssh(one, "echo one; ip -brief address show eth0").stdout.startswith("one\neth0")
    assert ssh(one, f"exec 3<>/dev/tcp/{net.addresses[1]}/22; head -c 7 <&3").stdout == "SSH-2.0"
    assert ssh(other, "echo other").stdout == "other\n"


def test_a_link_is_cut_and_healed(net: Network):
    one, other = net.nodes
    net.cut(one)
    assert ssh(one, "true", *QUICK).returncode == 255
    assert ssh(other, "true").returncode == 0
    net.heal(one)
    until(lambda: ssh(one, "true", *QUICK).returncode == 0, "the node is back")


def test_the_wire_delays_and_swallows(net: Network):
    one, other = net.nodes
    net.wire(delay_ms=100, only=[one])
    began = time.monotonic()
    assert ssh(one, "true").returncode == 0
    assert time.monotonic() - began > 0.6  # a handshake is several round trips of 0.2 s
    net.wire(swallow=["in"], only=[one])
    assert ssh(one, "true", *QUICK).returncode == 255
    assert ssh(other, "true").returncode == 0
    net.wire(loss=0.1)
    assert ssh(one, "head -c 300000 /dev/zero | tr '\\0' x").stdout == "x" * 300000


def test_ipv6(tmp_path: Path):
    with network(tmp_path, 1, ipv6=True) as net:
        assert ssh(net.nodes[0], "echo here").stdout == "here\n"
