"""A way from a port on one node to a port on another, carried by the controller; no node reaches another.

The first node's sshd listens on a fresh port of its 127.0.0.1 (remote port 0); each connection there is
carried through the controller to the other node's 127.0.0.1, byte for byte, each direction to its own end. It
dies with the controller, and with either connection; a peer that hangs up is no death.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import threading
import time
from contextlib import suppress

from paramiko import Channel, SSHException

from orchestrator.errors import Label
from orchestrator.remote.base import RemoteError, UnreachableError
from orchestrator.remote.line import NONCE_BYTES, HungUpError, Line, Lines

_TAKE_BYTES = 1 << 20
_PIECE_BYTES = 1 << 15
_PROBE_S = 15.0
_CLOSE_S = 2.0
_GONE = (OSError, EOFError, SSHException)


class Forward:
    """An open tunnel. Made by `open_tunnel`, which tries it before anybody uses it.

    Attributes:
        port: on the first node's 127.0.0.1.
    """

    def __init__(self, near: Line, far: Lines, port: int) -> None:
        self._near = near
        self._far = far
        self._target = port
        self._lock = threading.Lock()
        self._used: set[Line] = set()
        self._carried: dict[threading.Thread, Channel] = {}
        self._refusal: RemoteError | None = None
        self._is_closed = False
        self.port = near.listen(self._arrived)

    @property
    def died(self) -> str:
        """Why it carries nothing any more; empty while it does, and after it was closed on purpose."""
        with self._lock:
            lines = (self._near, *self._used)
            return str(self._refusal or next((line.fault for line in lines if line.fault), ""))

    @property
    def stall_s(self) -> float:
        """The longest time, up to now, in which an end of it gave no sign of life.

        A deadline of a role that is shorter than this may have passed because of the tunnel.
        """
        with self._lock:
            return max(line.stall_s for line in (self._near, *self._used))

    def is_alive(self) -> bool:
        """Whether it still carries connections; once it does not, `died` says why."""
        return not self._is_closed and self._near.is_open and not self.died

    def close(self) -> None:
        """Takes it down, with every connection through it. A second call does nothing."""
        with self._lock:
            self._is_closed = True
            carried = dict(self._carried)
        self._near.close()
        for channel in carried.values():
            with suppress(*_GONE):
                channel.close()
        limit = time.monotonic() + _CLOSE_S
        for thread in carried:
            thread.join(max(0.0, limit - time.monotonic()))

    def _arrived(self, near: Channel, origin: str) -> None:
        """Carries one connection, from its beginning to its end."""
        line = None
        try:
            if not _is_home(origin):  # an sshd with GatewayPorts listens to the whole world
                return
            line, far = self._far.dial(self._target)
            with self._lock:
                self._used.add(line)
                self._carried[threading.current_thread()] = far
                if self._is_closed:
                    far.close()
            self._carry(near, far, line)
        except HungUpError:
            pass  # the caller is hung up on, as a closed port would do
        except RemoteError as error:
            with self._lock:
                self._refusal = self._refusal or error
        finally:
            with suppress(*_GONE):
                near.close()
            if line is not None:
                self._far.free(line)
            with self._lock:
                self._carried.pop(threading.current_thread(), None)

    def _carry(self, near: Channel, far: Channel, line: Line) -> None:
        back = threading.Thread(target=_pump, args=(far, near, line), daemon=True, name="tunnel-back")
        back.start()
        _pump(near, far, self._near)
        back.join()
        with suppress(*_GONE):
            far.close()

    def probe(self, mirror: int | None) -> None:
        """Sends a nonce in at the first node's port and awaits its digest from the other node.

        Nothing on either node is needed for it: the first node's sshd dials its own port, and the other's
        brings what arrives back to the controller. Where the other forwards connections but no port (`mirror`
        is None), that it lets connections out is all that can be seen.

        Raises:
            UnreachableError: either node went away.
            RemoteError: what was sent did not come back whole (`tunnel-refused`).
        """
        if mirror is None:
            self._probe_far()
            return
        wanted, self._target = self._target, mirror
        try:
            answer, expected = self._reflection(secrets.token_bytes(NONCE_BYTES))
        finally:
            self._target = wanted
        if self._refusal is not None:
            raise self._refusal
        if self.died:
            raise UnreachableError(f"{self._near.node}: {self.died}")
        if answer != expected:
            message = (
                f"{self._near.node}: the tunnel to {self._far.node} opened, and carries nothing"
                f" (got {len(answer)} bytes back, expected the digest of what was sent)"
            )
            raise RemoteError(f"{message}; use `transport: direct`, or one node", Label.TUNNEL_REFUSED)

    def _reflection(self, nonce: bytes) -> tuple[bytes, bytes]:
        """What comes back for a nonce, and what ought to."""
        channel = self._near.dial(self.port)
        channel.settimeout(_PROBE_S)
        answer = b""
        with suppress(*_GONE):
            channel.sendall(nonce)
            channel.shutdown_write()
            while piece := channel.recv(_PIECE_BYTES):
                answer += piece
        channel.close()
        return answer, hashlib.sha256(nonce).digest()

    def _probe_far(self) -> None:
        with suppress(HungUpError):
            line, channel = self._far.dial(self._target)
            channel.close()
            self._far.free(line)


def open_tunnel(near: Lines, far: Lines, port: int) -> Forward:
    """A tunnel from a fresh port on one node to `port` on another, tried end to end.

    Args:
        near: lines to the node that is to have the port.
        far: lines to the node that it leads to.
        port: there, on 127.0.0.1; nobody needs to listen yet.

    Raises:
        UnreachableError: either node cannot be reached now; another try takes another port.
        RemoteError: a node's sshd lets no tunnel pass (`tunnel-refused`).
    """
    forward = Forward(near.fresh(), far, port)
    try:
        forward.probe(far.mirror())
    except BaseException:
        forward.close()
        raise
    return forward


def _pump(source: Channel, sink: Channel, line: Line) -> None:
    """Carries one direction to its end; whoever reads slowly slows the writer, by SSH's own windows."""
    is_ended = False
    with suppress(*_GONE):
        while data := source.recv(_TAKE_BYTES):
            line.hear()
            for start in range(0, len(data), _PIECE_BYTES):
                sink.sendall(data[start : start + _PIECE_BYTES])
        is_ended = True
    with suppress(*_GONE):
        if is_ended and source.eof_received:
            sink.shutdown_write()
        elif is_ended:  # closed without an end: it takes nothing more either
            sink.close()


def _is_home(origin: str) -> bool:
    """Whether a connection was made on the node itself."""
    try:
        address = ipaddress.ip_address(origin)
    except ValueError:
        return origin == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
