"""The split run: some updates, a checkpoint, then the rest in new processes with the epoch advanced."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.qualify.checks import Check
from orchestrator.qualify.command import series
from orchestrator.qualify.compose import Wanted
from orchestrator.qualify.launch import SWAPPED
from orchestrator.qualify.launch_checks import began, trained
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.steps import uninterrupted
from orchestrator.qualify.view import View

NAME = "split"
DOES = (
    "runs to the split and stops; new processes resume from that checkpoint, epoch 1 to 2;"
    " on other instruction sets, or cards, where the lane says `swap`"
)
CHECKS = ("equals the uninterrupted run at the split and at the end", "the epoch is advanced from 1 to 2")
PARTS = ("part-1", "part-2")


def asked(view: View, folder: str) -> Iterator[Wanted]:
    """Two launches; the second is given the first one's checkpoint on every node, if there is one."""
    yield Wanted(PARTS[0], view.epoch(1), view.split, restore=view.restore)
    restore = view.checkpoint_files(f"{folder}/{PARTS[0]}", view.split)
    if restore:
        programs = dict.fromkeys(view.roles, SWAPPED) if view.lane.swap else {}
        yield Wanted(PARTS[1], view.epoch(2), view.lane.updates, restore=restore, programs=programs)


def act(launcher: Launcher) -> None:
    """One part after the other; without a checkpoint to go on from, the judge will say what became of it."""
    if (plan := launcher.session.view.command) is not None:
        series.act(launcher, plan)
        return
    for wanted in asked(launcher.session.view, launcher.folder):
        launcher.run(wanted)


def judge(view: View) -> tuple[Check, ...]:
    """Both parts against the reference, and against the uninterrupted run's own files."""
    if view.command is not None:
        return series.judge(view, view.command, NAME)
    checks: list[Check] = []
    firsts = (view.first + 1, view.split + 1)
    for wanted, first in zip(asked(view, f"{view.attempt(NAME)}"), firsts, strict=False):
        part, missing = began(view, NAME, wanted.name)
        checks += missing
        if part is not None:
            checks += trained(part, wanted, first=first)
            checks += uninterrupted.same(view, part, wanted.target)
    return tuple(checks)
