"""What a judge may ask of a publication: whose words each file holds, and that they are the reference's.

Every function is pure: a launch's files in, checks out.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from orchestrator.oracle.checkpoint import MANIFEST, CheckpointError, manifest_name, part_name
from orchestrator.oracle.manifest import Capture
from orchestrator.oracle.publication import write_as
from orchestrator.oracle.reference import Version, bits
from orchestrator.oracle.shards import header, is_right, regions_of, shard_name
from orchestrator.plan.model import Plan, System
from orchestrator.plan.roles import Role
from orchestrator.qualify import approximate
from orchestrator.qualify.checks import Check, Verdict, number
from orchestrator.qualify.compose import Wanted
from orchestrator.qualify.launched import Launched
from orchestrator.qualify.view import View


def publishes(plan: Plan, role: Role, version: int) -> Iterator[str]:
    """Files that a role leaves of a version."""
    if regions_of(plan, role):
        yield shard_name(version, role.name)
    if role.index == 0:
        yield manifest_name(version)
    elif plan.topology.children(role.index):
        yield part_name(version, role.name)


def holds_its_own(launched: Launched, wanted: Wanted, role: Role, version: int) -> bool:
    """Whether a role's shard is of exactly the regions that the plan has it publish."""
    view, plan = launched.view, launched.view.planned.plan
    data = view.bytes(launched.file(role.name, f"checkpoint/{shard_name(version, role.name)}")) or b""
    regions = regions_of(plan, role)
    word = plan.system.word
    start = header(plan.system.digest, version, _capture(view, wanted.epoch), regions, word)
    return is_right(data, start, regions, word)


def _capture(view: View, epoch: int) -> Capture:
    """Of what the run's own plan computes in an epoch."""
    return Capture(epoch, view.planned.plan.digest, view.run_id.replace("-", ""))


def published(launched: Launched, version: Version, *, epoch: int) -> Check:
    """The published set is whole, of this run, its owners and epoch, and holds the reference's words.

    Where the system declares a bound they are within it.

    Every file is byte for byte what the plan's roles write of them; only the time is theirs to say.
    """
    view, name = launched.view, f"{launched.launch.name}-checkpoint-{version.number}"
    plan, manifest = view.planned.plan, launched.manifest(version.number)
    like = f"state {version.state}" if plan.system.bound is None else f"words within {plan.system.bound}"
    fine = f"{like} at update {version.number}, epoch {epoch}"
    inputs = launched.files("progress")
    if manifest is None:
        got = f"version {version.number} was not published"
        return Check(name, Verdict.FAIL, inputs, fine, got)
    inputs = (manifest, *launched.pieces(version.number))
    try:
        found = launched.checkpoint(version.number)
    except CheckpointError as error:
        return Check(name, Verdict.FAIL, inputs, fine, str(error))
    capture = (found.version, found.epoch, found.owners, found.plan, found.run)
    own = _capture(view, epoch)
    wanted = (version.number, epoch, len(view.roles), own.plan, own.run)
    if capture != wanted:
        return Check(name, Verdict.FAIL, inputs, str(wanted), str(capture))
    wrong, how_near = unlike(plan.system, version, found.words)
    if wrong is not None:
        return Check(name, Verdict.FAIL, inputs, *wrong)
    written = write_as(plan, version.number, found.words, own, time_ms=found.time_ms)
    there = launched.published(version.number)
    there[manifest_name(version.number)] = there.pop(MANIFEST)
    differing = sorted(file for file in written.keys() | there if written.get(file) != there.get(file))
    if differing:
        got = f"{', '.join(differing)} of other words or another form"
        return Check(name, Verdict.FAIL, inputs, "the files that the plan's roles write", got)
    return Check(name, Verdict.PASS, inputs, fine, f"{fine}{how_near}")


def unlike(system: System, version: Version, found: array[float]) -> tuple[tuple[str, str] | None, str]:
    """The first word that is not the reference's, or not within its bound, as expected and as it is there.

    With it how near they are, where a bound was declared.
    """
    if system.bound is not None:
        beyond, farthest = approximate.compared(system, system.bound, version, found)
        if beyond is not None:
            return (beyond.expected, f"{beyond.got}; {farthest}"), ""
        return None, f"; {farthest}"
    difference = first_difference(system, version.words, found)
    if difference is None:
        return None, ""
    at, expected, got = difference
    return (f"{at} = {expected} at update {version.number}", f"{at} = {got}"), ""


def first_difference(
    system: System, expected: array[float], got: array[float]
) -> tuple[str, str, str] | None:
    """The first word whose bits differ: its name, what was expected, what is there; None if none differs."""
    if expected.tobytes() == got.tobytes():  # most often; in one look
        return None
    names = (f"{field.name}[{index}]" for field in system.state_fields for index in range(field.size))
    for name, left, right in zip(names, expected, got, strict=True):
        if bits(left) != bits(right):
            return name, number(left), number(right)
    return None
