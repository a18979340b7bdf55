"""Connections to a node beside that of its shell: what tunnels go through.

Knows paramiko's transports and channels, how many channels one connection may carry, and whether its other
end still gives a sign of life. Knows nothing of who talks through them, nor how a connection is made: that is
handed in.
"""

from __future__ import annotations

import hashlib
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from paramiko import Channel, ChannelException, SSHException, Transport

from orchestrator.errors import Label
from orchestrator.remote.base import RemoteError, UnreachableError

CHANNELS = 8  # a transport; sshd's own MaxSessions is 10
HOME = "127.0.0.1"
NONCE_BYTES = 32

_BEAT_S = 1.0
_SILENCE_S = 30.0  # without any sign of life this long, a connection is given up
_ANSWER_S = 10.0
_CLOSE_S = 2.0
_PROHIBITED = 1  # RFC 4254 5.1: administratively prohibited

Arrival = Callable[[Channel, str], None]  # a connection that a forwarded port took, and where it came from


class Dialled(Protocol):
    """A connection on which somebody is logged in, with all that it goes through."""

    @property
    def transport(self) -> Transport:
        """The connection itself."""
        ...

    def close(self) -> None:
        """Closes it, and what it goes through."""
        ...


class HungUpError(RemoteError):
    """Nobody listens at the port that a connection was to reach."""


class Line:
    """One connection to a node, asked once a second whether it is still there.

    Attributes:
        node: whose it is.
        taken: how many channels go through it; its keeper counts them.
    """

    def __init__(self, node: str, dialled: Dialled) -> None:
        self.node = node
        self.taken = 0
        self._dialled = dialled
        self._transport = dialled.transport
        self._requests = threading.Lock()  # answers to requests bear no name: one at a time
        self._lock = threading.Lock()
        self._heard = time.monotonic()
        self._stall = 0.0
        self._fault = ""
        self._closing = threading.Event()
        with suppress(OSError, AttributeError):  # through a jump host it is a channel, and has no such option
            self._transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._asker = threading.Thread(target=self._ask, daemon=True, name=f"line-{node}")
        self._asker.start()

    def _ask(self) -> None:
        while not self._closing.wait(_BEAT_S) and self._transport.is_active():
            # any answer is one, and an unknown request has to be answered
            with suppress(SSHException, OSError, EOFError), self._requests:
                self._transport.global_request("keepalive@openssh.com", wait=True)
                if self._transport.is_active():
                    self.hear()

    def hear(self) -> None:
        """Notes a sign of life."""
        with self._lock:
            now = time.monotonic()
            self._stall = max(self._stall, now - self._heard)
            self._heard = now

    @property
    def stall_s(self) -> float:
        """The longest time so far without any sign of life, up to now."""
        with self._lock:
            return max(self._stall, time.monotonic() - self._heard)

    @property
    def fault(self) -> str:
        """Why it carries nothing any more; empty while it does, and after it was closed on purpose."""
        with self._lock:
            self._look()
            return self._fault

    @property
    def is_open(self) -> bool:
        """Whether it carries anything still."""
        return not self._closing.is_set() and not self.fault

    def _look(self) -> None:
        silent_s = time.monotonic() - self._heard
        if self._fault or self._closing.is_set():
            return
        if not self._transport.is_active():
            cause = str(self._transport.saved_exception or "") or "closed by the other side"
            self._fault = f"the connection to {self.node} ended ({cause})"
        elif silent_s > _SILENCE_S:
            self._fault = f"{self.node} gave no sign of life for {silent_s:.0f} s"
            self._transport.close()

    def dial(self, port: int) -> Channel:
        """A connection to a port of the node's own 127.0.0.1.

        Raises:
            HungUpError: nobody listens there.
            UnreachableError: the line is dead, or gave no answer.
            RemoteError: the node forwards nothing (`tunnel-refused`).
        """
        try:
            channel = self._transport.open_channel("direct-tcpip", (HOME, port), (HOME, 0), timeout=_ANSWER_S)
        except ChannelException as error:
            if error.code == _PROHIBITED:
                raise refusal(self.node, "no connection") from error
            raise HungUpError(f"{self.node}: nobody listens on its port {port}") from error
        except Exception as error:  # what a server sends can break the library in its own ways
            if self._transport.is_active() and "Timeout" not in str(error):
                # another thread's refusal took the reason away
                raise HungUpError(f"{self.node}: no connection to its port {port}") from error
            raise UnreachableError(f"{self.node}: {self.fault or 'no answer'}") from error
        return channel

    def listen(self, arrived: Arrival) -> int:
        """Makes a fresh port on the node's 127.0.0.1 and gives its number; once a line.

        `arrived` is called in a thread of its own for each connection that was made on the node itself.

        Raises:
            UnreachableError: the line is dead, or gave no answer.
            RemoteError: the node forwards no port (`tunnel-refused`).
        """

        def take(channel: Channel, origin: tuple[str, int], _: tuple[str, int]) -> None:
            # in the transport's own thread, which must not wait for itself
            threading.Thread(
                target=arrived, args=(channel, origin[0]), daemon=True, name=f"tunnel-{self.node}"
            ).start()

        if not self._requests.acquire(timeout=_ANSWER_S):
            raise UnreachableError(f"{self.node}: no answer")
        late = threading.Timer(_ANSWER_S, self._transport.close)
        late.daemon = True
        late.start()
        try:
            return int(self._transport.request_port_forward(HOME, 0, take))
        except Exception as error:
            if not self._transport.is_active():
                raise UnreachableError(f"{self.node}: {self.fault or 'no answer'}") from error
            raise refusal(self.node, "no port") from error
        finally:
            late.cancel()
            self._requests.release()

    def close(self) -> None:
        """Ends it, with all that goes through it; its threads are gone when this returns, or soon after."""
        with self._lock:
            self._look()  # what killed it before stays said
            self._closing.set()
        self._transport.close()
        self._dialled.close()
        for thread in (self._transport, self._asker):
            if thread is not threading.current_thread():
                thread.join(_CLOSE_S)


