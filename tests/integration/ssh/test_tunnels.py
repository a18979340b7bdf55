"""Tunnels between two nodes behind real sshds: what is carried, what is refused, what ends them."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from lab.node import SshNode, _descendants, sshd
from lab.space import until
from paramiko import Ed25519Key, Transport

from orchestrator.errors import Label
from orchestrator.remote import line
from orchestrator.remote.base import RemoteError, UnreachableError
from orchestrator.remote.line import CHANNELS, Lines
from orchestrator.remote.tunnel import Forward, open_tunnel

PATIENCE_S = 60
MIB = 1 << 20


@dataclass(frozen=True)
class Dialled:
    transport: Transport

    def close(self) -> None:
        self.transport.close()


def connected(node: SshNode) -> Dialled:
    try:
        transport = Transport(socket.create_connection((node.host, node.port)))
        transport.start_client(timeout=PATIENCE_S)
        transport.auth_publickey(node.user, Ed25519Key.from_private_key_file(str(node.key)))
    except (OSError, EOFError) as error:
        raise UnreachableError(str(error)) from error
    return Dialled(transport)


class Pair:
    """Two nodes, and lines to them. Their servers share this machine's 127.0.0.1."""

    def __init__(self, near: SshNode, far: SshNode) -> None:
        self.near, self.far = near, far
        self.near_lines = Lines("near", partial(connected, near))
        self.far_lines = Lines("far", partial(connected, far))

    def tunnel(self, port: int) -> Forward:
        return open_tunnel(self.near_lines, self.far_lines, port)

    def close(self) -> None:
        self.near_lines.close()
        self.far_lines.close()


@contextmanager
def pair(folder: Path, *, near: tuple[str, ...] = (), far: tuple[str, ...] = (), server: str = "openssh"):
    with (
        sshd(folder / "near", config=near, server=server) as one,
        sshd(folder / "far", config=far, server=server) as other,
        closing(Pair(one, other)) as both,
    ):
        yield both


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Pair]:
    with pair(tmp_path) as both:
        yield both


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    until(lambda: not set(threading.enumerate()) - before, f"the end of {threading.enumerate()}")


@contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """Whoever connects is answered; gives the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answering, args=(peer,), daemon=True).start()

        def answering(peer: socket.socket) -> None:
            with peer:
                peer.settimeout(PATIENCE_S)
                answer(peer)

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def everything(peer: socket.socket) -> bytes:
    pieces = []
    while piece := peer.recv(MIB):
        pieces.append(piece)
    return b"".join(pieces)


def digest_then_more(peer: socket.socket) -> None:
    """Says what it was sent only after the sender's end, and then goes on sending."""
    digest = hashlib.sha256(everything(peer)).digest()
    peer.sendall(digest + bytes(3 * MIB))


def echo(peer: socket.socket) -> None:
    while piece := peer.recv(MIB):
        peer.sendall(piece)


def dial(port: int) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


def said(port: int, data: bytes) -> bytes:
    """What comes back for `data`; nothing where the other side hangs up."""
    with dial(port) as peer:
        try:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            return everything(peer)
        except OSError:
            return b""


def as_much_as_goes(peer: socket.socket) -> int:
    """Sends until nothing more is taken for a while; gives how many bytes went."""
    sent = 0
    peer.settimeout(2)
    with suppress(TimeoutError):
        while True:
            sent += peer.send(bytes(MIB))
    return sent


@pytest.mark.parametrize("server", ["openssh", "dropbear"])
def test_each_direction_goes_to_its_own_end(tmp_path: Path, server: str) -> None:
    with (
        pair(tmp_path, server=server) as nodes,
        serving(digest_then_more) as port,
        closing(nodes.tunnel(port)) as tunnel,
    ):
        data = os.urandom(5 * MIB)
        answer = said(tunnel.port, data)
        assert answer == hashlib.sha256(data).digest() + bytes(3 * MIB)
        assert tunnel.is_alive()
        assert tunnel.died == ""


