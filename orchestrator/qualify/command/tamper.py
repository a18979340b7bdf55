"""The alterations by which refusals of a program of the user's own are provoked.

Pure and deterministic: what is altered, and how, follows from the bundle. What an altered file means is not
known; that a program must not go on from it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from orchestrator.errors import Label
from orchestrator.plan.command import CommandPlan
from orchestrator.qualify.command.start import source
from orchestrator.qualify.compose import Wanted
from orchestrator.qualify.tamper import flip
from orchestrator.qualify.view import View
from orchestrator.spec.program import Looks

BLOCK_BYTES = 512  # of `ulimit -f`
MAX_CHANGED = 4  # files of a checkpoint in which a byte is changed, the largest first
RESUMED = (2, 2)  # epoch and version to reach of a resume from version 1
Restore = Mapping[str, str]


@dataclass(frozen=True)
class Control:
    """An experiment that must be refused, and how that looks."""

    wanted: Wanted
    looks: Looks


def controls(view: View, plan: CommandPlan, restore: Restore, folder: str) -> Iterator[Control]:
    """Every control that the run can have, in order.

    Args:
        view: the bundle.
        plan: whose program it is.
        restore: a sound checkpoint of version 1, as `state.restored` gives it.
        folder: of the attempt, as the manifest names it.
    """
    refuses = plan.program.refuses
    chunk = refuses.get(Label.CHECKPOINT_CHUNK, Looks())
    for number in range(min(MAX_CHANGED, max(len(files) for files in _by_size(view, restore).values()))):
        name = "changed-byte" if number == 0 else f"changed-byte-{number + 1}"
        yield Control(changed_byte(view, restore, f"{folder}/{name}", number=number), chunk)
    yield Control(_cut_short(view, restore, f"{folder}/truncated"), chunk)
    without = {files[0] for files in _by_size(view, restore).values()}
    kept = {name: file for name, file in restore.items() if name not in without}
    missing = Wanted("missing-file", *RESUMED, restore=kept)
    yield Control(missing, refuses.get(Label.CHECKPOINT_COVERAGE, Looks()))
    for use in plan.program.uses if Label.DATA_CHUNK in refuses else ():
        name = f"changed-input-{use.name}"
        place = f"{folder}/{name}/placed/{use.name}"
        placed = {place: flip(view.bytes(source(view, use)) or b"")}
        wanted = Wanted(name, epoch=1, target=1, inputs={use.name: place}, placed=placed)
        yield Control(wanted, refuses[Label.DATA_CHUNK])


def changed_byte(
    view: View, restore: Restore, launch: str, *, number: int = 0, at: tuple[int, int] = RESUMED
) -> Wanted:
    """A resume from a checkpoint in which one bit is another, in every role's largest file (or the next).

    Args:
        view: the bundle.
        restore: a sound checkpoint.
        launch: folder of the launch, as the manifest names it.
        number: which file of each role, counted from the largest.
        at: epoch and version to reach.
    """
    names = {files[min(number, len(files) - 1)] for files in _by_size(view, restore).values()}
    return _with(restore, launch, {name: flip(_bytes(view, restore, name)) for name in names}, at)


def _cut_short(view: View, restore: Restore, launch: str) -> Wanted:
    largest = {files[0]: _bytes(view, restore, files[0]) for files in _by_size(view, restore).values()}
    halves = {name: data[: len(data) // 2] for name, data in largest.items()}
    return _with(restore, launch, halves, RESUMED)


def _with(restore: Restore, launch: str, altered: Mapping[str, bytes], at: tuple[int, int]) -> Wanted:
    places = {name: f"{launch}/placed/{name}" for name in sorted(altered)}
    return Wanted(
        launch.rpartition("/")[2],
        *at,
        restore={**restore, **places},
        placed={places[name]: altered[name] for name in places},
    )


def cut_blocks(view: View, restore: Restore) -> int:
    """The largest limit on the size of files, in blocks, that keeps a checkpoint from being whole."""
    size = max(len(_bytes(view, restore, name)) for name in restore)
    return max(0, size - 1) // BLOCK_BYTES


def _by_size(view: View, restore: Restore) -> dict[str, list[str]]:
    """Role -> names of what it is given, the largest first."""
    found: dict[str, list[str]] = {}
    for name in sorted(restore):
        found.setdefault(name.partition("/")[0], []).append(name)
    sizes = {name: len(_bytes(view, restore, name)) for name in restore}
    return {role: sorted(names, key=lambda name: -sizes[name]) for role, names in found.items()}


def _bytes(view: View, restore: Restore, name: str) -> bytes:
    return view.bytes(restore[name]) or b""
