"""What a judge may ask of any launch: the right bytes ran, they ended so, they said this, they left that.

Every function is pure: a launch's files in, checks out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from evidence.canonical import CanonicalError, dumps, loads
from orchestrator.build.bind import bind
from orchestrator.oracle.kinds import reference_of
from orchestrator.oracle.reference import Version, bits, from_bits, held_words, state_digest
from orchestrator.oracle.shards import shard_name
from orchestrator.qualify import approximate
from orchestrator.qualify.checks import Check, Verdict, equal, number
from orchestrator.qualify.compose import Wanted, compose
from orchestrator.qualify.counts import calls_as_counted, device_line
from orchestrator.qualify.endpoints import Ports, Way
from orchestrator.qualify.launch import ProgressLine
from orchestrator.qualify.launched import Launched
from orchestrator.qualify.publication_checks import holds_its_own, published, publishes
from orchestrator.qualify.result_line import result_line
from orchestrator.qualify.view import View

FIRST_SIGNAL_EXIT = 128


def began(view: View, step: str, name: str) -> tuple[Launched | None, tuple[Check, ...]]:
    """The launch, or the check that says it never began."""
    launched = view.launch(step, name)
    if launched is None:
        return None, (Check(f"{name}-began", Verdict.UNKNOWN, (), "a launch", "nothing"),)
    return launched, ()


def as_asked(launched: Launched, wanted: Wanted) -> Check:
    """What was launched is what the step asks for: roles, programs, bindings, files and their bytes, nodes.

    The ports and the secret are the acting side's to choose: one secret for a launch, one port for a role
    with children, and one for each tunnel to it.
    """
    view, name = launched.view, launched.launch.name
    secret = launched.launch.starts[0].binding.secret
    ends = view.wiring.ends(_ports(launched, wanted))
    expected = {start.role: start for start in compose(view, wanted, ends=ends, secret=secret).starts}
    found = {start.role: start for start in launched.launch.starts}
    problems = [] if list(expected) == list(found) else [f"roles {', '.join(found)}"]
    is_named = name == launched.name.rpartition("/")[2] == wanted.name
    if len(found) != len(launched.launch.starts) or not is_named:
        problems.append("a role twice, or another launch's name")
    for role in (role for role in expected if role in found):  # in order: a judge says the same each time
        placed = replace(
            expected[role],
            node=view.wiring.placement[role],
            executable_sha256=found[role].executable_sha256,
            node_sha256=found[role].node_sha256,
        )
        problems += _differing(role, placed.as_json(), found[role].as_json())
    problems += [
        f"{file} holds other bytes" for file, data in wanted.placed.items() if view.bytes(file) != data
    ]
    inputs = (f"{launched.name}/launch.json", *wanted.placed)
    fine = "what the step asks for"
    return equal(f"{name}-as-asked", inputs, fine, _all_or(problems, fine))


def _ports(launched: Launched, wanted: Wanted) -> Ports:
    """The ports that were chosen, each as the first role bound to it has it; a step may name one."""
    wiring, starts = launched.view.wiring, {start.role: start for start in launched.launch.starts}
    listening = {role: starts[role].bound.port for role in wiring.listeners if role in starts}
    for role, parent in wiring.parents.items():
        if (
            role in starts and role not in wiring.ways
        ):  # a parent that was not started is known by who dials it
            listening.setdefault(parent, starts[role].bound.parent_port)
    if wanted.port is not None:
        listening[launched.view.roles[0]] = wanted.port
    tunnels: dict[Way, int] = {}
    for role, way in wiring.ways.items():
        if role in starts:
            tunnels.setdefault(way, starts[role].bound.parent_port)
    return Ports(listening, tunnels)


def _differing(role: str, expected: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    for key, value in expected.items():
        if found[key] == value:
            continue
        if isinstance(value, dict):
            yield from _differing(f"{role} {key}", value, found[key])
        else:
            yield f"{role} {key} is {found[key]}, expected {value}"


def executables(launched: Launched) -> Check:
    """The executables are the built programs bound as written down, as made here and as read back there."""
    view = launched.view
    differing = []
    for start in launched.launch.starts:
        program = view.program(start.role, start.program)
        made = None if program is None else hashlib.sha256(bind(program, start.bound)).hexdigest()
        if not made == start.executable_sha256 == start.node_sha256:
            written = f"written down {start.executable_sha256}, on the node {start.node_sha256}"
            differing.append(f"{start.role}: made {made}, {written}")
    programs = (view.program_file(start.role, start.program) for start in launched.launch.starts)
    fine = "program + binding = what ran, for every role"
    inputs = (f"{launched.name}/launch.json", *programs)
    return equal(f"{launched.launch.name}-executables", inputs, fine, _all_or(differing, fine))


def _all_or(problems: list[str], fine: str) -> str:
    return "; ".join(problems) if problems else fine


def trained(launched: Launched, wanted: Wanted, *, first: int) -> tuple[Check, ...]:
    """A training launch against the reference: bytes, end, standard output, every update, checkpoints.

    Args:
        launched: the launch.
        wanted: what its step asks for.
        first: its first update; past 1 where it resumes.
    """
    versions = tuple(version for version in (wanted.publish_at, wanted.target) if version)
    ended = ended_well(launched)
    left = left_only(launched, wanted, versions, updates=wanted.target - first + 1)
    checks = (as_asked(launched, wanted), executables(launched), ended, left)
    if not ended.verdict is left.verdict is Verdict.PASS:
        # what a run that was cut short computed would take as long to recompute, and decide nothing
        return checks
    view = launched.view
    end = view.version(wanted.target)
    return (
        *checks,
        *(published(launched, view.version(version), epoch=wanted.epoch) for version in versions),
        said(launched, wanted, end, end.results),
        trajectory(launched, wanted, first),
        *calls_as_counted(launched, wanted),
    )


def left_only(launched: Launched, wanted: Wanted, versions: tuple[int, ...], *, updates: int) -> Check:
    """Every role left exactly what it publishes, of exactly its words, and one line for every update."""
    plan, problems = launched.view.planned.plan, []
    for role in plan.roles:
        record = launched.roles[role.name]
        expected = [name for version in versions for name in publishes(plan, role, version)]
        if sorted(expected) != list(record.checkpoint):
            problems.append(f"{role.name} left {', '.join(record.checkpoint) or 'no checkpoint'}")
        problems += [
            f"{shard_name(version, role.name)} holds other words than {role.name}'s"
            for version in versions
            if shard_name(version, role.name) in record.checkpoint
            and not holds_its_own(launched, wanted, role, version)
        ]
        if len(record.progress) != updates or not record.is_progress_whole:
            problems.append(f"{role.name} left {len(record.progress)} lines of progress")
    fine = (
        f"its own shards of versions {', '.join(map(str, versions)) or 'none'}, {updates} lines of progress"
    )
    return equal(f"{launched.launch.name}-left", launched.files("progress"), fine, _all_or(problems, fine))


def ended_well(launched: Launched) -> Check:
    """Every role ended with exit 0 and nothing on standard error."""
    fine = "exit 0 and no complaint from every role"
    problems = [
        f"{role}: exit {record.exit}, {_label(record.stderr) or 'no label'}"
        for role, record in launched.roles.items()
        if record.exit != 0 or record.stderr
    ]
    inputs = (*launched.files("exit"), *launched.files("stderr"))
    return equal(f"{launched.launch.name}-ended", inputs, fine, _all_or(problems, fine))


def said(launched: Launched, wanted: Wanted, version: Version, results: Mapping[str, float]) -> Check:
    """Every role said exactly the reference's line on standard output, byte for byte; or within its bound."""
    problems, plan = [], launched.view.planned.plan
    if plan.system.bound is not None:
        return approximate.said(launched, plan.system.bound, wanted, results)
    for role in plan.roles:
        device = device_line(launched, wanted, role)
        line = result_line(plan, role, wanted, version.words, results, device)
        stdout = launched.roles[role.name].stdout
        if stdout != dumps(line) + b"\n":
            problems += [f"{role.name}: {each}" for each in _line_differences(stdout, line)]
    fine = f"version {version.number} with what it holds of state {version.state[:16]} from every role"
    return equal(f"{launched.launch.name}-said", launched.files("stdout"), fine, _all_or(problems, fine))


