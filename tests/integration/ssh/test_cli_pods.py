"""`orch pods` against real SSH servers, with no terminal and nothing on standard input."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from lab.desk import Desk
from lab.keys import make_key
from lab.machine import HOME
from lab.node import SshNode, sshd
from lab.space import need_spaces

from orchestrator.spec.read import read_pods


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "desk", tmp_path / "cache")


@pytest.fixture
def node(tmp_path: Path):
    with sshd(tmp_path / "a") as made:
        yield made


def line(node: SshNode) -> str:
    return f"ssh {node.user}@{node.host} -p {node.port} -i {node.key}"


def added(desk: Desk, node: SshNode, *more: str, name: str = "a") -> dict:
    done = desk.orch("pods", "add", name, line(node), "--owned", "--json", *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_pod_is_added_shown_and_pinned(desk, node):
    said = desk.orch(
        "pods", "add", "a", line(node) + " -L 8080:localhost:8080", "--price", "0.44 USD/h", "--cap", "5 USD"
    )
    assert said.returncode == 0, said.stderr
    assert node.host_key in said.stdout
    assert "compare it with what the provider shows" in said.stdout
    assert "orch run --pods pods.yaml LANE" in said.stdout
    assert "-L 8080:localhost:8080" in said.stderr
    path = desk.folder / "pods.yaml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (pinned,) = read_pods(path).nodes.values()
    assert (pinned.host_key, pinned.trust, pinned.port, str(pinned.price)) == (
        node.host_key,
        "first-use",
        node.port,
        "0.44 USD",
    )
    before = path.read_bytes()
    shown = desk.orch("pods", "show", "--json")
    assert shown.returncode == 0, shown.stderr
    (row,) = json.loads(shown.stdout)["nodes"]
    assert (row["node"], row["state"], row["changes"], row["faults"]) == ("a", "as-it-was", [], [])
    assert path.read_bytes() == before
    assert desk.orch("pods", "pin", "a").returncode == 0
    assert read_pods(path).nodes["a"].trust == "first-use"


def test_what_changed_is_said_and_accepted_by_name_alone(desk, node):
    added(desk, node)
    path = desk.folder / "pods.yaml"
    text = path.read_text(encoding="utf-8")
    other = "SHA256:" + "A" * 43
    changed = text.replace(node.host_key, other).replace("cpus: ", "cpus: 9")
    path.write_text(changed + "# mine\n", encoding="utf-8")
    shown = desk.orch("pods", "show")
    assert shown.returncode == 1
    assert "host-key-changed" in shown.stdout
    assert "orch pods pin" in shown.stderr
    pinned = desk.orch("pods", "pin", "a", "--json")
    assert pinned.returncode == 0, pinned.stderr
    first, second = json.loads(pinned.stdout)["changes"]
    assert other in first
    assert node.host_key in first
    assert second.startswith("cpus was 9")
    assert path.read_text(encoding="utf-8") == text + "# mine\n"


def test_a_node_that_was_written_by_hand_is_pinned_by_its_name(desk, node):
    added(desk, node)
    path = desk.folder / "pods.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        "".join(line for line in text.splitlines(keepends=True) if "host_key:" not in line), encoding="utf-8"
    )
    shown = desk.orch("pods", "show")
    assert shown.returncode == 1
    assert shown.stderr.startswith("a: host-key-unknown: nothing says")
    assert "`orch pods pin a`" in shown.stderr
    pinned = desk.orch("pods", "pin", "a")
    assert pinned.returncode == 0, pinned.stderr
    assert f"host_key was not pinned and is {node.host_key}" in pinned.stdout
    assert desk.orch("pods", "show").returncode == 0


def test_every_node_has_its_row(desk, node, tmp_path):
    added(desk, node)
    with sshd(tmp_path / "b") as other:
        assert added(desk, other, name="b")["transport"] == "ssh-tunnel"
        other.kill_sshd()
        shown = desk.orch("pods", "show", "--json")
    assert shown.returncode == 4
    assert [(row["node"], row["state"]) for row in json.loads(shown.stdout)["nodes"]] == [
        ("a", "as-it-was"),
        ("b", "unreachable"),
    ]


def test_the_key_that_was_told_and_no_other(desk, node):
    other = "SHA256:" + "A" * 43
    refused = desk.orch("pods", "add", "a", line(node), "--owned", "--accept-host-key", other, "--json")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["refusals"][0]["label"] == "host-key-changed"
    assert not (desk.folder / "pods.yaml").exists()
    assert added(desk, node, "--accept-host-key", node.host_key)["trust"] == "told"


def test_a_host_that_known_hosts_knows(desk, node):
    known = desk.folder / "home" / ".ssh" / "known_hosts"
    known.parent.mkdir(parents=True)
    own = next((node.folder / "run" / "lab").glob("host_*.pub")).read_text(encoding="utf-8").split()[:2]
    known.write_text(f"[{node.host}]:{node.port} {' '.join(own)}\n", encoding="utf-8")
    assert added(desk, node)["trust"] == "known-hosts"
    strange = make_key(node.folder / "strange")
    key = Path(f"{strange}.pub").read_text(encoding="utf-8").split()[:2]
    known.write_text(f"[{node.host}]:{node.port} {' '.join(key)}\n", encoding="utf-8")
    refused = desk.orch("pods", "add", "b", line(node), "--owned", "--remote-root", ".other")
    assert refused.returncode == 1
    assert "host-key-changed" in refused.stderr
    assert "--accept-host-key" in refused.stderr
    assert list(read_pods(desk.folder / "pods.yaml").nodes) == ["a"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["ssh root@127.0.0.1"], 2, "--owned"),
        (["ssh", "root@127.0.0.1", "-p", "41022", "--owned"], 2, "quote the whole command"),
        (["ssh root@127.0.0.1", "--price", "1 USD/h"], 2, "--cap"),
        (["ssh root@127.0.0.1", "--price", "1 dollar", "--cap", "5 USD"], 1, "value-format"),
        (["ssh root@127.0.0.1", "--price", "1 EUR/h", "--cap", "5 USD"], 1, "currency"),
        (["ssh x@ssh.runpod.io", "--owned"], 1, "shell-unusable"),
        (["ssh -o ProxyCommand=id root@127.0.0.1", "--owned"], 1, "ssh-line"),
        (["ssh root@127.0.0.1 -p 1", "--owned"], 4, "unreachable"),
        (["ssh root@127.0.0.1", "--owned", "--address", "localhost"], 1, "value-format"),
        (["ssh root@127.0.0.1", "--owned", "--emulator", "arm=qemu"], 1, "arm"),
    ],
)
def test_what_is_refused_writes_nothing(desk, arguments, code, said):
    done = desk.orch("pods", "add", "a", *arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert not (desk.folder / "pods.yaml").exists()


def test_a_key_that_is_refused(desk, node, tmp_path):
    other = make_key(tmp_path / "other")
    done = desk.orch("pods", "add", "a", f"ssh {node.user}@{node.host} -p {node.port} -i {other}", "--owned")
    assert done.returncode == 1
    assert "auth-refused" in done.stderr
    assert not (desk.folder / "pods.yaml").exists()


def test_a_name_that_is_taken_and_a_file_that_is_wrong(desk, node):
    added(desk, node)
    again = desk.orch("pods", "add", "a", line(node), "--owned")
    assert again.returncode == 1
    assert "name-duplicate" in again.stderr
    assert "orch pods pin a" in again.stderr
    twice = desk.orch("pods", "add", "b", line(node), "--owned")
    assert twice.returncode == 1
    assert "two nodes are one folder of one machine" in twice.stderr
    path = desk.folder / "pods.yaml"
    path.write_text("orch: pods/v1\n", encoding="utf-8")
    assert desk.orch("pods", "add", "b", line(node), "--owned").returncode == 1
    assert path.read_text(encoding="utf-8") == "orch: pods/v1\n"
    assert desk.orch("pods", "show", "--pods", "absent.yaml").returncode == 1


def test_faults_of_a_node_are_all_said(desk, tmp_path):
    need_spaces()
    with sshd(tmp_path / "a", disks={f"{HOME}/full": "size=1m,noexec"}) as node:
        emulator = "aarch64-linux=no-such-thing"
        found = added(desk, node, "--remote-root", f"{HOME}/full/orch", "--emulator", emulator)
        assert [fault["label"] for fault in found["faults"]] == [
            "remote-root",
            "disk-space",
            "emulator-missing",
        ]
        assert list(node.seen(f"{HOME}/full").iterdir()) == []


def test_a_node_without_its_tools_is_written_down_with_that(desk, tmp_path):
    need_spaces()
    with sshd(tmp_path / "a", without=frozenset({"setsid"})) as node:
        (fault,) = added(desk, node)["faults"]
    assert fault["label"] == "tool-missing"
    assert "setsid" in fault["message"]


def test_an_alias_of_the_users_configuration(desk, node):
    config = desk.folder / "home" / ".ssh" / "config"
    config.parent.mkdir(parents=True)
    said = {"HostName": node.host, "Port": node.port, "User": node.user, "IdentityFile": node.key}
    lines = [f"  {key} {value}\n" for key, value in said.items()]
    config.write_text("Host my_gpu\n" + "".join(lines), encoding="utf-8")
    done = desk.orch("pods", "add", "a", "ssh my_gpu", "--owned")
    assert done.returncode == 0, done.stderr
    (pinned,) = read_pods(desk.folder / "pods.yaml").nodes.values()
    assert (pinned.host, pinned.user, pinned.port, pinned.key) == ("my_gpu", None, None, None)
    assert desk.orch("pods", "show").returncode == 0


@pytest.mark.parametrize(
    "pasted", ["ssh {user}@::1 -p {port} -i {key}", "ssh ssh://{user}@[::1]:{port} -i {key}"]
)
def test_an_ipv6_address(desk, tmp_path, pasted):
    with sshd(tmp_path / "a", listen="::1") as node:
        text = pasted.format(user=node.user, port=node.port, key=node.key)
        done = desk.orch("pods", "add", "a", text, "--owned")
        assert done.returncode == 0, done.stderr
        assert desk.orch("pods", "show").returncode == 0


def test_dropbear_with_busybox_and_a_login_file_that_talks(desk, tmp_path):
    need_spaces()
    files = {".profile": "i=0; while [ $i -lt 2000 ]; do echo 'welcome to your pod'; i=$((i+1)); done\n"}
    with sshd(tmp_path / "a", server="dropbear", busybox=True, files=files) as node:
        assert added(desk, node)["faults"] == []
        assert desk.orch("pods", "show").returncode == 0
        assert node.left() == ()


def test_a_key_with_a_passphrase_is_refused_and_asks_nobody(desk, node, tmp_path):
    locked = make_key(tmp_path / "locked", passphrase="a passphrase")
    done = desk.orch("pods", "add", "a", f"ssh {node.user}@{node.host} -p {node.port} -i {locked}", "--owned")
    assert done.returncode == 1
    assert "auth-refused" in done.stderr


def test_a_proxy_that_gives_no_shell(desk, tmp_path):
    with sshd(tmp_path / "a", authorized='command="echo only for people"') as node:
        done = desk.orch("pods", "add", "a", line(node), "--owned")
    assert done.returncode == 1
    assert "shell-unusable" in done.stderr
    assert not (desk.folder / "pods.yaml").exists()
