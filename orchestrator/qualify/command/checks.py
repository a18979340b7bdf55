"""What a judge may ask of any launch of the user's own program: what ran, how it ended, what it left.

Every function is pure: a launch's files in, checks out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from orchestrator.errors import Label
from orchestrator.qualify.checks import Check, Verdict, equal
from orchestrator.qualify.command import progress, state
from orchestrator.qualify.command.digests import files_digest
from orchestrator.qualify.command.invocation import PROGRESS
from orchestrator.qualify.command.tensors import TensorsError
from orchestrator.qualify.compose import Wanted
from orchestrator.qualify.launch_checks import FIRST_SIGNAL_EXIT, as_asked
from orchestrator.qualify.launched import Launched
from orchestrator.spec.program import Looks

LAST_LINES = 3
_SHOWN = 400
_SEARCHED = 1 << 16  # bytes of standard error, from its end


def asked(launched: Launched, wanted: Wanted) -> tuple[Check, ...]:
    """What started is what the step asks for, and what was read back on the nodes is what was sent."""
    problems = [
        f"{start.role}: sent {start.executable_sha256}, on the node {start.node_sha256}"
        for start in launched.launch.starts
        if not files_digest(start.files) == start.executable_sha256 == start.node_sha256
    ]
    fine = "the declared files beside every program"
    inputs = (f"{launched.name}/launch.json",)
    files = equal(f"{launched.launch.name}-files", inputs, fine, "; ".join(problems) or fine)
    return (as_asked(launched, wanted), files)


def trained(launched: Launched, wanted: Wanted, *, first: int) -> tuple[Check, ...]:
    """A launch that must succeed: its end, its progress, and something whole under the published name.

    Args:
        launched: the launch.
        wanted: what its step asks for.
        first: its first update; past the target where there is nothing left to do.
    """
    checks = (*asked(launched, wanted), ended(launched))
    if checks[-1].verdict is not Verdict.PASS:
        return checks
    return (*checks, went_forward(launched, first, wanted.target), whole(launched))


def ended(launched: Launched) -> Check:
    """Every role ended with exit 0; what it says on standard error is its own affair."""
    fine = "exit 0 from every role"
    problems = [
        f"{role}: exit {record.exit}, {last_lines(record.stderr) or 'nothing on stderr'}"
        for role, record in launched.roles.items()
        if record.exit != 0
    ]
    inputs = (*launched.files("exit"), *launched.files("stderr"))
    return equal(f"{launched.launch.name}-ended", inputs, fine, "; ".join(problems) or fine)


def set_up(launched: Launched) -> Check:
    """A setup command ended with exit 0 on every node."""
    node_of = launched.view.wiring.placement
    problems = [
        f"{Label.SETUP_FAILED}: {node_of[role]}: exit {record.exit}: "
        + (last_lines(record.stderr) or last_lines(record.stdout) or "it said nothing")
        for role, record in launched.roles.items()
        if record.exit != 0
    ]
    inputs = tuple(file for name in ("exit", "stderr", "stdout") for file in launched.files(name))
    fine = "exit 0 on every node"
    return equal(f"{launched.launch.name}-ended", inputs, fine, "; ".join(problems) or fine)


def last_lines(stderr: bytes) -> str:
    """The last lines of what a program complained of, in one."""
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    return " / ".join(lines[-LAST_LINES:])[-_SHOWN:]


def lines_of(launched: Launched, role: str) -> tuple[progress.Line, ...]:
    """The lines of a role's progress, up to the first that is none."""
    return progress.parse(launched.view.bytes(launched.file(role, PROGRESS)) or b"")[0]


def went_forward(launched: Launched, first: int, last: int) -> Check:
    """What a role says of its updates goes forward, within those asked for, and its losses are finite."""
    problems = []
    for role in launched.roles:
        lines, wrong = progress.parse(launched.view.bytes(launched.file(role, PROGRESS)) or b"")
        if wrong := wrong or progress.fault(lines, first, last):
            problems.append(f"{role}: {wrong}")
    fine = f"updates within {first} to {last}" if first <= last else "no update"
    return equal(
        f"{launched.launch.name}-progress", launched.files(PROGRESS), fine, "; ".join(problems) or fine
    )


