"""How a connection comes about or is refused, against real servers: by its label, never by a prompt."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path, PurePosixPath

import paramiko
import pytest
from lab.keys import fingerprint, make_key, public
from lab.node import SshNode, free_port, sshd
from lab.pods import declared

from orchestrator.errors import Label
from orchestrator.remote.base import RemoteError, UnreachableError
from orchestrator.remote.connect import Connected, scan_host_key
from orchestrator.remote.ssh import Ssh
from orchestrator.remote.ssh_config import settings_for
from orchestrator.spec.pods import Node

Server = Callable[..., SshNode]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with ExitStack() as stack:
        made = 0

        def make(**wants: object) -> SshNode:
            nonlocal made
            made += 1
            return stack.enter_context(sshd(tmp_path / f"node-{made}", **wants))

        yield make


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's HOME on this machine, without an agent; ssh itself asks the account for it."""
    home = tmp_path / "user"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    wrapped = tmp_path / "bin" / "ssh"
    wrapped.parent.mkdir()
    wrapped.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {home}/.ssh/config "$@"\n')
    wrapped.chmod(0o755)
    (home / ".ssh" / "config").write_text(f"UserKnownHostsFile {home}/.ssh/known_hosts\n")
    monkeypatch.setenv("PATH", str(wrapped.parent), prepend=":")
    return home


def said(node: Node, *, connect_s: float = 20) -> str:
    remote = Ssh(node, connect_s=connect_s)
    try:
        return remote.run(["echo", "in"], deadline_s=20).stdout.decode().strip()
    finally:
        remote.close()


def refused(node: Node, *, connect_s: float = 20) -> RemoteError:
    with pytest.raises(RemoteError) as found:
        said(node, connect_s=connect_s)
    assert "(got " in str(found.value)
    assert ", expected " in str(found.value)
    return found.value


def host_line(node: SshNode, key: Path | None = None) -> str:
    """A line for known_hosts."""
    kind, blob, *_ = public(key or node.folder / "run/lab/host_ed25519").split()
    return f"[{node.host}]:{node.port} {kind} {blob}\n"


def test_the_pinned_key_lets_in(server: Server) -> None:
    assert said(declared(server())) == "in"


def test_another_key_than_the_pinned_one_is_refused(server: Server, tmp_path: Path) -> None:
    node = server()
    other = fingerprint(make_key(tmp_path / "other"))
    error = refused(declared(node, host_key=other))
    assert error.label == Label.HOST_KEY_CHANGED
    assert node.host_key in str(error)
    assert other in str(error)
    assert "orch pods pin a" in str(error)
    assert "Accepted publickey" not in node.log()


@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_a_pin_of_another_type_is_asked_for(server: Server, kind: str) -> None:
    node = server(host_keys=("ed25519", "rsa", "ecdsa"))
    assert said(declared(node, host_key=fingerprint(node.folder / f"run/lab/host_{kind}"))) == "in"


def test_known_hosts_does_where_nothing_is_pinned(server: Server, home: Path) -> None:
    node = server(host_keys=("ed25519", "rsa"))
    unknown = declared(node, host_key=None)
    error = refused(unknown)
    assert error.label == Label.HOST_KEY_UNKNOWN
    assert "orch pods pin a" in str(error)
    known = home / ".ssh" / "known_hosts"
    known.write_text(host_line(node))
    assert said(unknown) == "in"
    # known under another type than the one that would come first
    known.write_text("# mine\n\nbroken\n" + host_line(node, node.folder / "run/lab/host_rsa"))
    assert said(unknown) == "in"
    known.write_text(host_line(node))
    subprocess.run(["ssh-keygen", "-H", "-f", str(known)], check=True, capture_output=True)
    assert said(unknown) == "in"


def test_another_key_than_the_known_one_is_refused(server: Server, home: Path, tmp_path: Path) -> None:
    node = server()
    for kind in ("ed25519", "rsa"):
        line = host_line(node, make_key(tmp_path / kind, kind=kind))
        (home / ".ssh" / "known_hosts").write_text(line)
        assert refused(declared(node, host_key=None)).label == Label.HOST_KEY_CHANGED


def test_a_host_key_is_shown_before_it_is_trusted(server: Server) -> None:
    node = server()
    shown = scan_host_key(declared(node, host_key=None, key="/none"))
    assert (shown.type, shown.fingerprint) == ("ssh-ed25519", node.host_key)


