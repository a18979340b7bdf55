"""The uninterrupted run, twice, from fresh processes.

Twice, so that a later difference means what it seems to: if these two differ the finding is "not
deterministic", not "resume broken".
"""

from __future__ import annotations

from orchestrator.oracle.checkpoint import CheckpointError
from orchestrator.qualify.checks import Check, Verdict
from orchestrator.qualify.compose import Wanted, compose
from orchestrator.qualify.launch_checks import began, first_difference, trained
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.view import Launched, View

NAME = "uninterrupted"
DOES = "runs all updates from fresh processes, twice, publishing at the split and at the end"
CHECKS = (
    "every state and loss equals the reference's",
    "both checkpoints hold the reference's words",
    "the two runs are equal (else: not deterministic)",
)
RUNS = ("run-1", "run-2")
EPOCH = 1


def act(launcher: Launcher) -> None:
    """Two launches, one after the other."""
    lane = launcher.session.lane
    for name in RUNS:
        launch = compose(
            launcher.session, Wanted(name, epoch=EPOCH, target=lane.updates, publish_at=lane.split)
        )
        records = launcher.run(launch)
        if any(record.exit != 0 for record in records.values()):
            return  # the judge will say how it ended; a second run would only cost time


def judge(view: View) -> tuple[Check, ...]:
    """Determinism first, then each run against the reference."""
    split, last = view.lane.split, view.lane.updates
    runs = [began(view, NAME, name) for name in RUNS]
    missing = tuple(check for _, checks in runs for check in checks)
    began_runs = [launched for launched, _ in runs if launched is not None]
    checks = [] if missing else [_deterministic(began_runs[0], began_runs[1], (split, last))]
    for launched in began_runs:
        checks += trained(launched, epoch=EPOCH, first=1, last=last, publish_at=split)
    return (*checks, *missing)


def _deterministic(first: Launched, second: Launched, versions: tuple[int, ...]) -> Check:
    """The two runs against each other; the first word that differs is named."""
    name, fine = "deterministic", "two uninterrupted runs are equal"
    progress = (*first.files("progress"), *second.files("progress"))
    for role in first.roles:
        for left, right in zip(first.roles[role].progress, second.roles[role].progress, strict=False):
            if left != right:
                got = (
                    f"not deterministic: {role} at update {left.version}:"
                    f" state {left.state} and {right.state}, loss {left.loss} and {right.loss}"
                )
                return Check(name, Verdict.FAIL, progress, fine, got + _first_word(first, second, versions))
    return Check(name, Verdict.PASS, progress, fine, fine)


def _first_word(first: Launched, second: Launched, versions: tuple[int, ...]) -> str:
    for version in versions:
        try:
            left, right = first.checkpoint(version), second.checkpoint(version)
        except (CheckpointError, FileNotFoundError):
            continue
        difference = first_difference(first.view.planned.plan.system, left.words, right.words)
        if difference:
            name, one, other = difference
            return f"; first word that differs at version {version}: {name} = {one} and {other}"
    return ""
