"""What an acting step works with: the plan, the nodes, the stream, and the limits that stop a lane.

Knows where things are and when to stop; `orchestrator.qualify.launcher` starts roles and waits for them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol

from evidence.event import Event
from evidence.stream import Stream
from orchestrator.build.compile import Program
from orchestrator.errors import Label
from orchestrator.qualify.view import View
from orchestrator.redact import Secrets
from orchestrator.remote.base import Remote, RemoteError

LISTEN_PORTS = range(20000, 32768)


class AttemptLostError(Exception):
    """This attempt cannot go on (its roles are gone, a port was taken): the step begins anew.

    Attributes:
        counts: whether this is one of the few tries that a step has; not if the controller was to blame.
    """

    def __init__(self, reason: str, *, counts: bool = True) -> None:
        super().__init__(reason)
        self.counts = counts


class StopLaneError(Exception):
    """A limit or a person ended the lane: nothing more is started, what is there is collected and sealed."""

    def __init__(self, reason: str, label: Label | None = None) -> None:
        super().__init__(f"{label}: {reason}" if label else reason)


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


@dataclass(frozen=True)
class Attempt:
    """One try at a step. `folder` is in the bundle."""

    step: str
    number: int
    folder: Path


@dataclass
class Limits:
    """What ends a lane from outside its steps.

    Attributes:
        deadline: of `time.monotonic()`, or None.
        duration_s: the limit as declared, for the message.
        stop_requested: set by a signal handler; the reason.
    """

    deadline: float | None
    duration_s: float | None
    stop_requested: str = ""

    def check(self) -> None:
        """Raises StopLaneError if the lane is to end now."""
        if self.stop_requested:
            raise StopLaneError(self.stop_requested)
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise StopLaneError(
                f"the lane's duration limit has passed (got more than {self.duration_s:g} s)",
                Label.LIMIT_DURATION,
            )


@dataclass
class Session:
    """One lane run in progress.

    Attributes:
        bundle: its folder.
        view: the same folder as judges see it: what was declared, and the plan.
        stream: its journal.
        content_root: where role programs' sources are.
        nodes: node name -> remote.
        placement: role -> node name.
        roots: node name -> the owned folder of this run there.
        programs: (role, `own` or `other`) -> program; filled by the build step.
        emulators: role -> emulator on its node, for roles under another instruction set.
    """

    bundle: Path
    view: View
    stream: Stream
    observer: Observer
    content_root: Path
    cache: Path | None
    nodes: Mapping[str, Remote]
    placement: Mapping[str, str]
    roots: Mapping[str, PurePosixPath]
    owner: str
    limits: Limits
    keep: bool = False
    secrets: Secrets = field(default_factory=Secrets.here)
    programs: dict[tuple[str, str], Program] = field(default_factory=dict)
    emulators: dict[str, str] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        """UUIDv7 of this very run."""
        return self.stream.source

    def emit(self, kind: str, subject: str, data: Mapping[str, object]) -> Event:
        """Appends to the journal and tells the observer."""
        event = self.stream.append(f"orch.{kind}", subject, self.secrets.json(data))
        self.observer.event(event)
        return event

    def withheld(self, step: str, files: Mapping[Path, bytes]) -> Mapping[Path, bytes]:
        """Files as the bundle may hold them; which of them held a secret is journalled, not what it was."""
        clean, held = self.secrets.files(files)
        if held:
            self.emit("redacted", step, {"step": step, "files": sorted(self.relative(path) for path in held)})
        return clean

    def node(self, role: str) -> Remote:
        """The node that a role runs on."""
        return self.nodes[self.placement[role]]

    def relative(self, path: Path) -> str:
        """A path in the bundle as its manifest names it."""
        return path.relative_to(self.bundle).as_posix()

    def free_port(self, role: str) -> int:
        """A port on the role's node that no socket is bound to, outside the kernel's own range.

        Raises:
            RemoteError: there is none.
        """
        node = self.node(role)
        taken = node.used_ports()
        ephemeral = node.ephemeral_ports()
        free = [port for port in LISTEN_PORTS if port not in taken and port not in ephemeral]
        if not free:
            raise RemoteError(
                f"{node.name}: no port is free (got 0 of {len(LISTEN_PORTS)}"
                f" from {LISTEN_PORTS.start} on, expected 1)"
            )
        return random.choice(free)  # noqa: S311  # spreads runs over ports; nothing secret depends on it
