"""What every Remote around a Remote has in common: each request goes through one place.

Knows the requests by name; must not know what is done about them: that is its children's to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import TypeVar

from orchestrator.remote.base import (
    MOST_BYTES,
    Clock,
    Completed,
    Job,
    JobState,
    NodeFacts,
    Remote,
    Room,
    Tunnel,
)

T = TypeVar("T")


def bare(remote: Remote) -> Remote:
    """The Remote that all others are around."""
    while isinstance(remote, Around):
        remote = remote.inner
    return remote


class Around(ABC):
    """A Remote around another one.

    Attributes:
        name: the node's.
        inner: the next one inside.
    """

    def __init__(self, inner: Remote) -> None:
        self.inner = inner
        self.name = inner.name

    @abstractmethod
    def _ask(self, what: str, request: Callable[[], T]) -> T:
        """Makes one request, named as the Remote's method; a child says what else happens."""

    def facts(self) -> NodeFacts:
        """As `Remote.facts`."""
        return self._ask("facts", self.inner.facts)

    def run(self, argv: Sequence[str], *, deadline_s: float) -> Completed:
        """As `Remote.run`."""
        return self._ask("run", partial(self.inner.run, argv, deadline_s=deadline_s))

    def make_root(self, root: PurePosixPath, owner: str) -> None:
        """As `Remote.make_root`."""
        return self._ask("make_root", partial(self.inner.make_root, root, owner))

    def put(self, data: bytes, path: PurePosixPath, *, executable: bool = False) -> str:
        """As `Remote.put`."""
        return self._ask("put", partial(self.inner.put, data, path, executable=executable))

    def get(self, path: PurePosixPath, *, most: int = MOST_BYTES) -> bytes | None:
        """As `Remote.get`."""
        return self._ask("get", partial(self.inner.get, path, most=most))

    def tail(self, path: PurePosixPath, size: int) -> bytes:
        """As `Remote.tail`."""
        return self._ask("tail", partial(self.inner.tail, path, size))

    def list(self, folder: PurePosixPath) -> tuple[str, ...]:
        """As `Remote.list`."""
        return self._ask("list", partial(self.inner.list, folder))

    def start(self, job: Job) -> None:
        """As `Remote.start`."""
        return self._ask("start", partial(self.inner.start, job))

    def prevent(self, job: Job) -> None:
        """As `Remote.prevent`."""
        return self._ask("prevent", partial(self.inner.prevent, job))

    def inspect(self, job: Job) -> JobState:
        """As `Remote.inspect`."""
        return self._ask("inspect", partial(self.inner.inspect, job))

    def signal(self, job: Job, number: int) -> None:
        """As `Remote.signal`."""
        return self._ask("signal", partial(self.inner.signal, job, number))

    def end(self, folder: PurePosixPath) -> None:
        """As `Remote.end`."""
        return self._ask("end", partial(self.inner.end, folder))

    def processes_under(self, folder: PurePosixPath) -> tuple[int, ...]:
        """As `Remote.processes_under`."""
        return self._ask("processes_under", partial(self.inner.processes_under, folder))

    def used_ports(self) -> frozenset[int]:
        """As `Remote.used_ports`."""
        return self._ask("used_ports", self.inner.used_ports)

    def ephemeral_ports(self) -> range:
        """As `Remote.ephemeral_ports`."""
        return self._ask("ephemeral_ports", self.inner.ephemeral_ports)

    def remove(self, folder: PurePosixPath) -> None:
        """As `Remote.remove`."""
        return self._ask("remove", partial(self.inner.remove, folder))

    def resolve(self, root: PurePosixPath) -> PurePosixPath:
        """As `Remote.resolve`."""
        return self._ask("resolve", partial(self.inner.resolve, root))

    def room(self, path: PurePosixPath) -> Room:
        """As `Remote.room`."""
        return self._ask("room", partial(self.inner.room, path))

    def clock(self) -> Clock:
        """As `Remote.clock`."""
        return self._ask("clock", self.inner.clock)

    def missing_tools(self) -> tuple[str, ...]:
        """As `Remote.missing_tools`."""
        return self._ask("missing_tools", self.inner.missing_tools)

    def lock(self, base: PurePosixPath, run_id: str, owner: str) -> str:
        """As `Remote.lock`."""
        return self._ask("lock", partial(self.inner.lock, base, run_id, owner))

    def lock_holder(self, base: PurePosixPath) -> str:
        """As `Remote.lock_holder`."""
        return self._ask("lock_holder", partial(self.inner.lock_holder, base))

    def beat(self, base: PurePosixPath, run_id: str) -> None:
        """As `Remote.beat`."""
        return self._ask("beat", partial(self.inner.beat, base, run_id))

    def unlock(self, base: PurePosixPath, run_id: str) -> None:
        """As `Remote.unlock`."""
        return self._ask("unlock", partial(self.inner.unlock, base, run_id))

    def tunnel(self, to: Remote, port: int) -> Tunnel:
        """As `Remote.tunnel`."""
        return self._ask("tunnel", partial(self.inner.tunnel, bare(to), port))

    def close(self) -> None:
        """As `Remote.close`."""
        self.inner.close()
