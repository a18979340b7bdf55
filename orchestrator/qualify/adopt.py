"""A checkpoint taken over from another run's bundle: found there, checked, and made part of a new bundle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evidence.bundle import is_sealed
from evidence.digest import sha256_file
from evidence.listing import QUALIFICATION
from evidence.stream import StreamError
from evidence.verify import verify
from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.oracle.checkpoint import CheckpointError, read_set
from orchestrator.plan.derive import plan_of
from orchestrator.plan.model import Plan
from orchestrator.qualify import parent as parents
from orchestrator.qualify.command import adopt as command
from orchestrator.qualify.command.state import restored
from orchestrator.qualify.parent import Parent
from orchestrator.qualify.view import View
from orchestrator.spec.lane import LaneSpec

LEAST_UPDATES = 2  # one before the split, one after it


def adopt(lane: LaneSpec, bundle: Path, version: int) -> dict[str, bytes]:
    """The files with which a new run's bundle begins, so that it goes on from there.

    Args:
        lane: of the new run.
        bundle: of the run that published the checkpoint; sealed or not.
        version: of the checkpoint.

    Raises:
        RefusedError: there is no such checkpoint in the bundle, it is not whole or of another system, or the
            lane asks for no more than it holds.
    """
    where = Where(str(bundle))
    view = _view(bundle, where)
    plan = plan_of(lane.run)
    if view.plan.system_digest != plan.system_digest:
        got = f"(got {view.plan.system_digest}, expected {plan.system_digest})"
        raise _refused(Label.CHECKPOINT_SYSTEM, f"its checkpoints are of another system {got}", where)
    found = command.collected(view, *parents.LINEAGE) if view.command else view.collected(*parents.LINEAGE)
    if version not in found:
        there = ", ".join(map(str, found)) or "none"
        message = f"it has no whole checkpoint of that version (got {version}, expected one of: {there})"
        raise _refused(Label.CHECKPOINT_MISSING, message, where)
    if lane.updates < version + LEAST_UPDATES:
        message = f"too few updates for a run from checkpoint {version} (got {lane.updates},"
        message += f" expected at least {version + LEAST_UPDATES})"
        raise RefusedError([lane.document.at(Label.VALUE_RANGE, message, ("updates",))])
    files = restored(view, found[version]) if view.command else view.checkpoint_files(found[version], version)
    held = {name: view.bytes(file) or b"" for name, file in files.items()}
    epoch = _epoch(plan, held, where) if isinstance(plan, Plan) else 0  # a foreign program knows of none
    seal = sha256_file(bundle / QUALIFICATION) if is_sealed(bundle) else None
    named = Parent(view.run_id, version, epoch, seal, plan.system_digest, view.plan.digest, files={})
    return parents.described(named, {**_specs(view), **{f"{parents.SET}/{n}": d for n, d in held.items()}})


def _epoch(plan: Plan, held: Mapping[str, bytes], where: Where) -> int:
    """The epoch in which a native set was captured, once it has been read whole."""
    try:
        return read_set(plan.system, held).epoch
    except CheckpointError as error:
        raise _refused(error.label, str(error), where) from error


def _view(bundle: Path, where: Where) -> View:
    try:
        view = View(bundle)
        begun = view.events()[0]
    except (OSError, StreamError, IndexError) as error:
        message = f"not a bundle of a run (got {error}, expected a stream)"
        raise _refused(Label.FILE_UNREADABLE, message, where) from error
    if is_sealed(bundle) and (faults := verify(bundle)):
        raise _refused(Label.FILE_UNREADABLE, f"the bundle does not verify (got {faults[0]})", where)
    if begun.type != "orch.lane.started":
        raise _refused(Label.FILE_UNREADABLE, f"not a bundle of a lane (got {begun.type})", where)
    return view


def _specs(view: View) -> Mapping[str, bytes]:
    """The specs of a run, and all that it has of its own parent: name in its bundle -> bytes."""
    files = {}
    for folder in ("specs", parents.FOLDER):
        for path in sorted((view.bundle / folder).rglob("*")):
            if path.is_file() and not path.is_symlink():
                name = path.relative_to(view.bundle).as_posix()
                files[name] = view.bytes(name) or b""
    return files


def _refused(label: Label, message: str, where: Where) -> RefusedError:
    return RefusedError([Refusal(label, message, where)])
