"""All nodes of a rental at once: who is reached, who is not, and what is left of it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from lab.node import SshNode, free_port, sshd
from lab.pods import write_pods
from lab.space import until
from unreachable import Journal

from orchestrator.errors import Label
from orchestrator.remote import ssh
from orchestrator.remote.base import NodeLostError, RemoteError, UnreachableError
from orchestrator.remote.open import NodesError, open_nodes
from orchestrator.spec.pods import PodsSpec
from orchestrator.spec.read import read_pods

OTHER_KEY = "SHA256:" + "A" * 43


def rental(folder: Path, nodes: Mapping[str, SshNode | Mapping[str, Any]]) -> PodsSpec:
    return read_pods(write_pods(folder / "pods.yaml", nodes, transport="ssh-tunnel"))


def several(node: SshNode, count: int) -> dict[str, dict[str, Any]]:
    return {f"n{number}": node.pods_entry(remote_root=f".orch{number}") for number in range(count)}


def test_every_node_is_reached_and_what_is_done_there_is_journalled(tmp_path: Path) -> None:
    journal = Journal()
    with sshd(tmp_path / "node") as node:
        pods = rental(tmp_path, several(node, 3))
        nodes = open_nodes(pods, journal=journal, wait=time.sleep, grace_s=30)
        assert list(nodes) == ["n0", "n1", "n2"]
        assert sorted(data["node"] for _, data in journal.events) == list(nodes)
        assert journal.kinds == ["remote.connected"] * 3
        assert {data["host_key"] for _, data in journal.events} == {node.host_key}
        journal.events.clear()
        assert nodes["n1"].run(["echo", "there"], deadline_s=30).stdout == b"there\n"
        for one in nodes.values():
            one.close()
        assert journal.kinds == ["remote.run", *["remote.closed"] * 3]
        assert journal.data("remote.run")["node"] == "n1"


def test_what_is_wrong_with_each_is_said_together(tmp_path: Path) -> None:
    with sshd(tmp_path / "node") as node:
        entries = {
            "closed": node.pods_entry(port=free_port("127.0.0.1")),
            "good": node.pods_entry(),
            "changed": node.pods_entry(host_key=OTHER_KEY, remote_root=".other"),
            "stranger": node.pods_entry(host="nobody@127.0.0.1", remote_root=".stranger"),
        }
        with pytest.raises(NodesError) as refused:
            open_nodes(rental(tmp_path, entries), journal=Journal(), wait=time.sleep, grace_s=30)
        labels = [error.label for error in refused.value.rows.values()]
        assert list(refused.value.rows) == ["closed", "changed", "stranger"]
        assert labels == [Label.UNREACHABLE, Label.HOST_KEY_CHANGED, Label.AUTH_REFUSED]
        assert [line.split(": ")[:2] for line in str(refused.value).splitlines()] == [
            ["unreachable", "closed"],
            ["host-key-changed", "changed"],
            ["auth-refused", "stranger"],
        ]
        assert refused.value.exit_code == 1
        until(lambda: node.processes() == {}, "the good one's shell has ended")


def test_nodes_that_nobody_reaches_decide_nothing(tmp_path: Path) -> None:
    with sshd(tmp_path / "node", start=False) as node:
        pods = rental(tmp_path, several(node, 2))
        with pytest.raises(NodesError) as refused:
            open_nodes(pods, journal=Journal(), wait=time.sleep, grace_s=30)
        assert refused.value.exit_code == 4


def test_what_is_wrong_with_one_is_said_as_it_is(tmp_path: Path) -> None:
    with sshd(tmp_path / "node") as node:
        entries = {
            "good": node.pods_entry(),
            "changed": node.pods_entry(host_key=OTHER_KEY, remote_root=".other"),
        }
        with pytest.raises(RemoteError) as refused:
            open_nodes(rental(tmp_path, entries), journal=Journal(), wait=time.sleep, grace_s=30)
        assert refused.value.label is Label.HOST_KEY_CHANGED


def test_48_nodes_get_past_a_stock_sshd(tmp_path: Path) -> None:
    with sshd(tmp_path / "node", config=("MaxStartups 10:30:100",)) as node:
        pods = rental(tmp_path, several(node, 48))
        nodes = open_nodes(pods, journal=Journal(), wait=time.sleep, grace_s=60)
        assert [one.run(["echo", name], deadline_s=60).stdout.decode() for name, one in nodes.items()] == [
            f"{name}\n" for name in nodes
        ]
        for one in nodes.values():
            one.close()


class StopError(Exception):
    """A limit has passed."""


def test_what_the_wait_raises_ends_it_soon(tmp_path: Path) -> None:
    """A node that takes a connection and says nothing holds nobody up."""
    with sshd(tmp_path / "node") as node, socket.create_server(("127.0.0.1", 0)) as silent:
        entries = {"good": node.pods_entry(), "silent": node.pods_entry(port=silent.getsockname()[1])}
        pods = rental(tmp_path, entries)
        journal = Journal()

        def wait(_: float) -> None:
            if journal.events:
                raise StopError

        begun = time.monotonic()
        with pytest.raises(StopError):
            open_nodes(pods, journal=journal, wait=wait, grace_s=60)
        assert time.monotonic() - begun < ssh.CONNECT_S / 2
        until(lambda: node.processes() == {}, "the good one's shell has ended")
        silent.accept()[0].close()
    until(lambda: "open-silent" not in {one.name for one in threading.enumerate()}, "its thread has ended")


def test_an_sshd_that_comes_back_in_time_is_no_loss(tmp_path: Path) -> None:
    journal = Journal()
    with sshd(tmp_path / "node") as node:
        (remote,) = open_nodes(
            rental(tmp_path, {"a": node}), journal=journal, wait=time.sleep, grace_s=60
        ).values()
        node.kill_sshd()
        back = threading.Timer(1.5, node.start_sshd)
        back.start()
        assert remote.run(["echo", "there"], deadline_s=30).stdout == b"there\n"
        back.join()
        remote.close()
    kinds = [kind for kind in journal.kinds if kind != "remote.connected"]
    assert kinds == ["remote.unreachable", "remote.reachable", "remote.run", "remote.closed"]
    assert journal.kinds.count("remote.connected") == 2


def test_an_sshd_that_does_not_come_back_is_a_lost_node(tmp_path: Path) -> None:
    journal = Journal()
    with sshd(tmp_path / "node") as node:
        (remote,) = open_nodes(
            rental(tmp_path, {"a": node}), journal=journal, wait=time.sleep, grace_s=1.5
        ).values()
        node.kill_sshd()
        with pytest.raises(NodeLostError, match="node-lost: a: no answer for") as lost:
            remote.facts()
        assert "got `no connection to 127.0.0.1" in str(lost.value)
        assert "provider" not in str(lost.value)  # the way out is the lane's
        node.start_sshd()
        assert remote.facts().cpus
        remote.close()
    assert [kind for kind in journal.kinds if kind != "remote.connected"] == [
        "remote.unreachable",
        "remote.lost",
        "remote.reachable",
        "remote.closed",
    ]


def test_tunnels_go_through_all_that_is_around_a_node(tmp_path: Path) -> None:
    journal = Journal()
    with sshd(tmp_path / "a") as a, sshd(tmp_path / "b") as b:
        nodes = open_nodes(rental(tmp_path, {"a": a, "b": b}), journal=journal, wait=time.sleep, grace_s=30)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            tunnel = nodes["a"].tunnel(nodes["b"], port)
            with socket.create_connection(("127.0.0.1", tunnel.port), timeout=60) as peer:
                peer.sendall(b"hello")
                accepted, _ = listener.accept()
                with accepted:
                    assert accepted.recv(100) == b"hello"
        assert journal.data("remote.tunnel").items() >= {"node": "a", "to": "b", "to_port": port}.items()
        for one in nodes.values():
            one.close()
        assert not tunnel.is_alive()
        with pytest.raises(RemoteError, match="closed") as closed:
            nodes["a"].facts()
        assert not isinstance(closed.value, UnreachableError)
