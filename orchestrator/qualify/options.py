"""What a person asks of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.qualify.limits import Limit
from orchestrator.redact import Secrets
from orchestrator.spec.content import Content


@dataclass(frozen=True)
class RunOptions:
    """What a person asks for.

    Attributes:
        lane: the lane file; not read when a bundle is resumed.
        bundles: the folder for bundles.
        content: systems, roles and the like.
        pods: the pods file that says where roles run, or `simulated`. None is this machine, and for a resumed
            run where it was begun; `local` is said of a resumed one alone.
        resume: a bundle to go on with.
        origin: a bundle, and the version of its checkpoint that a new run goes on from.
        tracker_url: of the tracker's database; None records nothing.
        owner: who owns what is put on nodes, where a pods file does not say.
        keep: whether the run's folder stays on the nodes; a resumed run does as it was told when it began.
        cache: for compiled programs; None keeps nothing between runs.
        secrets: what no file of the bundle may hold.
        stop: why the lane is to end at once, of a bundle that is taken up only for that; empty lets it run.
        limits: what else may end it: those of the matrix that it is a cell of.
        only: of a matrix, patterns of the cells that are asked for; none for all.
        gives_up_nodes: whether that is done with what was collected, and no node asked.
    """

    lane: Path | None
    bundles: Path
    content: Content
    pods: Path | None = None
    resume: Path | None = None
    origin: tuple[Path, int] | None = None
    tracker_url: str | None = None
    owner: str = ""
    keep: bool = False
    cache: Path | None = None
    secrets: Secrets = field(default_factory=Secrets.here)
    stop: str = ""
    limits: tuple[Limit, ...] = ()
    only: tuple[str, ...] = ()
    gives_up_nodes: bool = False
