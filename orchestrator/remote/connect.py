"""A connection to a node's SSH server: addresses, host key, login, and each way in which that fails.

Knows fabric, and what sshd, proxies and providers do. Never asks anybody anything. What runs over the
connection is for others.
"""

from __future__ import annotations

import logging
import random
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import fabric
import paramiko

from orchestrator.errors import Label
from orchestrator.remote.base import RemoteError, UnreachableError
from orchestrator.remote.host_keys import Expected, HostKey, Policy, UnexpectedKeyError, expected_of
from orchestrator.remote.keys import Login, login_of
from orchestrator.remote.proxy import ProxyCommand
from orchestrator.remote.ssh_config import Settings, settings_for, split_host
from orchestrator.spec.pods import Node
from orchestrator.spec.ssh_line import RUNPOD_PROXY

KEEPALIVE_S: Final = 15
# a stock sshd begins to drop connections that have not logged in at ten
_AT_ONCE: Final = 8
_SCAN_S: Final = 20.0
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 2.0
_QUICKACK: Final = getattr(socket, "TCP_QUICKACK", None)  # Linux has it
_LOOK: Final = "look at the provider's page: does it run, and are host and port still these?"
# a server with too many guests hangs up before it has said what it is; so does one that just ends
_PASSING: Final = ("protocol banner", "no existing session", "connection dropped", "connection lost")

logging.getLogger("paramiko").addHandler(logging.NullHandler())

_gates: defaultdict[tuple[str, int], threading.BoundedSemaphore] = defaultdict(
    lambda: threading.BoundedSemaphore(_AT_ONCE)
)


class _PassingError(Exception):
    """The server hung up before anybody was logged in: it may have too many guests just now."""


@dataclass(frozen=True)
class Connected:
    """A connection that somebody is logged in on.

    Attributes:
        transport: paramiko's.
        host_key: what the host showed.
        reports: what was done otherwise than asked, or not taken into account; for people.
    """

    transport: paramiko.Transport
    host_key: HostKey
    reports: tuple[str, ...]
    connections: tuple[fabric.Connection, ...]

    def close(self) -> None:
        """Closes it, and those that it goes through."""
        _close(self.connections)


def connect(node: Node, settings: Settings, *, deadline_s: float) -> Connected:
    """Connects to a node, as `settings_for` says how, and logs in.

    Raises:
        UnreachableError: there is no way to it now.
        RemoteError: `host-key-unknown`, `host-key-changed`, `auth-refused`, `shell-unusable`.
    """
    _demand_no_proxy(node.name, settings)
    login = login_of(node.name, node.key, settings)
    expected = expected_of(node.name, settings, node.host_key)
    attempt = _Attempt(node.name, settings, expected, time.monotonic() + deadline_s)
    reports = tuple(f"not taken into account: {what}" for what in settings.ignored)
    try:
        return attempt.connected(login, reports)
    except paramiko.AuthenticationException as error:
        older = login.older()
        if older is None:
            raise _auth_refused(node.name, settings, error) from error
        try:
            return attempt.connected(older, (*reports, "logged in with an older signature of the RSA key"))
        except paramiko.AuthenticationException:
            raise _auth_refused(node.name, settings, error) from error
    finally:
        login.close()


def scan_host_key(node: Node) -> HostKey:
    """Gives the key that a host shows, whatever it is; for whoever is about to pin it.

    Raises:
        UnreachableError: there is no way to it now.
        RemoteError: `shell-unusable`: it is a proxy that is of no use.
    """
    settings = settings_for(node.host, node.user, node.port)
    _demand_no_proxy(node.name, settings)
    nothing = Expected(node.name, frozenset())
    attempt = _Attempt(node.name, settings, nothing, time.monotonic() + _SCAN_S)
    try:
        attempt.repeated(Login())
    except UnexpectedKeyError as shown:
        return shown.key
    raise AssertionError("a host whose every key is refused let us in")


def _demand_no_proxy(name: str, settings: Settings) -> None:
    if settings.host.lower() == RUNPOD_PROXY:
        raise RemoteError(
            f"{name}: this is RunPod's proxy, which gives a terminal and nothing else (got {RUNPOD_PROXY},"
            " expected the pod's public address and TCP port); the pod's page shows them under `SSH over"
            " exposed TCP`, once port 22 is exposed",
            Label.SHELL_UNUSABLE,
        )