def whole(launched: Launched) -> Check:
    """Every role published something that can be compared."""
    problems, inputs = [], []
    for role in launched.roles:
        found = state.published(launched.view, launched.name, role)
        strangers = launched.view.bytes(launched.file(role, state.STRANGERS))
        inputs += list(found.names.values()) if found else [launched.file(role, "exit")]
        if strangers:
            problems.append(f"{role}: not plain files: {_strangers(strangers)}")
        elif found is None:
            problems.append(f"{role} published nothing under {{out}}")
        elif wrong := found.fault():
            problems.append(f"{role}: {wrong}")
    fine = "a whole checkpoint from every role"
    return equal(f"{launched.launch.name}-published", inputs, fine, "; ".join(problems) or fine)


def _strangers(listed: bytes) -> str:
    return ", ".join(listed.decode("utf-8", "replace").splitlines())[:_SHOWN]


def same_progress(expected: Launched, got: Launched, *, begin: int) -> tuple[int, str]:
    """The first update of which a role says something else in two launches, and what; (0, "") if none.

    Only updates of which both could speak count: from `begin` to the end of the second.
    """
    found: list[tuple[int, str]] = []
    last = got.launch.starts[0].called.target
    for role in got.roles:
        left, right = lines_of(expected, role), lines_of(got, role)
        left = tuple(line for line in left if begin <= line.update <= last)
        update, what = progress.first_difference(left, right)
        if what:
            found.append((update, f"{role}: {what}"))
    return min(found, default=(0, ""))


def same_state(expected: Launched, got: Launched) -> str | None:
    """What differs first in what two launches published; empty if nothing, None if that cannot be said."""
    for role in got.roles:
        left, right = (state.published(each.view, each.name, role) for each in (expected, got))
        if left is None or right is None:
            return None
        try:
            said = state.difference(left, right)
        except TensorsError:
            return None
        if said:
            return f"{role}: {said}"
    return ""


def refused(launched: Launched, looks: Looks) -> Check:
    """A refusal as the run declares it: nonzero, said so, and nothing done, by every role.

    Of several roles one has to say it: its end may be what ends the others.
    """
    problems, said_so = [], False
    for role, record in launched.roles.items():
        if record.exit in (None, 0):
            problems.append(f"{role}: exit {record.exit}")
        if state.published(launched.view, launched.name, role) is not None:
            problems.append(f"{role}: published a checkpoint")
        if launched.view.bytes(launched.file(role, PROGRESS)):
            problems.append(f"{role}: made updates")
        if strangers := launched.view.bytes(launched.file(role, state.STRANGERS)):
            problems.append(f"{role}: left what is not plain: {_strangers(strangers)}")
        said_so = said_so or _is_like(record.exit, record.stderr, looks)
    if not said_so and not problems:
        spoken = (f"{role}: exit {r.exit}, {last_lines(r.stderr)!r}" for role, r in launched.roles.items())
        problems.append("; ".join(spoken))
    fine = shown(looks)
    inputs = (*launched.files("exit"), *launched.files("stderr"))
    return equal(f"{launched.launch.name}-refused", inputs, fine, "; ".join(problems) or fine)


def _is_like(code: int | None, stderr: bytes, looks: Looks) -> bool:
    if code is None or not 0 < code < FIRST_SIGNAL_EXIT or looks.exit not in (None, code):
        return False
    said = stderr[-_SEARCHED:].decode("utf-8", "replace")
    return looks.stderr is None or re.search(looks.stderr, said) is not None


def shown(looks: Looks) -> str:
    """A refusal's looks, for people."""
    code = "nonzero" if looks.exit is None else str(looks.exit)
    said = "" if looks.stderr is None else f", stderr like {looks.stderr!r}"
    return f"exit {code}{said}; nothing published, no update"


