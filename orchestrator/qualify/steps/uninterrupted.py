"""The uninterrupted run, twice, from fresh processes.

Twice, so that a later difference means what it seems to: if these two differ the finding is "not
deterministic", not "resume broken".
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.oracle.checkpoint import CheckpointError
from orchestrator.qualify.checks import Check, Verdict, equal
from orchestrator.qualify.command import series
from orchestrator.qualify.compose import Wanted
from orchestrator.qualify.launch_checks import began, trained
from orchestrator.qualify.launched import Launched
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.publication_checks import first_difference
from orchestrator.qualify.view import View

NAME = "uninterrupted"
DOES = "runs all updates from fresh processes, twice, publishing at the split and at the end"
CHECKS = (
    "every state and loss equals the reference's",
    "both checkpoints hold the reference's words",
    "the two runs are equal (else: not deterministic)",
)
RUNS = ("run-1", "run-2")


def asked(view: View) -> Iterator[Wanted]:
    """Two launches that differ in nothing but their name."""
    for name in RUNS:
        updates, split = view.lane.updates, view.split
        yield Wanted(name, view.epoch(1), updates, publish_at=split, restore=view.restore)


def act(launcher: Launcher) -> None:
    """Two launches, one after the other."""
    if (plan := launcher.session.view.command) is not None:
        series.act(launcher, plan)
        return
    for wanted in asked(launcher.session.view):
        records = launcher.run(wanted)
        if any(record.exit != 0 for record in records.values()):
            return  # the judge will say how it ended; a second run would only cost time


def judge(view: View) -> tuple[Check, ...]:
    """Determinism first, then each run against the reference."""
    if view.command is not None:
        return series.judge(view, view.command, NAME)
    found: list[Launched] = []
    missing: list[Check] = []
    checks: list[Check] = []
    for wanted in asked(view):
        launched, absent = began(view, NAME, wanted.name)
        missing += absent
        if launched is not None:
            found.append(launched)
            checks += trained(launched, wanted, first=view.first + 1)
    if len(found) == len(RUNS):
        checks.insert(0, _deterministic(found[0], found[1], (view.split, view.lane.updates)))
    return (*checks, *missing)


def same(view: View, other: Launched, version: int) -> tuple[Check, ...]:
    """Another launch's state against this step's, by their manifests; nothing if this step was left out."""
    if NAME in view.lane.omit:
        return ()
    run = view.launch(NAME, RUNS[0])
    names = (other.manifest(version), run.manifest(version) if run else None)
    states = [view.json(name)["state"] if name else None for name in names]
    inputs = tuple(name for name in names if name)
    name = f"{other.launch.name}-equals-uninterrupted-at-{version}"
    if (bound := view.planned.plan.system.bound) is not None:
        got = f"not asked of an approximate system: both are held against the reference, within {bound}"
        return (Check(name, Verdict.NOT_APPLICABLE, inputs, "one state", got),)
    return (equal(name, inputs, states[1], states[0]),)


def _deterministic(first: Launched, second: Launched, versions: tuple[int, ...]) -> Check:
    """The two runs against each other; the first word that differs is named."""
    name, fine = "deterministic", "two uninterrupted runs are equal"
    progress = (*first.files("progress"), *second.files("progress"))
    if (bound := first.view.planned.plan.system.bound) is not None:
        got = f"not asked of an approximate system: each is held against the reference, within {bound}"
        return Check(name, Verdict.NOT_APPLICABLE, progress, fine, got)
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
