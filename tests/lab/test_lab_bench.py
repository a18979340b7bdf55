"""The bench itself: a node is as it was asked for, and nothing of it is left afterwards."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.machine import HOME
from lab.node import SshNode, sshd
from lab.space import need_spaces, until


def ssh(node: SshNode, command: str, *options: str) -> subprocess.CompletedProcess[str]:
    known = node.folder / "known_hosts"
    known.touch()
    fixed = ("BatchMode=yes", f"UserKnownHostsFile={known}", "StrictHostKeyChecking=accept-new")
    return subprocess.run(
        [
            *("ssh", "-F", "none", "-i", str(node.key), "-p", str(node.port)),
            *(part for option in fixed for part in ("-o", option)),
            *options,
            f"{node.user}@{node.host}",
            command,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_plain_node_answers_and_goes(tmp_path: Path):
    with sshd(tmp_path / "a") as node:
        assert ssh(node, "echo here").stdout == "here\n"
        node.kill_sshd()
        assert ssh(node, "true").returncode == 255
        node.start_sshd()
        assert ssh(node, "echo again").stdout == "again\n"
    assert node.space is None or not Path(f"/proc/{node.space.init}").exists()
    assert ssh(node, "true").returncode == 255


def test_it_has_a_home_and_temporary_folders_of_its_own(tmp_path: Path):
    need_spaces()
    with sshd(tmp_path / "a", files={".bashrc": "echo noise\n"}) as node:
        done = ssh(node, "echo $HOME; touch ~/x /tmp/y; sleep 300 >/dev/null 2>&1 </dev/null & exit 0")
        assert done.stdout == "noise\n/root\n"
        assert node.left() == (f"{HOME}/x", "/tmp/y")
        # the shell has left it behind, maybe before it was itself
        until(lambda: list(node.processes().values()) == ["sleep 300"], "nothing but the sleep runs")
        node.kill_all()
        assert node.processes() == {}


def test_busybox_alone(tmp_path: Path):
    need_spaces()
    with sshd(tmp_path / "a", busybox=True) as node:
        assert "BusyBox" in ssh(node, "ls --help 2>&1 | head -1; command -v python3 perl openssl").stdout
        assert "applet" not in ssh(node, "setsid echo one; sha256sum /dev/null").stderr


def test_programs_can_be_taken_away(tmp_path: Path):
    need_spaces()
    with sshd(tmp_path / "a", without=frozenset({"sha256sum", "bash"}), shell="/bin/dash") as node:
        said = ssh(node, "for tool in sha256sum bash dash; do command -v $tool; done")
        assert said.stdout == "/usr/bin/dash\n"


def test_small_disks(tmp_path: Path):
    need_spaces()
    with sshd(
        tmp_path / "a",
        disks={f"{HOME}/small": "size=64k", f"{HOME}/still": "size=64k,noexec", f"{HOME}/ro": "ro"},
    ) as node:
        assert "No space" in ssh(node, f"head -c 100000 /dev/zero >{HOME}/small/x").stderr
        assert ssh(node, f"cp /usr/bin/true {HOME}/still/ && {HOME}/still/true").returncode == 126
        assert "Read-only" in ssh(node, f"touch {HOME}/ro/x").stderr
        assert (node.seen(f"{HOME}/small/x")).stat().st_size == 65536


@pytest.mark.parametrize("kinds", [("ed25519",), ("ecdsa", "rsa")])
def test_dropbear(tmp_path: Path, kinds: tuple[str, ...]):
    with sshd(tmp_path / "a", server="dropbear", host_keys=kinds) as node:
        done = ssh(node, "echo here")
        assert done.stdout == "here\n", (done, node.log())
        node.kill_sshd()
        node.start_sshd()
        assert ssh(node, "echo here").stdout == "here\n"


def test_configuration_ipv6_and_forced_commands(tmp_path: Path):
    with sshd(tmp_path / "a", listen="::1", config=("ForceCommand echo only this",)) as node:
        assert ssh(node, "echo here").stdout == "only this\n"
