"""What a judge may ask of any launch: the right bytes ran, they ended so, they said this, they left that.

Every function is pure: a launch's files in, checks out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from evidence.canonical import CanonicalError, loads
from orchestrator.build.bind import bind
from orchestrator.oracle.checkpoint import CheckpointError
from orchestrator.oracle.reference import Version, bits, from_bits
from orchestrator.plan.model import System
from orchestrator.qualify.checks import Check, Verdict, equal, number
from orchestrator.qualify.launch import FROM_PLAN, Start
from orchestrator.qualify.view import Launched, View

FIRST_SIGNAL_EXIT = 128


def began(view: View, step: str, name: str) -> tuple[Launched | None, tuple[Check, ...]]:
    """The launch, or the check that says it never began."""
    launched = view.launch(step, name)
    if launched is None:
        return None, (Check(f"{name}-began", Verdict.UNKNOWN, (), "a launch", "nothing"),)
    return launched, ()


def right_bytes(launched: Launched, expected: Mapping[str, object]) -> tuple[Check, ...]:
    """The executables are the built programs, bound as written down, and that is as the step demands.

    Args:
        launched: the launch.
        expected: binding attributes that every role must have had.
    """
    view, name = launched.view, launched.launch.name
    differing = []
    for start in launched.launch.starts:
        program = view.program(start.role, start.program)
        made = None if program is None else hashlib.sha256(bind(program, start.binding)).hexdigest()
        if not made == start.executable_sha256 == start.node_sha256:
            differing.append(
                f"{start.role}: made {made}, written down {start.executable_sha256}, "
                f"on the node {start.node_sha256}"
            )
    inputs = (
        f"{launched.name}/launch.json",
        *(view.program_file(start.role, start.program) for start in launched.launch.starts),
    )
    wrong = [
        f"{start.role}.{key} = {getattr(start.binding, key)}"
        for start in launched.launch.starts
        for key, value in {"run_id": _run_id(view), **expected}.items()
        if getattr(start.binding, key) != value
    ]
    wrong += [
        f"{start.role} placed {file}" for start in launched.launch.starts for file in _misplaced(view, start)
    ]
    return (
        equal(
            f"{name}-executables",
            inputs,
            "program + binding = what ran, for every role",
            _all_or(differing, "program + binding = what ran, for every role"),
        ),
        equal(f"{name}-binding", inputs[:1], _shown(expected), _all_or(wrong, _shown(expected))),
    )


def _run_id(view: View) -> str:
    return view.events()[0].source


def _misplaced(view: View, start: Start) -> Iterator[str]:
    """Placed files whose source does not hold the bytes that lay there."""
    for file in start.files:
        if file.source == FROM_PLAN:
            role = next(role for role in view.planned.plan.roles if role.name == start.role)
            found = hashlib.sha256(view.planned.samples_of(role)).hexdigest()
        else:
            found = hashlib.sha256(view.bytes(file.source) or b"").hexdigest()
        if found != file.sha256:
            yield f"{file.name} (got {file.sha256}, expected {found})"


def _shown(expected: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {value}" for key, value in expected.items())


def _all_or(problems: list[str], fine: str) -> str:
    return "; ".join(problems) if problems else fine


def trained(
    launched: Launched, *, epoch: int, first: int, last: int, publish_at: int = 0
) -> tuple[Check, ...]:
    """A training launch against the reference: bytes, end, standard output, every update, checkpoints.

    Args:
        launched: the launch.
        epoch: membership epoch that it must have had.
        first: its first update; past 1, it must have resumed.
        last: its last update.
        publish_at: a version that it must have published besides the last; 0 for none.
    """
    binding = {"epoch": epoch, "mode": "train", "target": last, "publish_at": publish_at, "resume": first > 1}
    checks = right_bytes(launched, binding)
    ended = ended_well(launched)
    if ended.verdict is not Verdict.PASS:
        # what a run that was cut short computed would take as long to recompute, and decide nothing
        return (*checks, ended)
    view = launched.view
    versions = [view.version(version) for version in (publish_at, last) if version]
    results = versions[-1].results
    return (
        *checks,
        ended,
        *(published(launched, version, epoch=epoch) for version in versions),
        said(launched, epoch=epoch, mode="train", version=versions[-1], results=results),
        trajectory(launched, first, last),
    )


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


def said(
    launched: Launched, *, epoch: int, mode: str, version: Version, results: Mapping[str, float]
) -> Check:
    """Every role said exactly the reference's line on standard output."""
    problems = []
    for role in launched.view.planned.plan.roles:
        line = {
            "epoch": epoch,
            "mode": mode,
            "results": {key: bits(value) for key, value in results.items()},
            "role": role.name,
            "samples": role.samples,
            "state": version.state,
            "version": version.number,
        }
        stdout = launched.roles[role.name].stdout
        problems += [f"{role.name}: {each}" for each in _line_differences(stdout, line)]
    fine = f"version {version.number} with state {version.state[:16]} from every role"
    return equal(f"{launched.launch.name}-said", launched.files("stdout"), fine, _all_or(problems, fine))


