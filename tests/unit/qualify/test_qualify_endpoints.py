"""Who dials whom under each transport."""

from __future__ import annotations

from orchestrator.qualify.endpoints import Endpoint, Wiring

FOUR = {"coordinator": "a", "worker1": "a", "worker2": "b", "worker3": "c"}


def test_loopback_has_one_port_for_all() -> None:
    wiring = Wiring("loopback", dict.fromkeys(FOUR, "a"))
    assert wiring.forwarded == ()
    assert wiring.endpoints({"a": 20001}) == dict.fromkeys(FOUR, Endpoint("127.0.0.1", 20001))


def test_direct_dials_the_roots_address_from_everywhere_its_own_node_too() -> None:
    wiring = Wiring("direct", FOUR, {"a": "fd00::1", "b": "fd00::2", "c": "fd00::3"})
    assert wiring.forwarded == ()
    assert wiring.endpoints({"a": 20001}) == dict.fromkeys(FOUR, Endpoint("fd00::1", 20001))


def test_a_tunnel_ends_on_every_node_but_the_roots() -> None:
    wiring = Wiring("ssh-tunnel", FOUR)
    assert (wiring.root_node, wiring.forwarded) == ("a", ("b", "c"))
    assert wiring.endpoints({"a": 20001, "b": 40001, "c": 40002}) == {
        "coordinator": Endpoint("127.0.0.1", 20001),
        "worker1": Endpoint("127.0.0.1", 20001),
        "worker2": Endpoint("127.0.0.1", 40001),
        "worker3": Endpoint("127.0.0.1", 40002),
    }


def test_a_tunnel_without_a_port_is_bound_to_none() -> None:
    endpoints = Wiring("ssh-tunnel", FOUR).endpoints({"a": 20001})
    assert endpoints["worker2"] == Endpoint("127.0.0.1", 0)