@dataclass(frozen=True)
class _Attempt:
    """Connecting to one host until a moment of `time.monotonic`."""

    name: str
    settings: Settings
    expected: Expected
    limit: float

    def connected(self, login: Login, reports: tuple[str, ...]) -> Connected:
        """Connects, asking for another type of host key where the first one is not the right one."""
        while True:
            try:
                connections = self.repeated(login)
            except UnexpectedKeyError as error:
                if not self.expected.may_show_another(error.key):
                    raise self.expected.refusal() from error
            except paramiko.ssh_exception.IncompatiblePeer as error:
                raise _incompatible(self.expected, error) from error
            else:
                transport: paramiko.Transport = connections[-1].client.get_transport()
                transport.set_keepalive(KEEPALIVE_S)
                key = transport.get_remote_server_key()
                return Connected(transport, HostKey(key.get_name(), key.fingerprint), reports, connections)

    def repeated(self, login: Login) -> tuple[fabric.Connection, ...]:
        """Tries again, after pauses with jitter, while the server hangs up on strangers."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return self._once(login)
            except _PassingError as error:
                if self.limit - time.monotonic() < pause_s:
                    got = f"got `{error}`, expected a greeting"
                    message = f"{self.name}: the server hangs up before anybody can log in ({got})"
                    raise UnreachableError(message, hint=_LOOK) from error
                time.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311  # jitter is no secret
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _once(self, login: Login) -> tuple[fabric.Connection, ...]:
        """One attempt; the connections that it takes, the last one to the node itself."""
        left_s = max(1.0, self.limit - time.monotonic())
        gate = _gates[self.settings.host, self.settings.port]
        if not gate.acquire(timeout=left_s):
            raise UnreachableError(f"{self.name}: too many connections to it are being made from here")
        chain: tuple[fabric.Connection, ...] = ()
        try:
            for jump in self.settings.jumps:
                through = settings_for(*split_host(jump))
                checked = expected_of(f"{self.name} through {through.host}", through, None, on_the_way=True)
                way_in = login_of(self.name, None, through)
                with _on_the_way(checked, through), _refusals(checked.name, through):
                    chain = (*chain, _connection(through, checked, way_in, chain, left_s))
                    _open(chain[-1])
            with _refusals(self.name, self.settings):
                chain = (*chain, _connection(self.settings, self.expected, login, chain, left_s))
                _open(chain[-1])
        except BaseException:
            _close(chain)
            raise
        finally:
            gate.release()
        return chain


def _connection(
    settings: Settings,
    expected: Expected,
    login: Login,
    chain: tuple[fabric.Connection, ...],
    deadline_s: float,
) -> fabric.Connection:
    arguments: dict[str, Any] = {
        "allow_agent": login.agent,
        "look_for_keys": False,
        "pkey": login.key,
        "key_filename": [str(path) for path in login.files],
        "banner_timeout": deadline_s,
        "auth_timeout": deadline_s,
        "channel_timeout": deadline_s,
        "disabled_algorithms": {"keys": expected.disabled(), "pubkeys": login.without},
        "transport_factory": _transport,
    }
    if settings.proxy_command:
        arguments["sock"] = ProxyCommand(settings)
    elif not chain:
        arguments["sock"] = _socket(settings, deadline_s)
    connection = fabric.Connection(
        settings.host,
        user=settings.user,
        port=settings.port,
        # no file of fabric's, invoke's or ssh's own: everything is said here
        config=fabric.Config(overrides={"load_ssh_configs": False}, lazy=True),
        gateway=chain[-1] if chain and not settings.proxy_command else None,
        forward_agent=False,
        connect_timeout=deadline_s,
        connect_kwargs=arguments,
    )
    connection.client.set_missing_host_key_policy(Policy(expected))
    return connection


def _transport(*args: Any, **options: Any) -> paramiko.Transport:
    """A transport that asks first for ciphers that need no hash beside them: the cheapest, on both sides."""
    made = paramiko.Transport(*args, **options)
    security = made.get_security_options()
    security.ciphers = tuple(sorted(security.ciphers, key=lambda cipher: "-gcm@" not in cipher))
    return made


def _open(connection: fabric.Connection) -> None:
    """Connects and logs in; what a server sends can break the library in ways that are none of its errors."""
    try:
        connection.open()
    except (UnexpectedKeyError, paramiko.SSHException, OSError, EOFError):
        raise
    except Exception as error:
        raise paramiko.SSHException(f"{type(error).__name__} {error}".strip()) from error


def _close(connections: tuple[fabric.Connection, ...]) -> None:
    for connection in reversed(connections):
        with suppress(Exception):  # whatever is left of it, it is not ours to use any more
            connection.client.close()
        with suppress(Exception):
            connection.connect_kwargs.get("sock", connection.client).close()


class _PromptSocket(socket.socket):
    """Acknowledges at once: a server holds its second small packet back until the first is acknowledged.

    Left to itself, the system takes 40 ms for that.
    """

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Takes what came, and says so."""
        data = super().recv(size, flags)
        if _QUICKACK is not None:
            with suppress(OSError):
                self.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        return data