def _line_differences(stdout: bytes, said: Mapping[str, object]) -> Iterator[str]:
    try:
        line = loads(stdout)
    except CanonicalError as error:
        yield f"stdout is not one JSON line: {error}"
        return
    if not isinstance(line, dict) or not stdout.endswith(b"\n"):
        yield "stdout is not one JSON line"
        return
    for key in sorted({*line, *said}):
        if line.get(key) != said.get(key):
            yield f"{key} is {line.get(key)!r}, expected {said.get(key)!r}"


def _label(stderr: bytes) -> str:
    return stderr.decode("utf-8", "replace").strip()[:200]


def trajectory(launched: Launched, first: int, last: int) -> Check:
    """Every role's progress is the reference's, line by line: version, state digest, loss bits."""
    view, name = launched.view, launched.launch.name
    fine = f"the reference's states and losses at updates {first} to {last}, from every role"
    for index in range(last - first + 1):
        version = view.version(first + index)
        for role, record in launched.roles.items():
            inputs = (launched.file(role, "progress"),)
            if index >= len(record.progress):
                got = f"{role}: nothing at update {version.number}"
                return Check(f"{name}-trajectory", Verdict.FAIL, inputs, fine, got)
            line = record.progress[index]
            loss = version.results["loss"]
            if (line.version, line.state, line.loss) != (version.number, version.state, bits(loss)):
                what = "state" if line.loss == bits(loss) else "loss"
                expected = f"update {version.number}: state {version.state}, loss {number(loss)}"
                words = f"state {line.state}, loss {_loss(line.loss)}"
                got = f"{role}: update {line.version}: {what} differs: {words}"
                return Check(f"{name}-trajectory", Verdict.FAIL, inputs, expected, got)
    longer = [role for role, record in launched.roles.items() if len(record.progress) != last - first + 1]
    got = f"more lines than updates from {', '.join(longer)}" if longer else fine
    return equal(f"{name}-trajectory", launched.files("progress"), fine, got)


def _loss(text: str) -> str:
    try:
        return number(from_bits(text))
    except ValueError:
        return repr(text)


def published(launched: Launched, version: Version, *, epoch: int) -> Check:
    """The published set is whole, of this run, its owners and epoch, and holds the reference's words."""
    view, name = launched.view, f"{launched.launch.name}-checkpoint-{version.number}"
    manifest = launched.manifest(version.number)
    fine = f"{_state(version)}, epoch {epoch}"
    if manifest is None:
        return Check(
            name,
            Verdict.FAIL,
            launched.files("progress"),
            fine,
            f"version {version.number} was not published",
        )
    inputs = (manifest, *launched.shards(version.number))
    try:
        found = launched.checkpoint(version.number)
    except CheckpointError as error:
        return Check(name, Verdict.FAIL, inputs, fine, str(error))
    capture = (found.version, found.epoch, found.owners, found.plan, found.run)
    wanted = (version.number, epoch, view.roles, view.planned.plan.digest, _run_id(view).replace("-", ""))
    if capture != wanted:
        return Check(name, Verdict.FAIL, inputs, str(wanted), str(capture))
    difference = first_difference(view.planned.plan.system, version.words, found.words)
    if difference:
        at, expected, got = difference
        return Check(
            name, Verdict.FAIL, inputs, f"{at} = {expected} at update {version.number}", f"{at} = {got}"
        )
    return Check(name, Verdict.PASS, inputs, fine, fine)


def _state(version: Version) -> str:
    return f"state {version.state} at update {version.number}"


def first_difference(
    system: System, expected: tuple[float, ...], got: tuple[float, ...]
) -> tuple[str, str, str] | None:
    """The first word whose bits differ: its name, what was expected, what is there; None if none differs."""
    names = (f"{field.name}[{index}]" for field in system.state_fields for index in range(field.size))
    for name, left, right in zip(names, expected, got, strict=True):
        if bits(left) != bits(right):
            return name, number(left), number(right)
    return None


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
        if record.published:
            problems.append(f"{role}: left {', '.join(record.published)}")
    fine = "; ".join(f"{role}: {label}" for role, label in labels.items())
    inputs = tuple(launched.file(role, name) for role in labels for name in ("exit", "stderr", "stdout"))
    return equal(f"{launched.launch.name}-refused", inputs, fine, _all_or(problems, fine))
