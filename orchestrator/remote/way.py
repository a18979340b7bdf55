"""The way to one node: its connection and its shell, made when they are needed and anew when they broke.

Knows that a request that broke off leaves a shell of which nobody knows where it is. Must not know what is
asked of the node.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Final, TypeVar

import paramiko

from orchestrator.remote.base import RemoteError, UnreachableError
from orchestrator.remote.connect import Connected, connect
from orchestrator.remote.line import Lines
from orchestrator.remote.shell import MOST_SAID, Answer, DeadlineError, Hello, Process, Shell, quoted
from orchestrator.remote.ssh_config import Settings, settings_for
from orchestrator.spec.pods import Node

ANSWER_S: Final = 60.0

_REFUSED: Final = 1
_CLOSE_S: Final = 1.0

T = TypeVar("T")


class Way:
    """A connection with a shell on it, for one request at a time, and lines beside it.

    Attributes:
        name: the node's.
        lines: further connections, for tunnels.
    """

    def __init__(
        self, node: Node, *, connect_s: float, connected: Callable[[Connected, bytes], None]
    ) -> None:
        self.name = node.name
        self.lines = Lines(self.name, self._connect)
        self._node = node
        self._connect_s = connect_s
        self._connected = connected
        self._lock = threading.RLock()
        self._open: Connected | None = None
        self._shell: Shell | None = None
        self._former: tuple[Process, ...] = ()  # shells that were let go of, and may not know
        self._is_closed = False

    @cached_property
    def _settings(self) -> Settings:
        return settings_for(self._node.host, self._node.user, self._node.port)

    def _connect(self) -> Connected:
        return connect(self._node, self._settings, deadline_s=self._connect_s)

    def transport(self) -> paramiko.Transport:
        """The connection that the shell is on; made if there is none.

        Raises:
            UnreachableError: there is no way now.
        """
        return self._opened().transport

    def _opened(self) -> Connected:
        with self._lock:
            if self._open is None or not self._open.transport.is_active():
                self._drop()
                self._open = self._connect()
            if self._is_closed:  # meanwhile, or before
                self._open.close()
                raise RemoteError(f"{self.name}: the way to it was closed (got a request, expected none)")
            return self._open

    def _answering(self) -> Shell:
        opened = self._opened()
        if self._shell is None:
            self._shell = Shell(self.name, opened.transport, deadline_s=self._connect_s)
            self._connected(opened, self._shell.noise)
            self._relieve(self._shell)
        return self._shell

    def _relieve(self, shell: Shell) -> None:
        """Ends our own earlier shells there: behind a black hole they wait for hours, or still do things."""
        for process in self._former:
            shell.call("orch_relieve", *map(str, process), deadline_s=self._connect_s)
        self._former = ()

    def _drop(self) -> None:
        """Lets go of a shell that is of no use, and of the connection if that is gone too."""
        if self._shell is not None:
            self._former = (*self._former, self._shell.hello.process)
            self._shell.close()
            self._shell = None
        if self._open is not None and not self._open.transport.is_active():
            self._open.close()
            self._open = None

    def use(self, what: str, deadline_s: float, request: Callable[[Shell], T]) -> T:
        """Makes one request; whatever breaks it off costs the shell.

        Raises:
            UnreachableError: it reached nobody, or had no answer in time.
        """
        with self._lock:
            try:
                return request(self._answering())
            except DeadlineError as error:
                self._drop()
                message = f"{self.name}: the node is there and did not {what} in time"
                raise UnreachableError(f"{message} (got nothing within {deadline_s:.0f} s)") from error
            except BaseException:
                self._drop()
                raise

    def hello(self) -> Hello:
        """What the shell says of itself."""
        return self.use("say what it is", self._connect_s, lambda shell: shell.hello)

    def ask(
        self,
        what: str,
        function: str,
        *words: str,
        deadline_s: float = ANSWER_S,
        data: Iterable[bytes] = (),
        most: int = MOST_SAID,
    ) -> Answer:
        """Calls a function on the node; words are passed as they are.

        Raises:
            RemoteError: the node refuses, in its own words.
        """
        call = [quoted(word) for word in words]
        answer = self.use(
            what,
            deadline_s,
            lambda shell: shell.call(function, *call, deadline_s=deadline_s, data=data, most=most),
        )
        if answer.code == _REFUSED:
            raise RemoteError(f"{self.name}: cannot {what}: {answer.last_line or 'no reason was given'}")
        return answer

    def close(self) -> None:
        """Closes the connections, for good; what runs there goes on. Whoever waits for an answer gets none.

        A connection that is just being made is closed by whoever makes it: nobody waits for that here.
        """
        self._is_closed = True
        self.lines.close()
        if (opened := self._open) is not None:
            opened.close()
        if self._lock.acquire(timeout=_CLOSE_S):
            try:
                self._drop()
            finally:
                self._lock.release()
