"""Host-shadow control: the host's copies of device state are overwritten, and nothing may change.

The uninterrupted run again, by the same programs, bound otherwise in one word: before every forward pass a
device role overwrites what the host holds of its parameters and state with other finite values. Who reads
them instead of the card's own computes something else, and the reference shows it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orchestrator.qualify.checks import Check, equal
from orchestrator.qualify.compose import Wanted
from orchestrator.qualify.launch import Start
from orchestrator.qualify.launch_checks import began, trained
from orchestrator.qualify.launched import Launched
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.steps import uninterrupted
from orchestrator.qualify.view import View
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.run import RunSpec

NAME = "host-shadow"
DOES = "runs all updates with the host's copies of device state overwritten before every forward pass"
CHECKS = (
    "trajectory and checkpoint unchanged",
    "every device role says that it overwrote them",
    "the programs are those of the uninterrupted run, bound otherwise in one word",
)
SHADOWED = "shadowed"
_CHOSEN = ("port", "parent_port", "secret")  # by the acting side, for each launch anew


def not_applicable(lane: LaneSpec) -> str:
    """A control of device roles: without one there is nothing that the host only shadows."""
    run = lane.run
    has_one = isinstance(run, RunSpec) and any(each.device for each, _ in run.pairings.runs)
    return "" if has_one else "no role has a device"


def asked(view: View) -> Wanted:
    """The uninterrupted run's first launch, shadowed."""
    updates, split = view.lane.updates, view.split
    return Wanted(SHADOWED, view.epoch(1), updates, publish_at=split, restore=view.restore, shadowed=True)


def act(launcher: Launcher) -> None:
    """One launch."""
    launcher.run(asked(launcher.session.view))


def judge(view: View) -> tuple[Check, ...]:
    """Against the reference, and against the uninterrupted run's own files."""
    launched, missing = began(view, NAME, SHADOWED)
    if launched is None:
        return missing
    wanted = asked(view)
    checks = trained(launched, wanted, first=view.first + 1)
    for version in (view.split, view.lane.updates):
        checks += uninterrupted.same(view, launched, version)
    return (*checks, *_same_programs(view, launched))


def _same_programs(view: View, launched: Launched) -> tuple[Check, ...]:
    """What was bound otherwise than in the uninterrupted run; nothing where that step was left out."""
    run = view.launch(uninterrupted.NAME, uninterrupted.RUNS[0])
    if run is None:
        return ()
    inputs = (f"{run.name}/launch.json", f"{launched.name}/launch.json")
    fine = "shadowing alone"
    pairs = zip(run.launch.starts, launched.launch.starts, strict=False)
    problems = [f"{left.role}: {said}" for left, right in pairs if (said := _bound_otherwise(left, right))]
    return (equal(f"{SHADOWED}-bound", inputs, fine, "; ".join(problems) or fine),)


def _bound_otherwise(left: Start, right: Start) -> str:
    """What differs between two starts of a role but what must; empty if nothing does."""
    if (left.role, left.program) != (right.role, right.program):
        return f"{right.role} {right.program}, expected {left.role} {left.program}"
    before, after = _bound(left), _bound(right)
    return ", ".join(key for key in before if before[key] != after.get(key))


def _bound(start: Start) -> dict[str, Any]:
    device = start.bound.device
    bound = replace(start.bound, device=device and replace(device, is_shadowed=False))
    return {key: value for key, value in bound.as_json().items() if key not in _CHOSEN}
