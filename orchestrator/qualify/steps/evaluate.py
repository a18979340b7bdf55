"""Fresh evaluation: new processes evaluate the resumed run's checkpoint, and refuse a corrupted one."""

from __future__ import annotations

from orchestrator.errors import Label
from orchestrator.qualify.checks import Check
from orchestrator.qualify.compose import Wanted, compose
from orchestrator.qualify.launch_checks import began, ended_well, refused, right_bytes, said
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.steps import split
from orchestrator.qualify.tamper import flip_shard_byte
from orchestrator.qualify.view import View

NAME = "evaluate"
DOES = "evaluates the resumed checkpoint in new processes; then the same with one byte of it flipped"
CHECKS = ("the results equal the reference's", "the corrupted checkpoint is refused as checkpoint-chunk")
EPOCH = 3
FRESH, CORRUPTED = "fresh", "corrupted"


def act(launcher: Launcher) -> None:
    """One evaluation that must succeed, one that must be refused."""
    session = launcher.session
    restore = split.last_checkpoint(launcher)
    updates = session.lane.updates
    launcher.run(
        compose(session, Wanted(FRESH, epoch=EPOCH, target=updates, mode="evaluate", restore=restore))
    )
    altered = flip_shard_byte(session.bundle, restore, launcher.attempt.folder / CORRUPTED)
    launcher.run(
        compose(session, Wanted(CORRUPTED, epoch=EPOCH, target=updates, mode="evaluate", restore=altered))
    )


def judge(view: View) -> tuple[Check, ...]:
    """Results against the reference, run again at the final version."""
    checks: list[Check] = []
    updates = view.lane.updates
    fresh, missing = began(view, NAME, FRESH)
    checks += missing
    if fresh is not None:
        binding = {"epoch": EPOCH, "mode": "evaluate", "target": updates, "resume": True}
        checks += (*right_bytes(fresh, binding), ended_well(fresh))
        results, version = view.evaluation(updates), view.version(updates)
        checks.append(said(fresh, epoch=EPOCH, mode="evaluate", version=version, results=results))
    corrupted, missing = began(view, NAME, CORRUPTED)
    checks += missing
    if corrupted is not None:
        checks.append(refused(corrupted, dict.fromkeys(view.roles, Label.CHECKPOINT_CHUNK)))
    return tuple(checks)
