"""The split run: some updates, a checkpoint, then the rest in new processes with the epoch advanced."""

from __future__ import annotations

from orchestrator.qualify.checks import Check, equal
from orchestrator.qualify.compose import Wanted, compose
from orchestrator.qualify.launch_checks import began, trained
from orchestrator.qualify.launcher import Launcher, checkpoint_files
from orchestrator.qualify.session import AttemptLostError
from orchestrator.qualify.steps import uninterrupted
from orchestrator.qualify.view import Launched, View

NAME = "split"
DOES = "runs to the split and stops; new processes resume from that checkpoint, epoch 1 to 2"
CHECKS = ("equals the uninterrupted run at the split and at the end", "the epoch is advanced from 1 to 2")
PARTS = ("part-1", "part-2")


def act(launcher: Launcher) -> None:
    """Two launches; the second is given the first one's checkpoint on every node."""
    session = launcher.session
    lane = session.lane
    launcher.run(compose(session, Wanted(PARTS[0], epoch=1, target=lane.split)))
    folder = launcher.attempt.folder / PARTS[0]
    restore = checkpoint_files(session.bundle, folder, session.role_names, lane.split)
    if not restore:
        # the judge will say what the first part did instead; there is nothing to resume from
        return
    launcher.run(compose(session, Wanted(PARTS[1], epoch=2, target=lane.updates, restore=restore)))


def judge(view: View) -> tuple[Check, ...]:
    """Both parts against the reference, and against the uninterrupted run's own files."""
    split, last = view.lane.split, view.lane.updates
    checks: list[Check] = []
    for name, epoch, first, end in ((PARTS[0], 1, 1, split), (PARTS[1], 2, split + 1, last)):
        part, missing = began(view, NAME, name)
        checks += missing
        if part is not None:
            checks += trained(part, epoch=epoch, first=first, last=end)
            checks += _same_as_uninterrupted(view, part, end)
    return tuple(checks)


def _same_as_uninterrupted(view: View, part: Launched, version: int) -> tuple[Check, ...]:
    """State digests of the two published manifests; nothing where the uninterrupted step was left out."""
    if "uninterrupted" in view.lane.omit:
        return ()
    other = view.launch(uninterrupted.NAME, uninterrupted.RUNS[0])
    names = (part.manifest(version), other.manifest(version) if other else None)
    states = [view.json(name)["state"] if name else None for name in names]
    inputs = tuple(name for name in names if name)
    return (equal(f"{part.launch.name}-equals-uninterrupted-at-{version}", inputs, states[1], states[0]),)


def last_checkpoint(launcher: Launcher) -> dict[str, str]:
    """The final checkpoint of the split run's finished attempt, for the steps after it.

    Raises:
        AttemptLostError: it is not there.
    """
    session = launcher.session
    view = View(session.bundle)
    folder = view.attempt(NAME)
    found = (
        checkpoint_files(
            session.bundle, session.bundle / folder / PARTS[1], session.role_names, session.lane.updates
        )
        if folder
        else {}
    )
    if not found:
        raise AttemptLostError("the split run left no checkpoint to evaluate")
    return found
