"""Bundles as the engine opens them: made anew with copies of all that was read, or taken up again.

A new bundle appears whole under its final name: its specs, plan and first event are prepared in a hidden
folder and renamed into place. One controller at a time holds a bundle, by a lock on its stream.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import uuid6

from evidence.canonical import dumps
from evidence.event import MAX_LINE_BYTES, EventError, parse
from evidence.files import open_regular, write_whole
from evidence.names import fault
from evidence.stream import Stream, StreamError
from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.plan.command import CommandPlan
from orchestrator.plan.derive import plan_of
from orchestrator.plan.model import Plan
from orchestrator.qualify.bundle_files import INDEX, SPECS, specs_sha256
from orchestrator.spec.device import DeviceSpec
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.matrix import MatrixSpec
from orchestrator.spec.read import files, read_any_lane, read_lane
from orchestrator.spec.references import beside
from orchestrator.spec.run import RunSpec

STREAM = "stream.jsonl"
BEGUN = "orch.lane.started"
BEGUN_DATA = frozenset(("content_sha256", "keep", "lane", "owner", "pods", "remote_root"))
_NEW = ".new-"


@dataclass
class Opened:
    """A bundle held by this controller. `close` lets it go."""

    folder: Path
    stream: Stream
    lock: int
    resumed: bool

    def close(self) -> None:
        """Closes the stream and lets another controller have the bundle."""
        self.stream.close()
        os.close(self.lock)


def create(
    folder: Path,
    lane: LaneSpec,
    plan: Plan | CommandPlan,
    first: Mapping[str, object],
    beside: Mapping[str, bytes] | None = None,
) -> Opened:
    """Makes a bundle for a new run of a lane.

    Args:
        folder: where bundles go.
        lane: what was declared.
        plan: its plan.
        first: data of the first event.
        beside: files that it begins with besides those: name in the bundle -> bytes.

    Raises:
        RefusedError: the folder cannot be written, or a copy of what was read would not stand by itself.
    """

    def fill(hidden: Path) -> None:
        copy_specs(lane.path, hidden, partial(_same, lane, plan))
        write_whole(hidden / "plan.json", dumps(plan.file_json()))
        for name, data in (beside or {}).items():
            (hidden / name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(hidden / name, data)

    return begin(folder, lane.name, fill, BEGUN, first)


def begin(
    folder: Path, lane: str, fill: Callable[[Path], None], kind: str, first: Mapping[str, object]
) -> Opened:
    """Makes a bundle.

    Args:
        folder: where bundles go.
        lane: the lane's name.
        fill: puts the files that it begins with into its folder, which has another name as yet.
        kind: of the first event.
        first: its data.

    Raises:
        RefusedError: the folder cannot be written, or whoever fills it refuses.
    """
    run_id = str(uuid6.uuid7())
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    target = folder / f"{lane}-{stamp}-{run_id[-8:]}"
    hidden = folder / f"{_NEW}{os.getpid()}-{run_id}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        hidden.mkdir(mode=0o700)  # a launch's secret is in it while its roles run
        fill(hidden)
        with Stream.create(hidden / STREAM, run_id) as stream:
            stream.append(kind, lane, {"lane": lane, **first, "specs_sha256": specs_sha256(hidden)})
        hidden.rename(target)
    except RefusedError:
        shutil.rmtree(hidden)
        raise
    except OSError as error:
        shutil.rmtree(hidden, ignore_errors=True)
        message = (
            f"bundles cannot be written here (got {error.strerror}, expected a folder that can be written)"
        )
        raise RefusedError([Refusal(Label.WRITE_FAILED, message, Where(str(folder)))]) from error
    return _open(target, run_id, resumed=False)


def reopen(bundle: Path, kind: str = BEGUN) -> Opened:
    """Takes up a bundle that an earlier controller left, whose first event is of this kind.

    Raises:
        RefusedError: it is no bundle, its stream is broken, or another controller holds it.
    """
    where = Where(str(bundle / STREAM))
    try:
        with os.fdopen(open_regular(bundle / STREAM), "rb") as file:
            first = parse(file.readline(MAX_LINE_BYTES).rstrip(b"\n"))
    except OSError as error:
        message = f"not a bundle of a run (got {error.strerror}, expected a stream)"
        raise RefusedError([Refusal(Label.FILE_MISSING, message, where)]) from error
    except EventError as error:
        message = f"not a stream (got a line that is {error}, expected a first event)"
        raise RefusedError([Refusal(Label.FILE_UNREADABLE, message, where)]) from error
    if first.type != kind or not first.data.keys() >= BEGUN_DATA:
        message = f"not a bundle of a lane (got a first event {first.type}, expected {kind})"
        raise RefusedError([Refusal(Label.FILE_UNREADABLE, message, where)])
    return _open(bundle, first.source, resumed=True)


def _open(bundle: Path, run_id: str, *, resumed: bool) -> Opened:
    path = bundle / STREAM
    lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        message = "another controller holds this bundle (got a lock, expected none); wait for it, or end it"
        raise RefusedError([Refusal(Label.RUN_LOCKED, message, Where(str(path)))]) from None
    try:
        for part in bundle.rglob(".*.part"):  # what a killed controller was writing
            if part.is_file():
                part.unlink()
        return Opened(bundle, Stream.reopen(path, run_id), lock, resumed)
    except StreamError as error:
        os.close(lock)
        message = f"the stream does not hold (got {error}, expected an unbroken chain)"
        raise RefusedError(
            [Refusal(Label.FILE_UNREADABLE, message, Where(str(path), error.line, 1))]
        ) from error


def copy_specs(lane: Path, bundle: Path, read_back: Callable[[Path, Path], None]) -> None:
    """Copies a lane's file and all that it names into a bundle, as they lie towards each other.

    Profiles that came with orch go where those of one's own would be: beside the run that names them, or
    beside the systems of a matrix.

    Args:
        lane: the lane's file.
        bundle: the bundle's folder.
        read_back: reads the lane's copy, out of the folder that nothing may lead out of.

    Raises:
        RefusedError: the copy does not stand by itself, or says something else than what was read.
    """
    moved = _profiles_of_the_content(lane)
    sources = {Path(os.path.abspath(moved.get(path, path))): path for path in files(lane)}  # noqa: PTH100 - links stay
    common = Path(os.path.commonpath([path.parent for path in sources]))
    specs = bundle / SPECS
    copies = {str(specs / plain.relative_to(common)): source for plain, source in sources.items()}
    for copy, source in copies.items():
        if wrong := fault(Path(copy).relative_to(bundle).as_posix()):
            message = f"cannot be kept in a bundle (got {wrong}, expected a plain name)"
            raise RefusedError([Refusal(Label.FILE_UNREADABLE, message, Where(str(source)))])
        Path(copy).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    name = Path(os.path.abspath(lane)).relative_to(common).as_posix()  # noqa: PTH100
    write_whole(bundle / INDEX, dumps({"lane": name}))
    try:
        read_back(specs / name, specs)
    except RefusedError as error:
        raise RefusedError(_of_source(refusal, copies) for refusal in error.refusals) from error


def _profiles_of_the_content(lane: Path) -> dict[Path, Path]:
    """Profiles that a lane of either sort names -> where they would be if they were its own."""
    spec = read_any_lane(lane)
    used: tuple[DeviceSpec | None, ...] = tuple(spec.profiles.values())
    if isinstance(spec, MatrixSpec):
        whose = next(iter(spec.systems.values())).path
    elif isinstance(spec.run, RunSpec):
        whose = spec.run.path
        used += tuple(device for device, _ in spec.run.devices.runs)
    else:
        return {}
    folder = beside(whose, "../devices")
    return {device.path: folder / device.path.name for device in used if device is not None}


def _same(lane: LaneSpec, plan: Plan | CommandPlan, copy: Path, specs: Path) -> None:
    """Refuses a copy that says something else than what was read."""
    if plan_of(read_lane(copy, within=specs).run).digest != plan.digest:
        message = (
            "the files changed while they were read (got another plan from their copy, expected the same)"
        )
        raise RefusedError([Refusal(Label.FILE_UNREADABLE, message, Where(str(lane.path)))])


def _of_source(refusal: Refusal, copies: Mapping[str, Path]) -> Refusal:
    """Gives a refusal of a copy at its place in the file that it is the copy of."""
    path = str(copies.get(refusal.where.path, refusal.where.path))
    return replace(refusal, where=replace(refusal.where, path=path))


def _sweep(folder: Path) -> None:
    """Removes what controllers left that were killed before their bundle had a name."""
    for hidden in folder.glob(f"{_NEW}*"):
        pid = hidden.name.removeprefix(_NEW).partition("-")[0]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(hidden, ignore_errors=True)