def _line_differences(stdout: bytes, said: Mapping[str, object]) -> Iterator[str]:
    try:
        line = loads(stdout)
    except CanonicalError as error:
        yield f"stdout is not one JSON line: {error}"
        return
    keys = sorted({*line, *said}) if isinstance(line, dict) else ()
    differing = [key for key in keys if line.get(key) != said.get(key)]
    yield from (f"{key} is {line.get(key)!r}, expected {said.get(key)!r}" for key in differing)
    if not differing:
        yield "stdout is not one canonical JSON line"


def _label(stderr: bytes) -> str:
    return stderr.decode("utf-8", "replace").strip()[:200]


def trajectory(launched: Launched, wanted: Wanted, first: int) -> Check:
    """Every role's progress is the reference's, line by line; that there is one for every update is known."""
    view, name, last = launched.view, f"{launched.launch.name}-trajectory", wanted.target
    bound = view.planned.plan.system.bound
    if bound is not None:
        return approximate.trajectory(launched, bound, wanted, first)
    fine = f"the reference's states and losses at updates {first} to {last}, from every role"
    for index in range(last - first + 1):
        for place, (role, record) in enumerate(launched.roles.items()):
            reference, line = view.line(first + index, place), record.progress[index]
            if line != reference:
                inputs = (launched.file(role, "progress"),)
                what = "state" if line.loss == reference.loss else "loss"
                expected = (
                    f"update {reference.version}: state {reference.state}, loss {_loss(reference.loss)}"
                )
                words = f"state {line.state}, loss {_loss(line.loss)}"
                got = f"{role}: update {line.version}: {what} differs: {words}"
                return Check(name, Verdict.FAIL, inputs, expected, got)
    return Check(name, Verdict.PASS, launched.files("progress"), fine, fine)


