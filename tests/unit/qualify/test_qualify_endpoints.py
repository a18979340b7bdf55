"""What each role is bound to follows from transport, placement and tree alone."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.plan.topology import Topology, star
from orchestrator.qualify.endpoints import Endpoint, Ends, Ports, Wiring

FOUR = {"coordinator": "a", "worker1": "a", "worker2": "b", "worker3": "c"}
SEVEN = {"r0": "a", "r1": "a", "r2": "b", "r3": "b", "r4": "c", "r5": "b", "r6": "c"}
STAR, TREE = star(4), Topology("hierarchy", 7, 2)
NOBODY = Endpoint("0.0.0.0", 0)


def local(port: int) -> Endpoint:
    return Endpoint("127.0.0.1", port)


def test_on_one_node_everyone_dials_the_roots_own_port() -> None:
    wiring = Wiring("loopback", dict.fromkeys(FOUR, "a"), topology=STAR)
    assert (wiring.ways, wiring.forwards, wiring.listeners) == ({}, {}, ("coordinator",))
    assert wiring.ends(Ports({"coordinator": 20001})) == {
        "coordinator": Ends(local(20001), NOBODY),
        **dict.fromkeys(("worker1", "worker2", "worker3"), Ends(NOBODY, local(20001))),
    }


def test_direct_roles_dial_the_root_nodes_address_and_the_root_listens_there() -> None:
    wiring = Wiring("direct", FOUR, {"a": "fd00::1", "b": "fd00::2", "c": "fd00::3"}, STAR)
    assert (wiring.ways, wiring.forwards) == ({}, {})
    ends, root = wiring.ends(Ports({"coordinator": 20001})), Endpoint("fd00::1", 20001)
    assert (ends["coordinator"], ends["worker3"]) == (Ends(root, NOBODY), Ends(NOBODY, root))


def test_tunnelled_roles_dial_the_end_on_their_own_node() -> None:
    wiring = Wiring("ssh-tunnel", FOUR, topology=STAR)
    assert wiring.forwards == {"b": ("a",), "c": ("a",)}
    ports = Ports({"coordinator": 20001}, {("b", "coordinator"): 40001, ("c", "coordinator"): 40002})
    assert {role: ends.dials for role, ends in wiring.ends(ports).items()} == {
        "coordinator": NOBODY,
        "worker1": local(20001),
        "worker2": local(40001),
        "worker3": local(40002),
    }


def test_in_a_tree_every_role_with_children_listens_on_its_own_node() -> None:
    addresses = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}
    wiring = Wiring("direct", SEVEN, addresses, TREE)
    assert wiring.listeners == ("r0", "r1", "r2")
    ends = wiring.ends(Ports({"r0": 20000, "r1": 20001, "r2": 20002}))
    assert ends["r1"] == Ends(Endpoint("10.0.0.1", 20001), Endpoint("10.0.0.1", 20000))
    assert ends["r2"] == Ends(Endpoint("10.0.0.2", 20002), Endpoint("10.0.0.1", 20000))
    assert ends["r3"] == ends["r4"] == Ends(NOBODY, Endpoint("10.0.0.1", 20001))
    assert ends["r5"] == ends["r6"] == Ends(NOBODY, Endpoint("10.0.0.2", 20002))


def test_in_a_tree_there_is_one_tunnel_from_a_childs_node_to_each_parent_elsewhere() -> None:
    wiring = Wiring("ssh-tunnel", {**SEVEN, "r6": "c"}, topology=TREE)
    assert wiring.ways == {
        "r2": ("b", "r0"),
        "r3": ("b", "r1"),
        "r4": ("c", "r1"),
        "r6": ("c", "r2"),
    }
    assert wiring.forwards == {"b": ("a",), "c": ("a", "b")}
    tunnels = {("b", "r0"): 1, ("b", "r1"): 2, ("c", "r1"): 3, ("c", "r2"): 4}
    ends = wiring.ends(Ports({"r0": 20000, "r1": 20001, "r2": 20002}, tunnels))
    assert {role: each.dials.port for role, each in ends.items()} == {
        "r0": 0,
        "r1": 20000,
        "r2": 1,
        "r3": 2,
        "r4": 3,
        "r5": 20002,
        "r6": 4,
    }
    assert all(each.dials.address == "127.0.0.1" for role, each in ends.items() if role != "r0")


def test_children_of_one_parent_on_one_node_share_a_tunnel() -> None:
    wiring = Wiring("ssh-tunnel", {"r0": "a", "r1": "b", "r2": "b"}, topology=star(3))
    assert wiring.ways == {"r1": ("b", "r0"), "r2": ("b", "r0")}


def test_a_role_whose_parent_is_not_started_dials_nobodys_port() -> None:
    assert Wiring("ssh-tunnel", FOUR, topology=STAR).ends(Ports())["worker2"].dials == local(0)


def test_roles_that_find_each_other_by_themselves_are_bound_to_nothing() -> None:
    wiring = Wiring("ssh-tunnel", FOUR)
    assert (wiring.listeners, wiring.ways) == ((), {})
    assert wiring.ends(Ports()) == dict.fromkeys(FOUR, Ends(NOBODY, NOBODY))


def test_advice_names_the_first_way_that_nobody_came_by() -> None:
    addresses = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}
    wiring = Wiring("direct", SEVEN, addresses, TREE)
    ends = wiring.ends(Ports({"r0": 20000, "r1": 20001, "r2": 20002}))
    said = wiring.advice(("r2", "r6"), ends, range(20000, 20010))
    assert said.startswith("connect-deadline: r2, r6: the nodes do not reach each other")
    assert "got no way to 10.0.0.1 port 20000, expected one to any of 20000-20009" in said
    assert "10.0.0.2 port 20002" in wiring.advice(("r6",), ends, range(20000, 20010))
    # neighbours on one node need no way between nodes
    assert wiring.advice(("r5",), ends, range(20000, 20010)) == ""
    assert replace(wiring, transport="ssh-tunnel").advice(("r2",), ends, range(20000, 20010)) == ""