def test_a_key_that_the_server_does_not_know_is_refused_once(server: Server, tmp_path: Path) -> None:
    node = server()
    error = refused(declared(node, key=str(make_key(tmp_path / "stranger"))))
    assert error.label == Label.AUTH_REFUSED
    for word in ("our key", "vast.ai", "RunPod"):
        assert word in str(error)
    assert str(tmp_path) not in str(error)
    assert node.log().count("Connection closed by authenticating user") <= 1


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("make", ["absent", "junk", "locked"])
def test_a_key_that_cannot_be_used_is_refused_without_asking(
    server: Server, tmp_path: Path, make: str
) -> None:
    key = tmp_path / "my key"
    if make == "junk":
        key.write_text("not a key")
    elif make == "locked":
        make_key(key, passphrase="guess it")
    error = refused(declared(server(), key=str(key)))
    assert error.label == Label.AUTH_REFUSED
    assert str(key) not in str(error)
    assert ("passphrase" in str(error)) == (make == "locked")


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """An agent, and what adds keys to it."""
    path = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL) as process:
        while not path.exists():
            assert process.poll() is None

        def add(key: Path) -> None:
            environment = {**os.environ, "SSH_AUTH_SOCK": str(path)}
            subprocess.run(["ssh-add", str(key)], check=True, capture_output=True, env=environment)

        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        yield add
        process.terminate()


def test_a_locked_key_works_through_the_agent(
    server: Server, tmp_path: Path, agent: Callable[[Path], None]
) -> None:
    node = server()
    locked = tmp_path / "locked"
    locked.write_bytes(node.key.read_bytes())
    locked.chmod(0o600)
    agent(node.key)
    subprocess.run(["ssh-keygen", "-p", "-N", "guess it", "-f", str(locked)], check=True, capture_output=True)
    locked.with_name("locked.pub").write_text(public(node.key))
    assert said(declared(node, key=str(locked))) == "in"


def test_only_the_named_key_is_offered(server: Server, tmp_path: Path, agent: Callable[[Path], None]) -> None:
    """With many keys in the agent, a server has had enough before ours comes."""
    node = server()
    for number in range(8):
        agent(make_key(tmp_path / f"k{number}"))
    assert said(declared(node)) == "in"
    assert "Failed publickey" not in node.log()


def test_without_a_named_key_sshs_own_are_tried(server: Server, home: Path) -> None:
    node = server()
    with (home / ".ssh" / "config").open("a") as config:
        config.write(f"IdentityFile {node.key}\nIdentityFile {home}/none\n")
    assert said(declared(node, key=None)) == "in"


def test_ssh_config_says_where_a_host_is(server: Server, home: Path) -> None:
    node = server()
    (home / ".ssh" / "more").write_text(
        f"Host pod\n HostName {node.host}\n Port {node.port}\n User {node.user}\n IdentityFile {node.key}\n"
        " ProxyJump none\n"
    )
    config = home / ".ssh" / "config"
    config.write_text(f"Include {home}/.ssh/more\nMatch exec false\n User nobody\n")
    assert said(declared(node, host="pod", port=None, key=None)) == "in"
    # what the pods file says wins
    assert refused(declared(node, host="nobody@pod", port=None)).label == Label.AUTH_REFUSED


def test_a_jump_host_is_gone_through(server: Server, home: Path) -> None:
    node, jump = server(), server()
    (home / ".ssh" / "known_hosts").write_text(host_line(jump))
    with (home / ".ssh" / "config").open("a") as config:
        config.write(f"Host inner\n HostName {node.host}\n ProxyJump {jump.user}@{jump.host}:{jump.port}\n")
        config.write(f"Host {jump.host}\n IdentityFile {jump.key}\n")
    assert said(declared(node, host=f"{node.user}@inner")) == "in"
    assert "Accepted publickey" in jump.log()


def test_what_is_wrong_with_a_jump_host_is_said_of_it(server: Server, home: Path, tmp_path: Path) -> None:
    node, jump = server(), server()
    other = make_key(tmp_path / "other")
    known = home / ".ssh" / "known_hosts"
    config = home / ".ssh" / "config"
    inner = f"Host inner\n HostName {node.host}\n ProxyJump {jump.user}@{jump.host}:{jump.port}\n"
    config.write_text(f"UserKnownHostsFile {known}\n{inner}Host {jump.host}\n IdentityFile {other}\n")
    inside = declared(node, host=f"{node.user}@inner")
    known.write_text(host_line(jump, other))
    for error in (refused(inside), raised(lambda: scan_host_key(inside))):
        assert error.label == Label.HOST_KEY_CHANGED
        assert f"a through {jump.host}: " in str(error)
        assert jump.host_key in str(error)
        assert "ssh-keygen -R" in str(error)
    known.write_text(host_line(jump))
    error = refused(inside)
    assert error.label == Label.AUTH_REFUSED
    assert f"a through {jump.host}: " in str(error)
    assert "Accepted publickey" not in jump.log() + node.log()


