"""What a judge asks of a launch whose system declares a bound: nearness to the reference, and not its bits.

Digests of words that the reference does not have cannot be recomputed, but for versions whose words were
published. Of the others only this can be said: roles that hold the same words say the same digest.
Every function is pure: a launch's files in, checks out.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass

from evidence.canonical import dumps, loads
from orchestrator.oracle.checkpoint import CheckpointError, read_set
from orchestrator.oracle.reference import Version, from_bits, held_words, state_digest
from orchestrator.plan.model import Plan, System
from orchestrator.plan.ownership import Part
from orchestrator.qualify.checks import Check, Verdict, number
from orchestrator.qualify.compose import Wanted
from orchestrator.qualify.counts import device_line
from orchestrator.qualify.launch import ProgressLine
from orchestrator.qualify.launched import Launched
from orchestrator.qualify.result_line import result_line
from orchestrator.spec.numerics import Bound

_BITS, _DIGEST = re.compile(r"[0-9a-f]{16}"), re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Farthest:
    """The largest relative difference that was seen, and where; nowhere if every word was the reference's."""

    relative: float = 0.0
    where: str = ""

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"largest relative difference {self.relative:.3g}{place}"

    def or_of(self, expected: float, got: float, where: str) -> Farthest:
        """The farther of this one and another word."""
        if got == expected:
            return self
        relative = abs(got - expected) / abs(expected) if expected else float("inf")
        return self if relative <= self.relative else Farthest(relative, where)


@dataclass(frozen=True)
class Beyond:
    """The first word out of bounds, as expected and as it is there."""

    expected: str
    got: str


def compared(
    system: System, bound: Bound, version: Version, got: array[float]
) -> tuple[Beyond | None, Farthest]:
    """The first word of a state that is too far from the reference's, if any; and the farthest of all."""
    names = (f"{field.name}[{index}]" for field in system.state_fields for index in range(field.size))
    first, farthest = None, Farthest()
    for name, wanted, found in zip(names, version.words, got, strict=True):
        if wanted == found:
            continue
        farthest = farthest.or_of(wanted, found, name)
        if first is None and not bound.holds(wanted, found):
            expected = f"{name} = {number(wanted)} within {bound} at update {version.number}"
            first = Beyond(expected, f"{name} = {number(found)}")
    return first, farthest


def trajectory(launched: Launched, bound: Bound, wanted: Wanted, first: int) -> Check:
    """Every role's losses within the bound of the reference's, and digests as far as files can tell.

    That there is a line for every update is known.
    """
    view, name = launched.view, f"{launched.launch.name}-trajectory"
    inputs, farthest = launched.files("progress"), Farthest()
    known = {
        version: _words(launched, wanted, version)
        for version in (wanted.publish_at, wanted.target)
        if version
    }
    for index in range(wanted.target - first + 1):
        update = first + index
        lines = {role: record.progress[index] for role, record in launched.roles.items()}
        expected = from_bits(view.line(update, 0).loss)
        said = losses_differ(lines, update, expected, bound) or digests_differ(
            view.planned.plan, lines, known.get(update)
        )
        if said:
            return Check(name, Verdict.FAIL, inputs, f"update {update}: {said.expected}", said.got)
        for role, line in lines.items():
            farthest = farthest.or_of(expected, from_bits(line.loss), f"{role}'s loss at update {update}")
    fine = f"losses within {bound} of the reference's at updates {first} to {wanted.target}, from every role"
    return Check(name, Verdict.PASS, inputs, fine, f"{fine}; {farthest}")


def losses_differ(
    lines: Mapping[str, ProgressLine], update: int, expected: float, bound: Bound
) -> Beyond | None:
    """The first role whose line is of another update or form, or whose loss is too far away."""
    for role, line in lines.items():
        if line.version != update or not _DIGEST.fullmatch(line.state) or not _BITS.fullmatch(line.loss):
            shown = f"version {line.version}, state {line.state!r}, loss {line.loss!r}"
            return Beyond("version, digest and loss", f"{role}: {shown}")
        loss = from_bits(line.loss)
        if not bound.holds(expected, loss):
            return Beyond(f"loss {number(expected)} within {bound}", f"{role}: loss {number(loss)}")
    return None


def digests_differ(
    plan: Plan, lines: Mapping[str, ProgressLine], words: array[float] | None
) -> Beyond | None:
    """Roles that hold the same words say one digest, and of published words it is theirs."""
    said: dict[tuple[Part, ...], tuple[str, str]] = {}
    for role in plan.roles:
        state = lines[role.name].state
        held = tuple(plan.held(field, role) for field in plan.system.state_fields)
        other, expected = said.setdefault(held, (role.name, state))
        if state != expected:
            return Beyond(
                f"state {expected}, as {other} says of the same words", f"{role.name}: state {state}"
            )
        if words is not None and other == role.name:
            published = state_digest(held_words(plan, role, words))
            if state != published:
                return Beyond(f"state {published}, of the published words", f"{role.name}: state {state}")
    return None


def _words(launched: Launched, wanted: Wanted, version: int) -> array[float] | None:
    """The words that a launch published, or evaluated; None if there are none to be read."""
    try:
        if wanted.mode == "train":
            return launched.checkpoint(version).words
        view = launched.view
        restored = {name: view.bytes(file) or b"" for name, file in (wanted.restore or {}).items()}
        return read_set(view.planned.plan.system, restored).words
    except (CheckpointError, FileNotFoundError):
        return None  # the publication's own check has said so


def said(launched: Launched, bound: Bound, wanted: Wanted, results: Mapping[str, float]) -> Check:
    """Every role said one canonical line: results within the bound, and the digest of what it holds.

    Byte for byte but for the results, of which the bound decides.
    """
    inputs, name = launched.files("stdout"), f"{launched.launch.name}-said"
    fine = f"results of version {wanted.target} within {bound} of the reference's, from every role"
    words, farthest, problems = _words(launched, wanted, wanted.target), Farthest(), []
    plan = launched.view.planned.plan
    for role in plan.roles:
        stdout = launched.roles[role.name].stdout
        found = _results(stdout, results)
        device = device_line(launched, wanted, role)
        line = None if words is None else result_line(plan, role, wanted, words, found, device)
        if stdout != dumps(line) + b"\n":
            problems.append(
                f"{role.name}: not the line of its words: {stdout[:400].decode('utf-8', 'replace')}"
            )
        for key, value in found.items():
            farthest = farthest.or_of(results[key], value, f"{role.name}'s {key}")
            if not bound.holds(results[key], value):
                problems.append(f"{role.name}: {key} is {number(value)}, expected {number(results[key])}")
    got = "; ".join((*problems, str(farthest))) if problems else f"{fine}; {farthest}"
    return Check(name, Verdict.FAIL if problems else Verdict.PASS, inputs, fine, got)


def _results(stdout: bytes, expected: Mapping[str, float]) -> dict[str, float]:
    """The results that a line of standard output says; none if it is not of that form."""
    try:
        told = loads(stdout)["results"]
        return {key: from_bits(told[key]) for key in expected}
    except (ValueError, LookupError, TypeError):
        return {}
