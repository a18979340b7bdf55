"""The readers: one for each kind of file, following what a file refers to.

Knows the boundary: inside, refusals are collected, file by file in the order in which files are referred to
and place by place within a file; here they are raised together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from orchestrator.errors import Label, Refusal, RefusedError
from orchestrator.spec.document import load
from orchestrator.spec.program import CommandRunSpec
from orchestrator.spec.reader import KINDS, Reader
from orchestrator.spec.run import RunSpec
from orchestrator.spec.system import SystemSpec

if TYPE_CHECKING:
    from orchestrator.spec.device import DeviceSpec
    from orchestrator.spec.lane import LaneSpec
    from orchestrator.spec.matrix import MatrixSpec
    from orchestrator.spec.pods import PodsSpec
    from orchestrator.spec.project import ProjectSpec
    from tracker.programme import Programme

Spec = TypeVar("Spec")


def read_system(path: Path) -> SystemSpec:
    """Reads a system and counts its samples; raises RefusedError with every refusal."""
    return _read(path, Reader.system)


def read_run(path: Path) -> RunSpec | CommandRunSpec:
    """Reads a run of either sort with all that it names; raises RefusedError with every refusal."""
    read: Callable[[Reader, Path], Any] = Reader.run  # the union is more than is inferred of a variable
    run: RunSpec | CommandRunSpec = _read(path, read)
    return run


def read_native_run(path: Path) -> RunSpec:
    """Reads a run that declares a system; raises RefusedError with every refusal, and for a command run."""
    run = read_run(path)
    if isinstance(run, CommandRunSpec):
        message = "a run of a system is needed (got `program`, expected `system`)"
        raise RefusedError([Refusal(Label.VALUE_CHOICE, message, run.where("program", key=True), "program")])
    return run


def read_lane(path: Path, *, within: Path | None = None) -> LaneSpec:
    """Reads a lane over one run; raises RefusedError with every refusal, and for a matrix.

    Args:
        path: the lane's file.
        within: a folder out of which nothing leads, whatever the files say: neither an absolute path nor
            `..` nor a link. For files that are not the user's own.
    """
    from orchestrator.spec.matrix import SECTION, MatrixSpec

    lane = read_any_lane(path, within=within)
    if isinstance(lane, MatrixSpec):
        message = "a lane over one run is needed (got `matrix`, expected `run`)"
        raise RefusedError([lane.document.at(Label.VALUE_CHOICE, message, (SECTION,), on_key=True)])
    return lane


def read_any_lane(path: Path, *, within: Path | None = None) -> LaneSpec | MatrixSpec:
    """Reads a lane of either sort with all that it names; raises RefusedError with every refusal."""
    read: Callable[[Reader, Path], Any] = Reader.lane  # as for a run
    lane: LaneSpec | MatrixSpec = _read(path, read, within)
    return lane


def read_device(path: Path) -> DeviceSpec:
    """Reads a device profile; raises RefusedError with every refusal."""
    return _read(path, Reader.device)


def read_pods(path: Path) -> PodsSpec:
    """Reads a pods file; raises RefusedError with every refusal."""
    return _read(path, Reader.pods)


def read_programme(path: Path) -> Programme:
    """Reads a programme; raises RefusedError with every refusal."""
    return _read(path, Reader.programme)


def read_project(path: Path) -> ProjectSpec:
    """Reads an `orch.toml`; raises RefusedError with every refusal."""
    return _read(path, Reader.project)


def kind_of(path: Path) -> str | None:
    """Gives the kind that a file says it is of, such as `run/v1`; None where it says none of `KINDS`."""
    document, _ = load(path)
    kind = document.get("orch") if document is not None else None
    return kind if kind in KINDS else None


def validate(paths: Iterable[Path]) -> tuple[Refusal, ...]:
    """Gives every refusal of the files and of what they refer to, each file once, in the order given."""
    reader = Reader()
    for path in paths:
        reader.any(path)
    return reader.all()


def files(path: Path) -> tuple[Path, ...]:
    """Gives a file and all that it refers to, in the order in which they are read.

    Raises:
        RefusedError: one of them is refused.
    """
    reader = Reader()
    reader.any(path)
    if refusals := reader.all():
        raise RefusedError(refusals)
    return tuple(reader.opened)


def _read(path: Path, read: Callable[[Reader, Path], Spec | None], within: Path | None = None) -> Spec:
    reader = Reader(within=within)
    spec = read(reader, path)
    if (refusals := reader.all()) or spec is None:
        raise RefusedError(refusals)
    return spec
