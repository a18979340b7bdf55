"""Nodes that a lane cannot run on: each is refused by exactly its own label, and left alone."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from lab.desk import Desk, assert_clean
from lab.keys import make_key
from lab.machine import HOME
from lab.network import network
from lab.node import SshNode, free_port, sshd
from lab.pods import write_pods
from ssh_lanes import refused

SAMPLES = "lanes/samples.yaml"
OTHER_KEY = "SHA256:" + "A" * 43
SMALL = f"{HOME}/disk"
IMPATIENT = "{connect: 3s, round: 5s, run: 1m, unreachable: 3s}"

# kind -> (what the node is like, its entry's own lines, label, what the way out names, exit code)
NODES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "changed host key": ({}, {"host_key": OTHER_KEY}, "host-key-changed", "orch pods pin"),
    "forced command that prints a banner": (
        {"config": ("ForceCommand echo 'This account is for tunnels.'",)},
        {},
        "shell-unusable",
        "",
    ),
    "no login": ({"shell": "/usr/sbin/nologin"}, {}, "shell-unusable", ""),
    "full disk": ({"disks": {SMALL: "size=64k"}}, {"remote_root": f"{SMALL}/orch"}, "disk-space", ""),
    "no inodes": (
        {"disks": {SMALL: "size=128m,nr_inodes=8"}},
        {"remote_root": f"{SMALL}/orch"},
        "disk-space",
        "inode",
    ),
    "noexec": (
        {"disks": {SMALL: "size=128m,noexec"}},
        {"remote_root": f"{SMALL}/orch"},
        "remote-root",
        "noexec",
    ),
    "read-only": ({"disks": {SMALL: "ro"}}, {"remote_root": f"{SMALL}/orch"}, "remote-root", ""),
    "a folder that others may replace": (
        {"disks": {SMALL: "size=128m,mode=777"}},
        {"remote_root": f"{SMALL}/orch"},
        "remote-root",
        "remote_root",
    ),
    "no setsid": ({"without": frozenset({"setsid", "busybox"})}, {}, "tool-missing", "setsid"),
}


@pytest.mark.parametrize("kind", NODES)
def test_it_is_refused_by_its_label(desk: Desk, tmp_path: Path, kind: str):
    wants, entry, label, way_out = NODES[kind]
    with sshd(tmp_path / "node", **wants) as node:
        pods = write_pods(desk.folder / "pods.yaml", {"a": node.pods_entry(**entry)})
        said = refused(desk, SAMPLES, pods, label)
        assert way_out in said
        assert_clean(node, kept=("disk/orch",))


def keyed(desk: Desk, node: SshNode, key: Path) -> Path:
    return write_pods(desk.folder / "pods.yaml", {"a": node.pods_entry(key=str(key))})


def test_a_key_that_is_refused(desk: Desk, tmp_path: Path):
    with sshd(tmp_path / "node") as node:
        said = refused(desk, SAMPLES, keyed(desk, node, make_key(tmp_path / "other")), "auth-refused")
        assert "key" in said
        tries = node.log().count("Failed publickey")
        assert tries <= 2, "no loop"


def test_a_key_that_wants_a_passphrase(desk: Desk, tmp_path: Path):
    with sshd(tmp_path / "node") as node:
        key = make_key(tmp_path / "locked", passphrase="open sesame")
        assert "passphrase" in refused(desk, SAMPLES, keyed(desk, node, key), "auth-refused")


def test_a_key_that_is_not_there(desk: Desk, tmp_path: Path):
    with sshd(tmp_path / "node") as node:
        refused(desk, SAMPLES, keyed(desk, node, tmp_path / "nowhere"), "auth-refused")


def test_nobody_listens(desk: Desk, tmp_path: Path):
    with sshd(tmp_path / "node", start=False) as node:
        refused(desk, SAMPLES, write_pods(desk.folder / "pods.yaml", {"a": node}), "unreachable", code=4)


def test_something_else_listens(desk: Desk, tmp_path: Path):
    with sshd(tmp_path / "node", start=False, port=free_port("127.0.0.1")) as node:
        pods = write_pods(desk.folder / "pods.yaml", {"a": node})
        with socket.create_server(("127.0.0.1", node.port)):  # takes connections and never says a word
            refused(desk, desk.lane("samples", deadlines=IMPATIENT), pods, "unreachable", code=4)


@pytest.mark.parametrize("line", ["AllowTcpForwarding no", "PermitOpen none", "DisableForwarding yes"])
def test_forwarding_is_not_allowed(desk: Desk, tmp_path: Path, line: str):
    with network(tmp_path / "net", 2, config=(line,)) as net:
        nodes = {f"n{index}": node for index, node in enumerate(net.nodes)}
        pods = write_pods(desk.folder / "pods.yaml", nodes, transport="ssh-tunnel")
        said = refused(desk, SAMPLES, pods, "tunnel-refused")
        assert "direct" in said
        assert_clean(*net.nodes)
