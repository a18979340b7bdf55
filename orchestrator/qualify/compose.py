"""Launches as steps ask for them: bindings and files made from a few words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from orchestrator.build.binding import Binding, Mode
from orchestrator.qualify.launch import FROM_PLAN, OWN, Launch, PlacedFile, Start
from orchestrator.qualify.session import Session

LOOPBACK = "127.0.0.1"


def compose(
    session: Session,
    name: str,
    *,
    epoch: int,
    target: int,
    mode: Mode = "train",
    publish_at: int = 0,
    restore: Mapping[str, str] | None = None,
    roles: Iterable[str] | None = None,
    programs: Mapping[str, str] | None = None,
    samples: Mapping[str, str] | None = None,
    port: int | None = None,
) -> Launch:
    """A launch ready to begin.

    Args:
        session: of the lane.
        name: of the launch inside its attempt.
        epoch: membership epoch bound in.
        target: version to reach; in mode `evaluate`, the version that is evaluated.
        mode: `train` or `evaluate`.
        publish_at: a version to publish besides the target; 0 for none.
        restore: name under `restore/` -> bundle file; None starts fresh.
        roles: those that start; all of them by default.
        programs: role -> `other` where the control wants another plan's program.
        samples: role -> bundle file that lies there instead of the plan's own words.
        port: of the root; a free one by default.
    """
    root = session.planned.plan.roles[0].name
    alone = len(session.planned.plan.roles) == 1
    bound_port = 0 if alone else port if port is not None else session.free_port(root)
    placed = tuple(
        PlacedFile(f"restore/{each}", _digest(session, source), source)
        for each, source in sorted((restore or {}).items())
    )
    manifest = next((file.sha256 for file in placed if file.name == "restore/manifest.json"), None)
    starts = []
    for role in roles if roles is not None else (role.name for role in session.planned.plan.roles):
        own_words = hashlib.sha256(session.samples(role)).hexdigest()
        source = (samples or {}).get(role, FROM_PLAN)
        words = own_words if source == FROM_PLAN else _digest(session, source)
        deadlines = session.lane.deadlines
        which = (programs or {}).get(role, OWN)
        binding = Binding(
            plan=session.plan_of(which).digest,
            run_id=session.run_id,
            epoch=epoch,
            mode=mode,
            resume=restore is not None,
            restore_sha256=manifest,
            target=target,
            publish_at=publish_at,
            data_sha256=own_words,
            address=LOOPBACK,
            port=bound_port,
            connect_ms=deadlines.connect_ms,
            round_ms=deadlines.round_ms,
            run_ms=deadlines.run_ms,
        )
        files = (PlacedFile("samples", words, source), *placed)
        starts.append(Start(role, which, binding, files))
    return Launch(name, tuple(starts))


def _digest(session: Session, source: str) -> str:
    return hashlib.sha256((session.bundle / source).read_bytes()).hexdigest()
