"""Fresh evaluation: new processes evaluate the resumed run's checkpoint, and refuse a corrupted one."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.errors import Label
from orchestrator.qualify.checks import Check, Verdict
from orchestrator.qualify.command import series
from orchestrator.qualify.compose import Wanted
from orchestrator.qualify.counts import calls_as_counted
from orchestrator.qualify.launch_checks import (
    as_asked,
    began,
    ended_well,
    executables,
    left_only,
    refused,
    said,
)
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.session import AttemptLostError
from orchestrator.qualify.steps import split
from orchestrator.qualify.tamper import flip_shard_byte
from orchestrator.qualify.view import View

NAME = "evaluate"
DOES = "evaluates the resumed checkpoint in new processes; then the same with one byte of it flipped"
CHECKS = ("the results equal the reference's", "the corrupted checkpoint is refused as checkpoint-chunk")
FRESH, CORRUPTED = "fresh", "corrupted"


def asked(view: View, folder: str) -> Iterator[Wanted]:
    """One that must succeed and one that must be refused; none without the split run's checkpoint."""
    updates = view.lane.updates
    restore = view.checkpoint_files(f"{view.attempt(split.NAME)}/{split.PARTS[1]}", updates)
    if restore:
        yield Wanted(FRESH, view.epoch(3), updates, "evaluate", restore=restore)
        altered, placed = flip_shard_byte(view, restore, f"{folder}/{CORRUPTED}")
        yield Wanted(CORRUPTED, view.epoch(3), updates, "evaluate", restore=altered, placed=placed)


def act(launcher: Launcher) -> None:
    """The one, then the other."""
    if (plan := launcher.session.view.command) is not None:
        series.act(launcher, plan)
        return
    launches = [launcher.run(wanted) for wanted in asked(launcher.session.view, launcher.folder)]
    if not launches:
        raise AttemptLostError("the split run left no checkpoint to evaluate")


def judge(view: View) -> tuple[Check, ...]:
    """Results against the reference, run again at the final version."""
    if view.command is not None:
        return series.judge(view, view.command, NAME)
    checks: list[Check] = []
    for wanted in asked(view, f"{view.attempt(NAME)}"):
        launched, missing = began(view, NAME, wanted.name)
        checks += missing
        if launched is None:
            continue
        checks += (as_asked(launched, wanted), executables(launched))
        if wanted.name == CORRUPTED:
            checks.append(refused(launched, dict.fromkeys(view.roles, Label.CHECKPOINT_CHUNK)))
            continue
        ended = ended_well(launched)
        checks += (ended, left_only(launched, wanted, (), updates=0))
        if ended.verdict is Verdict.PASS:
            results = view.evaluation(wanted.target)
            checks.append(said(launched, wanted, view.version(wanted.target), results))
            checks += calls_as_counted(launched, wanted)
    return tuple(checks)
