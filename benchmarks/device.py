"""What device roles launch and move in one update, as counted, beside the least that their plan implies.

Each shipped lane with device roles is run on stand-in cards. The programs say what they did, and the stand-in
driver counts for itself: both must agree, as the lane's judge holds them to. One update's share is what the
whole run counted more than its first part, over the updates that it made more: what a start costs is in both,
and falls out. Nothing is timed: a stand-in card has no speed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.content import CONTENT, orch
from benchmarks.measure import Row, quietly
from orchestrator.plan.derive import Planned, derive
from orchestrator.plan.model import Plan, Role
from orchestrator.plan.places import extents
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.matrix import MatrixSpec
from orchestrator.spec.nodesets import fold
from orchestrator.spec.read import read_any_lane
from orchestrator.spec.run import RunSpec

LEAST = "the least that the plan implies"
WHOLE, PART = "uninterrupted/1/run-1", "split/1/part-1"


@dataclass(frozen=True)
class Counts:
    """What one role did: kernels that it launched, bytes that it moved to its card and from it."""

    launches: float
    to_device: float
    from_device: float


def run(folder: Path) -> tuple[Row, ...]:
    rows: list[Row] = []
    for path in sorted((CONTENT / "lanes").glob("*.yaml")):
        lane = read_any_lane(path)
        if isinstance(lane, MatrixSpec) or not isinstance(lane.run, RunSpec) or lane.swap:
            continue  # a swapped run computes what the same one does without
        planned = derive(lane.run)
        if any(device is not None for device in planned.devices.values()):
            rows += _rows(lane, planned, _bundle(folder, path))
    return tuple(rows)


def _bundle(folder: Path, lane: Path) -> Path:
    """Run a lane on stand-in cards; raises CalledProcessError unless it passes, counts among the rest."""
    argv = [*orch(), "run", str(lane), "--pods", "simulated", "--json", "--bundles", str(folder / "runs")]
    said = quietly([*argv, "--db", f"sqlite:///{folder}/tracker.sqlite3"], folder, TMPDIR=str(folder))
    return Path(json.loads(said)["bundle"])


def _rows(lane: LaneSpec, planned: Planned, bundle: Path) -> Iterator[Row]:
    """One row for each thing that is counted, of roles that count alike."""
    alike: dict[tuple[Counts, Counts], list[str]] = {}
    for role in planned.plan.roles:
        if planned.devices[role.name] is not None:
            counts = _an_update(bundle, role.name, lane.updates - lane.split), least(planned.plan, role)
            alike.setdefault(counts, []).append(role.name)
    for (ours, theirs), roles in alike.items():
        name = f"{lane.name}, {fold(roles)}"
        yield _row(f"{name}: launches", ours.launches, theirs.launches, "")
        yield _row(f"{name}: to the card", ours.to_device, theirs.to_device, "B")
        yield _row(f"{name}: from the card", ours.from_device, theirs.from_device, "B")


def _row(name: str, ours: float, theirs: float, unit: str) -> Row:
    ratio = ours / theirs if theirs else 1.0 if not ours else float("inf")
    return Row(name, ours, LEAST, theirs, ratio, "", unit)


def _an_update(bundle: Path, role: str, updates: int) -> Counts:
    """One update's share of what a role's program said that it did."""
    whole, part = (_said(bundle / "steps" / launch / role / "stdout") for launch in (WHOLE, PART))
    return Counts(
        launches=(whole.launches - part.launches) / updates,
        to_device=(whole.to_device - part.to_device) / updates,
        from_device=(whole.from_device - part.from_device) / updates,
    )


def _said(stdout: Path) -> Counts:
    said = json.loads(stdout.read_text(encoding="utf-8"))["device"]
    return Counts(said["launches"], said["to_device"], said["from_device"])


def least(plan: Plan, role: Role) -> Counts:
    """The fewest launches and bytes that one update of a role can do with, whatever its kernels are like.

    State and samples stay on the card; combining, and the digest of what is held, are the host's. So:

    * down: what the role adds to the combine, the results, and every word that it holds, for its digest;
    * up: what comes of the combine, and words of other owners that it reads: parameters that it holds not,
      and those that it holds and another has computed;
    * launches: one before each time that the host is waited for, and one after the last.
    """
    system, words = plan.system, extents(plan, role)
    results = len(system.results)
    if system.local:  # nothing that is combined is read again
        launches, up, down = 1, 0, results
    elif system.forward:
        forward = system.rows * len(system.forward)
        launches, up, down = 2, forward, forward + results
    else:
        has_samples = words.samples > 0
        launches = 2 if has_samples else 1
        up = words.own_means + _of_others(plan, role)
        down = words.terms if has_samples else 0
    size = system.word.size
    return Counts(launches, up * size, (down + words.held) * size)


def _of_others(plan: Plan, role: Role) -> int:
    """Words of the state that a role is told each round: read and not held, or held and not computed."""
    if not plan.ownership.is_partitioned:
        return 0
    count = 0
    for field in plan.system.state_fields:
        owned = plan.owned(field, role).count
        is_read = any(field.name == each.name for each in plan.system.parameters)
        if not field.shared and (is_read or not plan.is_partitioned(field)):
            count += field.size - owned
    return count
