"""Nodes as they are rented: whatever their server, shell, tools and login files, the lane passes on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lab.clock import clock_off
from lab.desk import Desk
from lab.network import network
from lab.node import sshd
from lab.pods import write_pods
from ssh_lanes import SHORT, passes

SAMPLES = "lanes/samples.yaml"
HASHERS = frozenset({"sha256sum", "openssl", "shasum"})
NOISE = "yes 'all that a provider has to say' | head -c 3000000; yes 'and again' | head -c 3000000 >&2\n"
NODES: dict[str, dict[str, Any]] = {
    "dash alone": {"shell": "/bin/dash", "without": frozenset({"bash", "busybox"})},
    "busybox alone": {"busybox": True},
    "no sha256sum": {"without": frozenset({"sha256sum"})},
    "no hash tool but perl's or python's": {"without": HASHERS | {"busybox"}},
    "dropbear": {"server": "dropbear"},
    "dropbear and busybox": {"server": "dropbear", "busybox": True, "host_keys": ("rsa",)},
    "megabytes of login text": {"files": {".bashrc": NOISE}},
    "login text without a line's end": {"files": {".bashrc": "printf 'no line ends here'\n"}},
    "banner": {"config": ("Banner /run/lab/etc/issue",), "files": {"/etc/issue": "Welcome!\n" * 200}},
    "MaxSessions 1": {"config": ("MaxSessions 1",)},
    "no terminal": {"config": ("PermitTTY no",)},
    "csh as login shell": {"shell": "/bin/tcsh", "files": {".cshrc": "echo noise\n"}},
    "zsh as login shell": {"shell": "/usr/bin/zsh", "files": {".zshenv": "echo noise\n"}},
    "fish as login shell": {
        "shell": "/usr/bin/fish",
        "files": {".config/fish/config.fish": "echo noise\n", ".local/share/fish/fish_history": ""},
    },
    "no forwarding, and none needed": {"config": ("AllowTcpForwarding no",)},
    "no SFTP": {"config": ("Subsystem sftp /bin/false",)},
    "IPv6": {"listen": "::1"},
    "an ECDSA host key": {"host_keys": ("ecdsa", "ed25519")},
    "an RSA host key": {"host_keys": ("rsa",)},
    "forced command that runs what was asked": {
        "authorized": 'command="exec sh -c \\"$SSH_ORIGINAL_COMMAND\\""'
    },
}


# where the whole lane runs, its controls too
WHOLE = ("dash alone", "dropbear and busybox")


@pytest.mark.parametrize("kind", NODES)
def test_the_lane_passes(desk: Desk, tmp_path: Path, kind: str):
    lane = SAMPLES if kind in WHOLE else desk.lane("samples", **SHORT)
    with sshd(tmp_path / "node", **NODES[kind]) as node:
        passes(desk, lane, write_pods(desk.folder / "pods.yaml", {"a": node}), node)


@pytest.mark.parametrize("offset_s", [3600, -3600])
def test_a_clock_off_by_an_hour(desk: Desk, tmp_path: Path, offset_s: int):
    """The controller's is; the node and its roles agree."""
    off = replace(desk, environment=clock_off(tmp_path, offset_s))
    with sshd(tmp_path / "node") as node:
        passes(off, off.lane("samples", **SHORT), write_pods(desk.folder / "pods.yaml", {"a": node}), node)


def test_an_ipv6_address(desk: Desk, tmp_path: Path):
    with network(tmp_path / "net", 2, ipv6=True) as net:
        nodes = {
            f"n{index}": node.pods_entry(address=net.addresses6[index], host=f"root@[{node.host}]")
            for index, node in enumerate(net.nodes)
        }
        pods = write_pods(desk.folder / "pods.yaml", nodes, transport="ssh-tunnel")
        passes(desk, SAMPLES, pods, *net.nodes)


def test_a_remote_root_with_a_blank_and_quotes(desk: Desk, tmp_path: Path):
    with sshd(tmp_path / "node") as node:
        entry = node.pods_entry(remote_root='it\'s "a" folder/orch')
        code, result, err = desk.run(SAMPLES, write_pods(desk.folder / "pods.yaml", {"a": entry}))
        assert (code, result.get("verdict")) == (0, "pass"), (result, err)
        assert not [path for path in node.home.rglob("*") if path.is_file() and ".ssh" not in path.parts]


def test_48_nodes_at_once_against_stock_max_startups(desk: Desk, tmp_path: Path):
    """One sshd with 48 roots: as many connections at once as 48 nodes behind one address make."""
    with sshd(tmp_path / "node") as node:
        entries = {f"n{index}": node.pods_entry(remote_root=f".orch{index}") for index in range(48)}
        pods = write_pods(desk.folder / "pods.yaml", entries, transport="ssh-tunnel")
        done = desk.orch("doctor", "--pods", str(pods), "--json")
        assert done.returncode == 0, done
        assert all(f'"n{index}"' in done.stdout for index in range(48)), done
        assert node.left() == (), "a look changes nothing"