def order_kept(launched: Launched) -> Check:
    """Over the witness's words every role's line is the reference's: in another order it is another."""
    planned = launched.view.witness
    version = reference_of(planned.plan, planned.words).at(1)
    problems = []
    for role in planned.plan.roles:
        held = state_digest(held_words(planned.plan, role, version.words))
        expected = [ProgressLine(1, held, bits(version.results["loss"]))]
        if list(launched.roles[role.name].progress) != expected:
            problems.append(f"{role.name} added in another order")
    fine = "totals that only the declared order has"
    return equal(f"{launched.launch.name}-kept", launched.files("progress"), fine, _all_or(problems, fine))


def _loss(text: str) -> str:
    try:
        return number(from_bits(text))
    except ValueError:
        return repr(text)


def refused(launched: Launched, labels: Mapping[str, str]) -> Check:
    """Each role ended nonzero of its own will, said exactly its label, printed and committed nothing."""
    problems = []
    for role, label in labels.items():
        record = launched.roles[role]
        if record.exit is None or not 0 < record.exit < FIRST_SIGNAL_EXIT:
            problems.append(f"{role}: exit {record.exit}")
        if record.stderr != f"{label}\n".encode():
            problems.append(f"{role}: said {_label(record.stderr)!r}")
        if record.stdout:
            problems.append(f"{role}: printed {len(record.stdout)} bytes")
        if record.checkpoint or record.progress:
            problems.append(f"{role}: left {', '.join(record.checkpoint) or 'progress'}")
    fine = "; ".join(f"{role}: {label}" for role, label in labels.items())
    inputs = tuple(launched.file(role, name) for role in labels for name in ("exit", "stderr", "stdout"))
    return equal(f"{launched.launch.name}-refused", inputs, fine, _all_or(problems, fine))
