"""Which role goes to which node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import Label
from orchestrator.qualify.pins import Pinned, changed
from orchestrator.qualify.placement import described, place, refusals
from orchestrator.spec.pods import PodsSpec
from orchestrator.spec.read import read_pods

CARD = "GPU-11111111-1111-1111-1111-111111111111"
KEY = "SHA256:" + "A" * 43
ROLES = ("coordinator", "worker1", "worker2", "worker3")


def rental(
    tmp_path: Path, nodes: Mapping[str, Any] | str = "ab", transport: str = "ssh-tunnel", **more: Any
) -> PodsSpec:
    given = {name: {} for name in nodes} if isinstance(nodes, str) else nodes
    entries = {
        name: {"host": f"root@{name}.example", "host_key": KEY, "owned": True, "address": "10.0.0.1", **node}
        for name, node in given.items()
    }
    path = tmp_path / "pods.yaml"
    path.write_text(json.dumps({"orch": "pods/v1", "transport": transport, "nodes": entries, **more}))
    return read_pods(path)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("a", "aaaa"),
        ("ab", "aabb"),
        ("abc", "aabc"),
        ("abcd", "abcd"),
        ("abcdef", "abcd"),
    ],
)
def test_neighbours_go_together_in_the_files_order(tmp_path: Path, nodes: str, expected: str) -> None:
    placed = place(ROLES, rental(tmp_path, nodes))
    assert tuple(placed) == ROLES
    assert "".join(where.node for where in placed.values()) == expected
    assert {where.card for where in placed.values()} == {None}


def test_the_files_own_placement_counts_in_the_runs_order(tmp_path: Path) -> None:
    nodes = {"a": {"cards": {CARD: 3}}, "b": {}}
    pods = rental(tmp_path, nodes, roles={"worker[1-3]": "b", "coordinator": f"a/{CARD}"})
    placed = place(ROLES, pods)
    assert tuple(placed) == ROLES
    assert [where.node for where in placed.values()] == ["a", "b", "b", "b"]
    assert placed["coordinator"].card == CARD
    assert not tuple(refusals(ROLES, pods))


def test_a_role_that_goes_nowhere_is_refused_with_the_name_that_was_meant(tmp_path: Path) -> None:
    pods = rental(tmp_path, roles={"coordinator": "a", "worker[1-2]": "b", "worker4": "b"})
    (refusal,) = refusals(ROLES, pods)
    assert (refusal.label, refusal.key) == (Label.FIELD_MISSING, "roles.worker3")
    assert "worker" in refusal.hint


def test_the_placement_is_said_by_node_with_those_that_get_nothing(tmp_path: Path) -> None:
    pods = rental(tmp_path, "abc")
    placed = place(ROLES[:2], pods)
    said = described({role: where.node for role, where in placed.items()}, tuple(pods.nodes))
    assert said == "coordinator on a; worker1 on b; nothing on c"


def test_pins_survive_their_file(tmp_path: Path) -> None:
    pods = rental(tmp_path, {"a": {"cards": {CARD: 3}, "pod": "x1"}, "b": {}}, transport="direct")
    pinned = Pinned.of(pods, place(ROLES, pods))
    again = Pinned.from_json(json.loads(json.dumps(pinned.as_json())))
    assert again == pinned
    assert again.wiring.addresses == {"a": "10.0.0.1", "b": "10.0.0.1"}
    assert "example" not in json.dumps(pinned.as_json())


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"host_key": "SHA256:" + "B" * 43}, "host_key of node a"),
        ({"pod": "x2"}, "pod of node a"),
        ({"cards": {CARD: 1}}, "cards of node a"),
        ({"emulators": {"aarch64-linux": "qemu"}}, "emulators of node a"),
    ],
)
def test_another_pod_under_the_same_name_is_a_change(
    tmp_path: Path, other: dict[str, Any], said: str
) -> None:
    before, after = rental(tmp_path), rental(tmp_path, {"a": other, "b": {}})
    pins = [Pinned.of(pods, place(ROLES, pods)) for pods in (before, after)]
    (refusal,) = changed(pins[0], pins[1], "pods.yaml")
    assert refusal.label is Label.POD_CHANGED
    assert said in refusal.message
    assert "--from" in refusal.hint


def test_how_a_node_is_reached_and_what_it_costs_are_no_pins(tmp_path: Path) -> None:
    before = rental(tmp_path)
    price = {"price": "1 USD/h", "owned": False, "host": "ada@elsewhere.example", "port": 2222, "key": "k"}
    started = {"started": "2026-11-29T09:00:00Z", "cap": "5.00 USD"}
    after = rental(tmp_path, {"a": price, "b": {}}, rental=started)
    pins = [Pinned.of(pods, place(ROLES, pods)) for pods in (before, after)]
    assert not changed(pins[0], pins[1], "pods.yaml")


def test_roles_that_would_go_elsewhere_are_a_change(tmp_path: Path) -> None:
    before, after = rental(tmp_path), rental(tmp_path, roles={"coordinator": "b", "worker[1-3]": "b"})
    pins = [Pinned.of(pods, place(ROLES, pods)) for pods in (before, after)]
    assert [refusal.message.split(" (")[0] for refusal in changed(pins[0], pins[1], "pods.yaml")] == [
        "not what this run is bound to: place of coordinator",
        "not what this run is bound to: place of worker1",
    ]