def test_both_directions_at_once(nodes: Pair) -> None:
    data = os.urandom(6 * MIB)
    with serving(echo) as port, closing(nodes.tunnel(port)) as tunnel, dial(tunnel.port) as peer:
        writer = threading.Thread(target=lambda: (peer.sendall(data), peer.shutdown(socket.SHUT_WR)))
        writer.start()
        assert everything(peer) == data
        writer.join()


def test_48_connections_share_lines_of_8_channels(nodes: Pair) -> None:
    with serving(echo) as port, closing(nodes.tunnel(port)) as tunnel, ExitStack() as stack:
        peers = [stack.enter_context(dial(tunnel.port)) for _ in range(48)]
        for number, peer in enumerate(peers):
            peer.sendall(b"%d" % number)
        for number, peer in enumerate(peers):
            assert peer.recv(100) == b"%d" % number
        assert [one.taken for one in nodes.far_lines._shared] == [CHANNELS] * 6
        stack.close()
        until(lambda: all(one.taken == 0 for one in nodes.far_lines._shared), "the channels are given back")
        assert tunnel.is_alive()


def test_a_slow_reader_slows_the_writer(nodes: Pair) -> None:
    go = threading.Event()

    def late(peer: socket.socket) -> None:
        go.wait(PATIENCE_S)
        peer.sendall(b"%d" % len(everything(peer)))

    with serving(late) as port, closing(nodes.tunnel(port)) as tunnel, dial(tunnel.port) as peer:
        sent = as_much_as_goes(peer)
        assert sent < 24 * MIB
        go.set()
        peer.settimeout(PATIENCE_S)
        peer.shutdown(socket.SHUT_WR)
        assert everything(peer) == b"%d" % sent


def test_a_port_where_nobody_listens_hangs_up_until_somebody_does(nodes: Pair) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with closing(nodes.tunnel(port)) as tunnel:
        assert said(tunnel.port, b"early") == b""
        assert tunnel.is_alive()
        with socket.create_server(("127.0.0.1", port)) as listener, dial(tunnel.port) as peer:
            peer.sendall(b"hello")
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.recv(100) == b"hello"


def test_a_peer_that_hangs_up_or_resets_is_no_death(nodes: Pair) -> None:
    def reset(peer: socket.socket) -> None:
        peer.recv(1)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with serving(reset) as port, closing(nodes.tunnel(port)) as tunnel:
        for _ in range(3):
            assert said(tunnel.port, b"x" * MIB) == b""
        assert tunnel.is_alive()
        assert tunnel.died == ""


@pytest.mark.parametrize(
    ("near", "far"),
    [
        (("AllowTcpForwarding no",), ()),
        (("AllowTcpForwarding local",), ()),
        (("AllowTcpForwarding remote",), ()),
        (("PermitListen none",), ()),
        (("PermitOpen none",), ()),
        (("DisableForwarding yes",), ()),
        ((), ("AllowTcpForwarding no",)),
        ((), ("AllowTcpForwarding remote",)),
        ((), ("PermitOpen none",)),
    ],
)
def test_an_sshd_that_forwards_nothing_is_said_before_anybody_uses_it(
    tmp_path: Path, near: tuple[str, ...], far: tuple[str, ...]
) -> None:
    with pair(tmp_path, near=near, far=far) as nodes:
        with pytest.raises(RemoteError, match=f"^tunnel-refused: {'near' if near else 'far'}: ") as refused:
            nodes.tunnel(9)
        assert refused.value.label is Label.TUNNEL_REFUSED
        assert "transport: direct" in str(refused.value)


def test_an_sshd_that_lets_connections_out_is_enough_at_the_far_end(tmp_path: Path) -> None:
    with (
        pair(tmp_path, far=("AllowTcpForwarding local",)) as nodes,
        serving(echo) as port,
        closing(nodes.tunnel(port)) as tunnel,
    ):
        assert said(tunnel.port, b"hello") == b"hello"


