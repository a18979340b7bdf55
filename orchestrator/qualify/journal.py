"""Writing the journal: every event appended to the stream and told to whoever watches.

Nodes are worked on from several threads, and what they do is journalled from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from evidence.event import Event
from evidence.stream import Stream
from orchestrator.redact import Secrets


class Observer(Protocol):
    """Who watches a lane: a terminal, a log, nobody."""

    def event(self, event: Event) -> None:
        """A record was appended to the stream."""
        ...

    def progress(self, step: str, launch: str, versions: Mapping[str, tuple[int, float]]) -> None:
        """Where each role of a running launch stands: role -> (updates made, loss that the last one read)."""
        ...

    def note(self, text: str) -> None:
        """Something a person should know that is no event."""
        ...


class Guarded:
    """An observer around one: if that cannot be written to any more, it falls silent and the lane goes on."""

    def __init__(self, observer: Observer) -> None:
        self._observer: Observer | None = observer

    def event(self, event: Event) -> None:
        """Forwards."""
        self._tell(lambda observer: observer.event(event))

    def progress(self, step: str, launch: str, versions: Mapping[str, tuple[int, float]]) -> None:
        """Forwards."""
        self._tell(lambda observer: observer.progress(step, launch, versions))

    def note(self, text: str) -> None:
        """Forwards."""
        self._tell(lambda observer: observer.note(text))

    def _tell(self, say: Callable[[Observer], None]) -> None:
        if self._observer is None:
            return
        try:
            say(self._observer)
        except OSError:
            self._observer = None


class Journal:
    """The stream of a run, and who watches it.

    Attributes:
        stream: where events go.
        observer: who is told.
        secrets: what no event may hold.
    """

    def __init__(self, stream: Stream, observer: Observer, secrets: Secrets) -> None:
        self.stream = stream
        self.observer = observer
        self.secrets = secrets
        self._is_closed = False

    def emit(self, kind: str, subject: str, data: Mapping[str, object], *, durable: bool = True) -> Event:
        """Appends an event and tells the observer.

        Args:
            kind: its type, less the `orch.` that all have.
            subject: what it is about.
            data: of it.
            durable: whether a resumed run depends on it, so that it has to outlast a crash of this machine.
        """
        event = self.stream.append(f"orch.{kind}", subject, self.secrets.json(data), durable=durable)
        self.observer.event(event)
        return event

    def of_node(self, kind: str, data: Mapping[str, object]) -> None:
        """Takes what was done on a node (`remote.put` and the like), and says aloud what a person waits for.

        Work on a node that did not answer in time may end after the journal was closed: it is not heard.
        """
        if self._is_closed:
            return
        node = str(data.get("node", ""))
        self.emit(kind, node, data, durable=False)
        if kind in ("remote.unreachable", "remote.reachable", "remote.lost"):
            why = str(data.get("what") or "")
            self.observer.note(f"{node}: {kind.removeprefix('remote.')}" + (f" ({why})" if why else ""))

    def close_to_nodes(self) -> None:
        """From here on nothing that nodes do is journalled: the lane is being judged."""
        self._is_closed = True