def _socket(settings: Settings, deadline_s: float) -> socket.socket:
    """A connection to the first address that takes one, that is found out when it is cut."""
    plain = socket.create_connection((settings.host, settings.port), timeout=deadline_s)
    made = _PromptSocket(fileno=plain.detach())
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", KEEPALIVE_S), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * 2 * KEEPALIVE_S)
    return made


@contextmanager
def _on_the_way(expected: Expected, settings: Settings) -> Iterator[None]:
    """Says of a host on the way to a node what `_Attempt` says of the node."""
    try:
        yield
    except UnexpectedKeyError as error:
        expected.seen.append(error.key)
        raise expected.refusal() from error
    except paramiko.AuthenticationException as error:
        raise _auth_refused(expected.name, settings, error) from error
    except paramiko.ssh_exception.IncompatiblePeer as error:
        raise _incompatible(expected, error) from error


def _incompatible(expected: Expected, error: Exception) -> RemoteError:
    if "host key" in str(error) and expected.disabled():
        return expected.refusal()
    return RemoteError(
        f"{expected.name}: no algorithm that both sides know (got `{error}`, expected a newer server)"
    )


@contextmanager
def _refusals(name: str, settings: Settings) -> Iterator[None]:
    """Says in our words what the system and the libraries say; logins and host keys are the caller's."""
    try:
        yield
    except (UnexpectedKeyError, RemoteError, paramiko.ssh_exception.IncompatiblePeer):
        raise
    except paramiko.AuthenticationException as error:
        # a connection that broke off in the middle of a login says nothing of the key
        if any(words in str(error).lower() for words in ("timeout", "saw eof")):
            raise _PassingError(str(error)) from error
        raise
    except (ConnectionResetError, BrokenPipeError, EOFError) as error:
        raise _PassingError(str(error) or type(error).__name__) from error
    except (socket.gaierror, UnicodeError) as error:  # the latter where no name can be so
        got = getattr(error, "strerror", None) or error
        raise UnreachableError(
            f"{name}: its name means no address (got `{got}`, expected that of {settings.host})",
            hint="is it written as the provider shows it?",
        ) from error
    except OSError as error:
        raise UnreachableError(
            f"{name}: no connection to {settings.host}, port {settings.port}"
            f" (got `{error.strerror or error or type(error).__name__}`, expected an SSH server)",
            hint=_LOOK,
        ) from error
    except paramiko.SSHException as error:
        said = str(error)
        if "authentication" in said.lower():
            raise paramiko.AuthenticationException(said) from error
        if any(words in said.lower() for words in _PASSING) or not said:
            raise _PassingError(said) from error
        raise UnreachableError(
            f"{name}: no connection (got `{said}`, expected an SSH server)",
            hint=_LOOK,
        ) from error


def _auth_refused(name: str, settings: Settings, error: Exception) -> RemoteError:
    allowed = getattr(error, "allowed_types", None)
    wants = f"it takes {', '.join(allowed)}" if allowed else str(error).rstrip(".").lower()
    return RemoteError(
        f"{name}: the server does not let {settings.user} in (got `{wants}`, expected our key to be taken);"
        " name the key and user of this pod. A key added to an account at vast.ai reaches only instances made"
        " after it: attach it to this one. At RunPod it is read when the pod starts: restart the pod, or add"
        " it to ~/.ssh/authorized_keys in its web terminal",
        Label.AUTH_REFUSED,
    )