def test_a_port_that_an_old_connection_holds_is_not_waited_for(nodes: Pair) -> None:
    with serving(echo) as port, closing(nodes.tunnel(port)) as old, closing(nodes.tunnel(port)) as new:
        assert old.port != new.port
        assert said(new.port, b"hello") == b"hello"


@pytest.mark.parametrize("end", ["near", "far"])
def test_the_end_of_either_connection_is_a_death_and_says_whose(nodes: Pair, end: str) -> None:
    with serving(echo) as port, closing(nodes.tunnel(port)) as tunnel, dial(tunnel.port) as peer:
        peer.sendall(b"hello")
        assert peer.recv(100) == b"hello"
        getattr(nodes, end).kill_sshd()
        assert peer.recv(100) == b""
        until(lambda: not tunnel.is_alive(), "the tunnel is known to be dead")
        assert tunnel.died.startswith(f"the connection to {end} ended")
        tunnel.close()
        assert tunnel.died.startswith(f"the connection to {end} ended")


def test_a_connection_without_a_sign_of_life_is_a_death(nodes: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "_SILENCE_S", 3.0)
    with serving(echo) as port, closing(nodes.tunnel(port)) as tunnel, dial(tunnel.port):
        assert tunnel.stall_s < 3
        stopped = _descendants(nodes.near.server.pid)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            until(lambda: not tunnel.is_alive(), "the tunnel is known to be dead")
            assert "near gave no sign of life" in tunnel.died
            assert tunnel.stall_s >= 3
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)


def test_a_stall_that_passes_is_remembered(nodes: Pair) -> None:
    with serving(echo) as port, closing(nodes.tunnel(port)) as tunnel:
        stopped = _descendants(nodes.near.server.pid)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(2.5)
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        assert said(tunnel.port, b"hello") == b"hello"
        assert tunnel.is_alive()
        assert tunnel.stall_s >= 2.5


def test_closing_waits_for_nobody(nodes: Pair) -> None:
    """A writer whose reader sleeps is cut off, and so is one who waits for an answer."""
    go = threading.Event()
    with serving(lambda _: go.wait(PATIENCE_S)) as port:
        tunnel = nodes.tunnel(port)
        with dial(tunnel.port) as writer, dial(tunnel.port) as waiting:
            as_much_as_goes(writer)
            tunnel.close()
            tunnel.close()
            assert not tunnel.is_alive()
            assert tunnel.died == ""
            assert waiting.recv(1) == b""
        go.set()


def test_a_closed_tunnel_takes_nobody_more(nodes: Pair) -> None:
    with serving(echo) as port:
        tunnel = nodes.tunnel(port)
        tunnel.close()

        def is_refused() -> bool:
            try:
                return said(tunnel.port, b"hello") == b""
            except ConnectionRefusedError:
                return True

        until(is_refused, "the port is given up")


def test_callers_from_elsewhere_are_hung_up_on(tmp_path: Path) -> None:
    """An sshd with GatewayPorts listens on every address; its tunnels are still the node's own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as looking:
        try:
            looking.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            pytest.skip("this machine has no other address")
        own = looking.getsockname()[0]
    with (
        pair(tmp_path, near=("GatewayPorts yes",)) as nodes,
        serving(echo) as port,
        closing(nodes.tunnel(port)) as tunnel,
    ):
        stranger = socket.create_connection((own, tunnel.port), timeout=PATIENCE_S)
        with stranger, suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
        assert said(tunnel.port, b"hello") == b"hello"


def test_a_node_that_went_away_is_unreachable_and_not_refused(nodes: Pair) -> None:
    nodes.far.kill_sshd()
    with pytest.raises(UnreachableError):
        nodes.tunnel(9)
    nodes.far.start_sshd()
    nodes.near.kill_sshd()
    with pytest.raises(UnreachableError):
        nodes.tunnel(9)
