"""The way to every node of a rental, all at once; what is wrong with each of them is said together.

Knows what stands around a node: that which asks again, and that which journals. Knows nothing of what is done
there.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import PurePosixPath

from orchestrator.remote.base import Remote, RemoteError, UnreachableError
from orchestrator.remote.connect import Connected
from orchestrator.remote.record import Recorded
from orchestrator.remote.retry import Journal, Retrying, Wait
from orchestrator.remote.ssh import Ssh
from orchestrator.spec.pods import PodsSpec

_AT_ONCE = 48
_AT_ONE_DOOR = 8
_LOOK_S = 0.05
_NOISE = 2000


class NodesError(RemoteError):
    """Several nodes cannot be worked on; one line for each, in their order.

    Attributes:
        rows: node -> what is wrong with it.
    """

    def __init__(self, rows: Mapping[str, RemoteError]) -> None:
        super().__init__("\n".join(str(error) for error in rows.values()))
        self.rows = rows
        if all(isinstance(error, UnreachableError) for error in rows.values()):
            self.exit_code = UnreachableError.exit_code


def open_nodes(pods: PodsSpec, *, journal: Journal, wait: Wait, grace_s: float) -> dict[str, Remote]:
    """Connects to every node; each is retried and recorded from then on.

    A node that cannot be reached at the beginning has the time that one connection may take, not its grace: a
    wrong port is said soon.

    Args:
        pods: the nodes.
        journal: gets `remote.connected` for every connection that a shell answers on, and what is done there
            later; from any thread.
        wait: sleeps, and may raise to end it all; see `Retrying`.
        grace_s: seconds without an answer after which a node counts as lost.

    Raises:
        RemoteError: what one node says.
        NodesError: what several say. No connection is left.
    """
    ways = {name: Ssh(node, connected=_noting(name, journal)) for name, node in pods.nodes.items()}
    failed = _reach(ways, wait)
    if failed:
        for way in ways.values():
            way.close()
        raise next(iter(failed.values())) if len(failed) == 1 else NodesError(failed)
    return {
        name: Recorded(Retrying(way, journal=journal, wait=wait, grace_s=grace_s), journal)
        for name, way in ways.items()
    }


def _noting(name: str, journal: Journal) -> Callable[[Connected, bytes], None]:
    def note(connected: Connected, noise: bytes) -> None:
        """Notes a connection, the first one or a later one, and what was said there before we were."""
        key = connected.host_key
        data = {"node": name, "host_key": key.fingerprint, "host_key_type": key.type}
        said = noise.decode("utf-8", "backslashreplace")[:_NOISE]
        journal("remote.connected", {**data, "reports": list(connected.reports), "noise": said})

    return note


class _Arrivals:
    """Threads that connect, one for each node, and what they say in the end."""

    def __init__(self, ways: Mapping[str, Ssh]) -> None:
        self._answers: queue.SimpleQueue[tuple[str, Exception | None]] = queue.SimpleQueue()
        self._places = threading.BoundedSemaphore(_AT_ONCE)
        # nodes may share a host, whose login shells would hold each other up
        self._doors = {way.door: threading.BoundedSemaphore(_AT_ONE_DOOR) for way in ways.values()}
        self._is_over = threading.Event()
        for name, way in ways.items():
            threading.Thread(target=self._reach, args=(way,), daemon=True, name=f"open-{name}").start()

    def _reach(self, way: Ssh) -> None:
        said = None
        with self._doors[way.door], self._places:
            try:
                if not self._is_over.is_set():
                    way.resolve(PurePosixPath("/"))  # the shell's own greeting says it
            except Exception as error:  # noqa: BLE001  # it is raised where it is waited for
                said = error
        self._answers.put((way.name, said))
        if self._is_over.is_set():
            way.close()

    def next(self) -> dict[str, Exception | None]:
        """One more node, and what went wrong there; nothing if none has come soon."""
        with suppress(queue.Empty):
            return dict([self._answers.get(timeout=_LOOK_S)])
        return {}

    def leave(self) -> None:
        """Waits for nobody more; a connection that is still being made is closed once it is there."""
        self._is_over.set()


def _reach(ways: Mapping[str, Ssh], wait: Wait) -> dict[str, RemoteError]:
    """Connects to all, and gives what is wrong with those that it did not come to, in their order."""
    arrivals = _Arrivals(ways)
    found: dict[str, Exception | None] = {}
    try:
        while len(found) < len(ways):
            found |= arrivals.next()
            wait(0)
    except BaseException:
        arrivals.leave()
        for name in found:
            ways[name].close()
        raise
    failed = {}
    for name in ways:
        error = found[name]
        if isinstance(error, RemoteError):
            failed[name] = error
        elif error is not None:  # a bug of ours
            raise error
    return failed
