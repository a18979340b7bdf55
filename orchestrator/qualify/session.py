"""What an acting step works with: the plan, the nodes, the journal, and the limits that stop a lane.

Knows where things are; `orchestrator.qualify.launcher` starts roles and waits for them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from evidence.event import Event
from evidence.stream import Stream
from orchestrator.build.compile import Program
from orchestrator.qualify.crew import Crew
from orchestrator.qualify.journal import Journal, Observer
from orchestrator.qualify.limits import Limits
from orchestrator.qualify.reach import Reached
from orchestrator.qualify.view import View
from orchestrator.qualify.wires import Wires
from orchestrator.redact import MARK, Secrets
from orchestrator.remote.base import Remote, RemoteError

BEAT_S = 30.0  # a lock that is left behind counts for some minutes
LISTEN_PORTS = range(20000, 32768)


class AttemptLostError(Exception):
    """This attempt cannot go on (its roles are gone, a port was taken): the step begins anew.

    Attributes:
        counts: whether this is one of the few tries that a step has; not if the controller was to blame.
    """

    def __init__(self, reason: str, *, counts: bool = True) -> None:
        super().__init__(reason)
        self.counts = counts


@dataclass(frozen=True)
class Attempt:
    """One try at a step. `folder` is in the bundle."""

    step: str
    number: int
    folder: Path


@dataclass
class Session:
    """One lane run in progress.

    Attributes:
        bundle: its folder.
        view: the same folder as judges see it: what was declared, and the plan.
        journal: what was done, and who watches.
        content_root: where role programs' sources are.
        reached: the nodes, with the run's own folder on each.
        limits: what may end the lane.
        crew: who works on the nodes.
        programs: (role, `own` or `other`) -> program; filled by the build step.
        emulators: (role, target) -> emulator on the role's node, for programs of another instruction set.
        wires: tunnels that are open.
    """

    bundle: Path
    view: View
    journal: Journal
    content_root: Path
    cache: Path | None
    reached: Reached
    limits: Limits
    crew: Crew
    keep: bool = False
    programs: dict[tuple[str, str], Program] = field(default_factory=dict)
    emulators: dict[tuple[str, str], str] = field(default_factory=dict)
    wires: Wires = field(default_factory=Wires)
    _beaten: float = field(default_factory=time.monotonic)

    @property
    def run_id(self) -> str:
        """UUIDv7 of this very run."""
        return self.stream.source

    @property
    def stream(self) -> Stream:
        """The journal's stream."""
        return self.journal.stream

    @property
    def observer(self) -> Observer:
        """Who watches."""
        return self.journal.observer

    @property
    def secrets(self) -> Secrets:
        """What no file of the bundle may hold."""
        return self.journal.secrets

    @property
    def nodes(self) -> Mapping[str, Remote]:
        """Node name -> remote."""
        return self.reached.nodes

    @property
    def roots(self) -> Mapping[str, PurePosixPath]:
        """Node name -> the run's own folder there."""
        return self.reached.roots

    @property
    def placement(self) -> Mapping[str, str]:
        """Role -> node name."""
        return self.view.wiring.placement

    def emit(self, kind: str, subject: str, data: Mapping[str, object]) -> Event:
        """Appends to the journal and tells the observer."""
        return self.journal.emit(kind, subject, data)

    def withheld(self, step: str, files: Mapping[Path, bytes]) -> Mapping[Path, bytes]:
        """Files as the bundle may hold them; which of them held a secret is journalled, not what it was."""
        clean, held = self.secrets.files(files)
        if held:
            names = sorted(self.relative(path) for path in held)
            self.emit("redacted", step, {"step": step, "files": names})
            self.observer.note(
                f"a secret of this machine was written by a role: {MARK} stands in {', '.join(names)}"
            )
        return clean

    def beat(self) -> None:
        """Tells the nodes' locks, now and then, that this run goes on."""
        if time.monotonic() - self._beaten < BEAT_S:
            return
        self._beaten = time.monotonic()
        bases = self.reached.bases.items()
        self.crew.each([(name, partial(self.nodes[name].beat, base, self.run_id)) for name, base in bases])

    def node(self, role: str) -> Remote:
        """The node that a role runs on."""
        return self.nodes[self.placement[role]]

    def relative(self, path: Path) -> str:
        """A path in the bundle as its manifest names it."""
        return path.relative_to(self.bundle).as_posix()

    def free_ports(self, roles: Sequence[str]) -> dict[str, int]:
        """Role -> a port of its own on its node, in one look at each of them.

        No socket is bound to it, and it is outside the kernel's own range.

        Raises:
            RemoteError: a node has too few, or refuses.
            StopLaneError: the lane is to end now.
        """
        by_node: dict[str, list[str]] = {}
        for role in roles:
            by_node.setdefault(self.placement[role], []).append(role)
        looks = [(name, partial(_free, self.nodes[name])) for name in by_node]
        ports: dict[str, int] = {}
        for (name, asking), free in zip(by_node.items(), self.crew.each(looks), strict=True):
            if len(free) < len(asking):
                raise RemoteError(
                    f"{name}: no port is free (got {len(free)} of {len(LISTEN_PORTS)}"
                    f" from {LISTEN_PORTS.start} on, expected {len(asking)})"
                )
            # spreads runs over ports; nothing secret depends on it
            ports |= zip(asking, random.sample(free, len(asking)), strict=True)
        return ports


def _free(node: Remote) -> list[int]:
    """Ports of a node that a role may listen on."""
    taken, ephemeral = node.used_ports(), node.ephemeral_ports()
    return [port for port in LISTEN_PORTS if port not in taken and port not in ephemeral]