def absent_or_whole(launched: Launched, base: Launched) -> tuple[Check, ...]:
    """A program whose writing was cut: it says no success, and nothing torn has the published name.

    Args:
        launched: the launch whose files could not grow to their full size.
        base: the launch that was asked for the same, without a limit.
    """
    name = launched.launch.name
    inputs = (*launched.files("exit"), *launched.files(PROGRESS))
    exits = [f"{role}: exit {record.exit}" for role, record in launched.roles.items()]
    cut = any(record.exit not in (None, 0) for record in launched.roles.values())
    checks = (
        equal(f"{name}-is-not-success", inputs, "nonzero", "nonzero" if cut else "; ".join(exits)),
        _reached(launched, base),
    )
    return (*checks, _torn(launched, base))


def _reached(launched: Launched, base: Launched) -> Check:
    """The cut came where the checkpoint was written: all updates were made before."""
    name, inputs = f"{launched.launch.name}-reached-the-checkpoint", launched.files(PROGRESS)
    fine = "the updates of the base run, then the cut"
    if launched.launch.starts[0].called.file_blocks == 0:
        got = "the checkpoint is too small for progress to be written beside a limit that cuts it"
        return Check(name, Verdict.NOT_APPLICABLE, inputs, fine, got)
    asked_for, spoken = (
        {role: [line.update for line in lines_of(each, role)] for role in each.roles}
        for each in (base, launched)
    )
    is_there = spoken == asked_for
    verdict = Verdict.PASS if is_there else Verdict.UNKNOWN
    return Check(name, verdict, inputs, fine, fine if is_there else f"updates {spoken}")


def _torn(launched: Launched, base: Launched) -> Check:
    problems: list[str] = []
    inputs: list[str] = []
    for role in launched.roles:
        found, full = (state.published(each.view, each.name, role) for each in (launched, base))
        if strangers := launched.view.bytes(launched.file(role, state.STRANGERS)):
            problems.append(f"{role}: torn: {_strangers(strangers)}")
        if found is None or full is None:
            continue
        inputs += found.names.values()
        try:
            said = state.difference(full, found)
        except TensorsError as error:
            said = str(error)
        if said:
            problems.append(f"{role}: torn: {said}")
    fine = "nothing, or all of the checkpoint, under the published name"
    return equal(f"{launched.launch.name}-left-nothing-torn", inputs, fine, "; ".join(problems) or fine)


def beside_reference(launched: Launched, reference: Launched, tolerance: tuple[float, float]) -> Check:
    """What a launch published against what the declared reference did.

    Args:
        launched: the program's launch.
        reference: the reference's launch, asked for the same version.
        tolerance: relative and absolute; both 0 for no difference at all.
    """
    name = f"{launched.launch.name}-equals-reference"
    fine = f"what the reference published{_within(tolerance)}"
    role = next(iter(reference.roles))
    left = state.published(reference.view, reference.name, role)
    founds = [state.published(launched.view, launched.name, each) for each in launched.roles]
    inputs = [file for each in (left, *founds) if each for file in each.names.values()]
    if left is None or None in founds:
        return Check(name, Verdict.UNKNOWN, tuple(inputs), fine, "one of them published nothing")
    try:
        said = _beyond(left, [each for each in founds if each], tolerance)
    except TensorsError as error:
        said = str(error)
    return equal(name, inputs, fine, said or fine)


def _beyond(left: state.State, founds: list[state.State], tolerance: tuple[float, float]) -> str:
    from orchestrator.qualify.command.tensors import Tensor, beyond

    if left.kind != "tensors":
        return state.difference(left, founds[0])
    held: Mapping[str, Tensor] = {
        name: tensor for each in reversed(founds) for name, tensor in each.tensors().items()
    }
    return beyond(left.tensors(), held, relative=tolerance[0], absolute=tolerance[1])


def _within(tolerance: tuple[float, float]) -> str:
    relative, absolute = tolerance
    if not relative and not absolute:
        return ", bit by bit"
    return f", within {relative:g} of each word" + (f" and {absolute:g}" if absolute else "")
