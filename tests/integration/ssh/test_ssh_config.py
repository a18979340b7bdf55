"""Hosts in ssh_config, keys in agents, and known_hosts: what ssh itself would do with them, holds."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from lab.desk import Desk
from lab.keys import make_key, public
from lab.network import network
from lab.node import SshNode, sshd
from lab.pods import write_pods
from lab.space import need_spaces
from ssh_lanes import SHORT, passes, refused

SAMPLES = "lanes/samples.yaml"
UNNAMED = {"host": "pod", "port": None, "key": None}


def configure(desk: Desk, text: str, *, name: str = "config") -> None:
    """Writes the desk's own ~/.ssh/config, which ssh reads by the accounts' file."""
    need_spaces()
    if shutil.which("ssh") is None:
        pytest.skip("OpenSSH's client is not installed")
    folder = desk.folder / "home/.ssh"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o600)


def lines(node: SshNode, *more: str) -> str:
    said = (
        f"HostName {node.host}",
        f"Port {node.port}",
        f"User {node.user}",
        f"IdentityFile {node.key}",
        *more,
    )
    return "".join(f"  {line}\n" for line in said)


@contextmanager
def agent(folder: Path, keys: list[Path]) -> Iterator[str]:
    """An ssh-agent that holds these keys; gives its socket."""
    path = folder / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        for key in keys:
            subprocess.run(
                ["ssh-add", "-q", str(key)], check=True, env={**os.environ, "SSH_AUTH_SOCK": str(path)}
            )
        yield str(path)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        process.stdout.close()


def test_a_host_of_ssh_config(desk: Desk, tmp_path: Path):
    with sshd(tmp_path / "node") as node:
        configure(desk, "Include extra\nMatch exec true\n  Compression no\n")
        configure(desk, f"Host pod\n{lines(node)}", name="extra")
        pods = write_pods(desk.folder / "pods.yaml", {"a": node.pods_entry(**UNNAMED)})
        passes(desk, desk.lane("samples", **SHORT), pods, node)


@pytest.mark.parametrize("jump", ["ProxyJump jump", "ProxyCommand ssh -W %h:%p jump"])
def test_a_host_behind_another(desk: Desk, tmp_path: Path, jump: str):
    with network(tmp_path / "net", 2) as net:
        first, last = net.nodes
        first.key.replace(tmp_path / "first")
        Path(f"{first.key}.pub").replace(tmp_path / "first.pub")
        first.key = tmp_path / "first"
        known = f"{first.host} {(first.folder / 'run/lab/host_ed25519.pub').read_text()}"
        configure(desk, known, name="known_hosts")
        configure(desk, f"Host jump\n{lines(first)}Host pod\n{lines(last, jump)}")
        pods = write_pods(desk.folder / "pods.yaml", {"a": last.pods_entry(**UNNAMED)})
        passes(desk, desk.lane("samples", **SHORT), pods, *net.nodes)
        assert "Accepted publickey" in first.log()


def test_an_agent_full_of_keys_is_not_asked_where_a_key_is_named(desk: Desk, tmp_path: Path):
    with sshd(tmp_path / "node", config=("MaxAuthTries 2",)) as node:
        others = [make_key(tmp_path / f"key{index}") for index in range(6)]
        with agent(tmp_path, others) as socket:
            busy = replace(desk, environment={"SSH_AUTH_SOCK": socket})
            lane = busy.lane("samples", **SHORT)
            passes(busy, lane, write_pods(desk.folder / "pods.yaml", {"a": node}), node)


def test_the_agent_is_asked_where_no_key_is_named(desk: Desk, tmp_path: Path):
    with sshd(tmp_path / "node") as node, agent(tmp_path, [node.key]) as socket:
        asked = replace(desk, environment={"SSH_AUTH_SOCK": socket})
        pods = write_pods(desk.folder / "pods.yaml", {"a": node.pods_entry(key=None)})
        passes(asked, asked.lane("samples", **SHORT), pods, node)


def known(node: SshNode, kind: str) -> str:
    return f"[{node.host}]:{node.port} {public(node.folder / f'run/lab/host_{kind}')}"


def test_known_hosts_is_enough_where_nothing_is_pinned(desk: Desk, tmp_path: Path):
    """By any of the host's keys, whichever type would be agreed on first."""
    with sshd(tmp_path / "node", host_keys=("ed25519", "rsa")) as node:
        configure(desk, known(node, "rsa"), name="known_hosts")
        pods = write_pods(desk.folder / "pods.yaml", {"a": node.pods_entry(host_key=None)})
        passes(desk, desk.lane("samples", **SHORT), pods, node)


def test_a_host_that_nobody_knows(desk: Desk, tmp_path: Path):
    with sshd(tmp_path / "node") as node:
        pods = write_pods(desk.folder / "pods.yaml", {"a": node.pods_entry(host_key=None)})
        assert "orch pods pin a" in refused(desk, SAMPLES, pods, "host-key-unknown")


def test_a_host_that_known_hosts_knows_otherwise(desk: Desk, tmp_path: Path):
    with sshd(tmp_path / "node") as node:
        other = make_key(tmp_path / "other")
        configure(desk, f"[{node.host}]:{node.port} {public(other)}", name="known_hosts")
        pods = write_pods(desk.folder / "pods.yaml", {"a": node.pods_entry(host_key=None)})
        refused(desk, SAMPLES, pods, "host-key-changed")