def raised(action: Callable[[], object]) -> RemoteError:
    with pytest.raises(RemoteError) as found:
        action()
    return found.value


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("host", ["a..b", "a" * 64])
def test_a_name_that_no_host_can_have(server: Server, host: str) -> None:
    assert isinstance(refused(declared(server(), host=host)), UnreachableError)


@pytest.mark.parametrize("key", ["~nobody-of-this-name/key", "missing"])
def test_a_key_that_is_nowhere(server: Server, key: str) -> None:
    assert refused(declared(server(), key=key)).label == Label.AUTH_REFUSED


def test_identities_that_cannot_be_looked_at_are_left_out(server: Server, home: Path) -> None:
    node = server()
    with (home / ".ssh" / "config").open("a") as config:
        config.write(f"Host pod\n HostName {node.host}\n IdentityFile ~nobody-of-this-name/key\n")
        config.write(f" IdentityFile {node.key}\n")
    assert said(declared(node, host=f"{node.user}@pod", key=None)) == "in"


def test_a_server_whose_first_words_are_no_text(server: Server) -> None:
    """What the library takes for text breaks it in a way that is none of its errors."""
    names = (b"\0\0\0\1\xff" * 10) + bytes(5)
    padding = bytes(11)
    packet = bytes([len(padding), 20]) + bytes(16) + names + padding
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            channel, _ = listener.accept()
            with channel:
                channel.sendall(b"SSH-2.0-odd\r\n" + len(packet).to_bytes(4, "big") + packet)
                while channel.recv(4096):
                    pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        error = refused(declared(server(), port=listener.getsockname()[1]), connect_s=3)
        thread.join()
    assert isinstance(error, UnreachableError)
    assert "UnicodeDecodeError" in str(error)


def test_a_proxy_command_is_run(server: Server, home: Path) -> None:
    node = server()
    with (home / ".ssh" / "config").open("a") as config:
        config.write(f"Host inner\n HostName {node.host}\n ProxyCommand /bin/busybox nc %h %p\n")
    assert said(declared(node, host=f"{node.user}@inner")) == "in"


