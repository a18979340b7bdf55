"""Launches as steps ask for them: bindings and files made from a few words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.build.binding import Binding, Mode
from orchestrator.qualify.launch import FROM_PLAN, OWN, Launch, PlacedFile, Start
from orchestrator.qualify.session import Session

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Wanted:
    """What a step wants to have started.

    Attributes:
        name: of the launch inside its attempt.
        epoch: membership epoch bound in.
        target: version to reach; in mode `evaluate`, the version that is evaluated.
        mode: `train` or `evaluate`.
        publish_at: a version to publish besides the target; 0 for none.
        restore: name under `restore/` -> bundle file; None starts fresh.
        roles: those that start; None for all of them.
        programs: role -> `other` where a control wants another plan's program.
        samples: role -> bundle file that lies there instead of the plan's own words.
        port: of the root; None for a free one.
    """

    name: str
    epoch: int
    target: int
    mode: Mode = "train"
    publish_at: int = 0
    restore: Mapping[str, str] | None = None
    roles: tuple[str, ...] | None = None
    programs: Mapping[str, str] = field(default_factory=dict)
    samples: Mapping[str, str] = field(default_factory=dict)
    port: int | None = None


def compose(session: Session, wanted: Wanted) -> Launch:
    """A launch ready to begin.

    Raises:
        RemoteError: the root's node has no free port.
    """
    restored = tuple(
        PlacedFile(f"restore/{name}", _digest(session, source), source)
        for name, source in sorted((wanted.restore or {}).items())
    )
    port = wanted.port
    if port is None:
        port = session.free_port(session.role_names[0]) if len(session.role_names) > 1 else 0
    roles = session.role_names if wanted.roles is None else wanted.roles
    return Launch(wanted.name, tuple(_start(session, wanted, role, port, restored) for role in roles))


def _start(session: Session, wanted: Wanted, role: str, port: int, restored: tuple[PlacedFile, ...]) -> Start:
    which = wanted.programs.get(role, OWN)
    own_words = hashlib.sha256(session.samples(role)).hexdigest()
    source = wanted.samples.get(role, FROM_PLAN)
    words = own_words if source == FROM_PLAN else _digest(session, source)
    deadlines = session.lane.deadlines
    binding = Binding(
        plan=session.plan_of(which).digest,
        run_id=session.run_id,
        epoch=wanted.epoch,
        mode=wanted.mode,
        resume=wanted.restore is not None,
        restore_sha256=next((file.sha256 for file in restored if file.name == "restore/manifest.json"), None),
        target=wanted.target,
        publish_at=wanted.publish_at,
        data_sha256=own_words,
        address=LOOPBACK,
        port=port,
        connect_ms=deadlines.connect_ms,
        round_ms=deadlines.round_ms,
        run_ms=deadlines.run_ms,
    )
    return Start(role, which, binding, (PlacedFile("samples", words, source), *restored))


def _digest(session: Session, source: str) -> str:
    return hashlib.sha256((session.bundle / source).read_bytes()).hexdigest()