class Lines:
    """The lines to one node that tunnels share; made when they are needed, 8 channels each.

    Args:
        node: whose they are.
        dial: makes one more authenticated connection to it; raises RemoteError.
    """

    def __init__(self, node: str, dial: Callable[[], Dialled]) -> None:
        self.node = node
        self._dial = dial
        self._lock = threading.Lock()
        self._growing = threading.Lock()  # held while a connection is made, which may take long
        self._shared: tuple[Line, ...] = ()  # those of `_all` that `dial` uses
        self._all: tuple[Line, ...] = ()
        self._mirror: tuple[Line, int | None] | None = None
        self._is_closed = False

    def fresh(self) -> Line:
        """A line for one use alone; whoever asked closes it, or all are closed together."""
        line = Line(self.node, self._dial())
        with self._lock:
            if not self._is_closed:
                self._all = (*(other for other in self._all if other.is_open), line)
                return line
        line.close()
        raise RemoteError(f"{self.node}: the way to it was closed (got a request, expected none)")

    def dial(self, port: int) -> tuple[Line, Channel]:
        """A connection to a port of the node's own 127.0.0.1, and the line it takes; `free` gives it back.

        Raises:
            RemoteError: as `Line.dial`.
        """
        line = self._take()
        if line is None:
            with self._growing:
                line = self._take()
                if line is None:
                    line = self._grow(taken=1)
        try:
            return line, line.dial(port)
        except RemoteError:
            self.free(line)
            raise

    def _take(self) -> Line | None:
        with self._lock:
            for line in self._shared:
                if line.taken < CHANNELS and line.is_open:
                    line.taken += 1
                    return line
            return None

    def _grow(self, taken: int) -> Line:
        line = self.fresh()
        line.taken = taken
        with self._lock:
            self._shared = (*(other for other in self._shared if other.is_open), line)
        return line

    def free(self, line: Line) -> None:
        """A channel of that line is not used any more."""
        with self._lock:
            line.taken -= 1

    def mirror(self) -> int | None:
        """A port on the node that answers all it is sent, up to the end, with the SHA-256 of that.

        None if the node forwards no port to us; it may still let connections out.

        Raises:
            UnreachableError: no line can be had.
        """
        with self._growing:
            if self._mirror is None or not self._mirror[0].is_open:
                line = self._grow(taken=0)
                self._mirror = (line, _listen(line))
            return self._mirror[1]

    def close(self) -> None:
        """Ends every line, for good."""
        self._is_closed = True
        with self._lock:
            lines = self._all
        for line in lines:
            line.close()


def _listen(line: Line) -> int | None:
    try:
        return line.listen(_reflect)
    except RemoteError as error:
        if error.label is Label.TUNNEL_REFUSED:
            return None
        raise


def _reflect(channel: Channel, _: str) -> None:
    """Answers a nonce with its digest; whatever is longer than one, or slow, with nothing."""
    channel.settimeout(_ANSWER_S)
    with suppress(OSError, EOFError, SSHException):
        said = b""
        while len(said) <= NONCE_BYTES and (piece := channel.recv(NONCE_BYTES)):
            said += piece
        if len(said) == NONCE_BYTES:
            channel.sendall(hashlib.sha256(said).digest())
    channel.close()


def refusal(node: str, what: str) -> RemoteError:
    """What a node says that lets no tunnel pass, and what can be done."""
    expected = "`AllowTcpForwarding yes`, and nothing in PermitOpen or PermitListen, in its sshd_config"
    way_out = "allow it there, give every node an `address` and say `transport: direct`, or use one node"
    return RemoteError(
        f"{node}: its sshd forwards {what} for tunnels (got a refusal, expected {expected}); {way_out}",
        Label.TUNNEL_REFUSED,
    )