def test_without_openssh_the_plain_parts_are_read(
    server: Server, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = server()
    monkeypatch.setenv("PATH", str(tmp_path))
    config = home / ".ssh" / "config"
    config.write_text(
        f"Include more\nHost pod\n HostName {node.host}\n Port {node.port}\n User {node.user}\n"
    )
    reports: list[str] = []

    def note(way: Connected, _: bytes) -> None:
        reports.extend(way.reports)

    remote = Ssh(declared(node, host="pod", port=None), connected=note)
    assert remote.facts().cpus
    remote.close()
    assert any("includes" in report for report in reports)
    for wrong in ("many", "0", "70000"):
        config.write_text(f"Host pod\n HostName {node.host}\n Port {wrong}\n")
        assert settings_for("pod", None, None).port == 22
        assert wrong in settings_for("pod", None, None).ignored[0]
    config.write_text("Match exec true\n User x\n")
    assert said(declared(node)) == "in"


def test_an_rsa_key_lets_in(server: Server, tmp_path: Path) -> None:
    node = server()
    key = make_key(tmp_path / "rsa", kind="rsa")
    (node.home / ".ssh" / "authorized_keys").write_text(public(key))
    assert said(declared(node, key=str(key))) == "in"


def test_an_older_signature_is_tried_once_and_said(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does not say which signatures it knows, and knows not the newest."""
    node = server(config=("PubkeyAcceptedAlgorithms rsa-sha2-256",))
    key = make_key(tmp_path / "rsa", kind="rsa")
    (node.home / ".ssh" / "authorized_keys").write_text(public(key))
    monkeypatch.setattr(paramiko.Transport, "_parse_ext_info", lambda *_: None)
    reports: list[str] = []
    remote = Ssh(declared(node, key=str(key)), connected=lambda way, _: reports.extend(way.reports))
    assert remote.run(["true"], deadline_s=20).exit == 0
    remote.close()
    assert reports == ["logged in with an older signature of the RSA key"]
    stranger = make_key(tmp_path / "stranger", kind="rsa")
    assert refused(declared(node, key=str(stranger))).label == Label.AUTH_REFUSED


def test_nobody_listens(server: Server) -> None:
    node = declared(server())
    error = refused(replace(node, port=free_port("127.0.0.1")))
    assert isinstance(error, UnreachableError)
    assert error.label == Label.UNREACHABLE
    assert error.exit_code == 4
    error = refused(replace(node, host="no-such-host.invalid"))
    assert error.label == Label.UNREACHABLE


@pytest.mark.parametrize("behaviour", ["mute", "hangs up", "another"])
def test_what_is_no_ssh_server_is_unreachable(server: Server, behaviour: str) -> None:
    node = declared(server())
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        stop = threading.Event()

        def serve() -> None:
            held = []
            while not stop.is_set():
                connection, _ = listening.accept()
                if behaviour == "mute":
                    held.append(connection)
                    continue
                if behaviour == "another":
                    connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
                connection.close()
            for connection in held:
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            error = refused(replace(node, port=listening.getsockname()[1]), connect_s=2)
        finally:
            stop.set()
            socket.create_connection(listening.getsockname()).close()
            thread.join()
    assert error.label == Label.UNREACHABLE


def test_the_proxy_that_is_of_no_use_is_known_by_name(server: Server) -> None:
    error = refused(replace(declared(server()), host="ssh.runpod.io"))
    assert error.label == Label.SHELL_UNUSABLE
    assert "exposed TCP" in str(error)


@pytest.mark.parametrize(
    ("wants", "words"),
    [
        ({"authorized": 'command="echo go away"'}, "go away"),
        ({"config": ("ForceCommand /bin/false",)}, "nothing"),
        ({"shell": "/usr/sbin/nologin"}, "not available"),
        ({"config": ("MaxSessions 0",)}, ""),
        ({"authorized": 'command="cat"'}, ""),
        ({"authorized": 'command="sleep 600"'}, "nothing"),
    ],
)
def test_what_gives_no_shell_says_so(server: Server, wants: dict[str, object], words: str) -> None:
    error = refused(declared(server(**wants)), connect_s=4)
    assert error.label == Label.SHELL_UNUSABLE
    assert words in str(error)


LOUD = "head -c 3000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero | tr '\\0' y >&2\n"


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/dash"])
def test_what_login_files_print_is_noise(server: Server, shell: str) -> None:
    node = server(shell=shell, files={".bashrc": LOUD, ".profile": LOUD}, config=("Banner /etc/passwd",))
    noises: list[bytes] = []
    remote = Ssh(declared(node), connected=lambda _, noise: noises.append(noise))
    assert remote.run(["echo", "in"], deadline_s=20).stdout == b"in\n"
    remote.close()
    (noise,) = noises
    assert len(noise) < 1 << 20
    assert (b"xxx" in noise) == (shell == "/bin/bash")


@pytest.mark.parametrize(
    "wants",
    [
        {"config": ("MaxSessions 1",)},
        {"listen": "::1"},
        {"server": "dropbear"},
        {"shell": "/bin/bash", "files": {".bashrc": "set -eu; cd /; alias sh=false env=false\n"}},
        {"shell": "/bin/tcsh", "files": {".tcshrc": "echo hello\n"}},
        {"shell": "/usr/bin/fish"},
        {"shell": "/bin/zsh", "files": {".zshenv": "setopt nomatch; echo hello\n"}},
    ],
    ids=lambda wants: str(wants.get("shell") or wants),
)
def test_what_makes_no_difference(server: Server, wants: dict[str, object]) -> None:
    node = server(**wants)
    remote = Ssh(declared(node))
    root = remote.resolve(PurePosixPath(".orch")) / "run"
    remote.make_root(root, "tests")
    remote.put(b"data", root / "file")
    assert remote.get(root / "file") == b"data"
    remote.close()


def test_a_crowd_gets_in(server: Server) -> None:
    """More at once than a server lets wait at its door."""
    node = server(config=("MaxStartups 2:100:3",))
    ways = [Ssh(declared(node), connect_s=60) for _ in range(12)]
    codes: list[int | None] = []
    threads = [
        threading.Thread(target=lambda way=way: codes.append(way.run(["true"], deadline_s=60).exit))
        for way in ways
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for way in ways:
        way.close()
    assert codes == [0] * 12
