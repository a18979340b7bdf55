"""A role's part of a launch of the user's own program, made from what a step wants.

Pure: the same words over the same bundle give the same start.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.plan.command import CommandPlan
from orchestrator.qualify.command.invocation import IN, NO_LIMIT, OUT, PROGRESS, SETUP, WORK, Invocation
from orchestrator.qualify.launch import OTHER, OWN, PlacedFile, Start
from orchestrator.spec.program import PLACEHOLDER, SourceFile

if TYPE_CHECKING:
    from orchestrator.qualify.compose import Wanted
    from orchestrator.qualify.view import View

REFERENCE = "reference"
NOWHERE = "/dev/null"
_SETUP = "setup-"
RESTORE = IN.partition("/")[0]


def setup_program(number: int) -> str:
    """What a start's `program` is called that runs a setup command, counted from 1."""
    return f"{_SETUP}{number}"


# what programs cache by custom in HOME lies in the run's own folder, and goes with it
_CACHE = ("XDG_CACHE_HOME", f"{SETUP}/cache")


def start(view: View, plan: CommandPlan, wanted: Wanted, role: str) -> Start:
    """What starts as one role.

    Args:
        view: the bundle, its `placed` files written.
        plan: whose program it is.
        wanted: what the step asks for; `restore` names begin with the role that they are for.
        role: its name.
    """
    program, deadlines = plan.program, view.lane.deadlines
    which = wanted.programs.get(role, OWN)
    is_setup = which.startswith(_SETUP)
    run_ms = program.setup_deadline_ms if is_setup else deadlines.run_ms
    values = _values(plan, wanted, role, run_ms)
    if wanted.file_blocks == 0:
        values["progress"] = NOWHERE  # no file can grow at all, and a device is none
    argv, files = _program(plan, which)
    told = () if is_setup else _contract(values)
    invocation = Invocation(
        argv=tuple(_filled(word, values) for word in argv),
        environment=(_CACHE, *((name, _filled(text, values)) for name, text in program.environment), *told),
        inherit=program.inherit,
        target=wanted.target,
        resume=wanted.restore is not None,
        file_blocks=NO_LIMIT if wanted.file_blocks is None else wanted.file_blocks,
        folder=SETUP if is_setup else f"{WORK}/{Path(OUT).parent}",
        connect_ms=deadlines.connect_ms,
        round_ms=deadlines.round_ms,
        run_ms=run_ms,
    )
    placed = [PlacedFile(file.name, file.sha256, source(view, file)) for file in files]
    placed += [] if is_setup else _inputs(view, program.uses, wanted)
    placed += _restored(view, wanted, role)
    return Start(role, which, invocation, tuple(placed))


def source(view: View, file: SourceFile) -> str:
    """Name in the bundle of a file that was declared."""
    return Path(os.path.relpath(file.path, view.bundle)).as_posix()


def input_name(file: SourceFile) -> str:
    """Where an input lies in a work folder."""
    return f"uses/{file.name}/{file.path.name}"


def _program(plan: CommandPlan, which: str) -> tuple[tuple[str, ...], tuple[SourceFile, ...]]:
    program = plan.program
    if which == OWN:
        return program.argv, program.files
    if which == REFERENCE and program.reference is not None:
        return program.reference.argv, program.reference.files
    if which == OTHER and program.other is not None:
        return program.other, program.files
    return program.setup[int(which.removeprefix(_SETUP)) - 1], program.files


def _values(plan: CommandPlan, wanted: Wanted, role: str, run_ms: int) -> dict[str, str]:
    """Placeholder -> what stands in its place."""
    return {
        "updates": str(wanted.target),
        "in": "" if wanted.restore is None else f"{WORK}/{IN}",
        "out": f"{WORK}/{OUT}",
        "progress": f"{WORK}/{PROGRESS}",
        "role": role,
        "deadline_ms": str(run_ms),
        "device": "",
        "setup": SETUP,
        "work": WORK,
        **{f"uses.{file.name}": f"{WORK}/{input_name(file)}" for file in plan.program.uses},
    }


def _contract(values: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """The variables by which a program is told the same as by placeholders."""
    return (
        ("ORCH_ROLE", values["role"]),
        ("ORCH_UPDATES", values["updates"]),
        ("ORCH_CHECKPOINT_IN", values["in"]),
        ("ORCH_CHECKPOINT_OUT", values["out"]),
        ("ORCH_PROGRESS", values["progress"]),
        ("ORCH_DEADLINE_MS", values["deadline_ms"]),
        ("ORCH_DEVICE_UUID", values["device"]),
    )


def _filled(text: str, values: dict[str, str]) -> str:
    """Text with its placeholders filled in; other braces are the program's own."""
    return PLACEHOLDER.sub(lambda match: values[match[1]], text)


def _inputs(view: View, uses: tuple[SourceFile, ...], wanted: Wanted) -> list[PlacedFile]:
    found = []
    for file in uses:
        altered = wanted.inputs.get(file.name)
        digest = file.sha256 if altered is None else view.digest(altered)
        found.append(PlacedFile(input_name(file), digest, altered or source(view, file)))
    return found


def _restored(view: View, wanted: Wanted, role: str) -> list[PlacedFile]:
    prefix = f"{role}/"
    return [
        PlacedFile(f"{RESTORE}/{name.removeprefix(prefix)}", view.digest(file), file)
        for name, file in sorted((wanted.restore or {}).items())
        if name.startswith(prefix)
    ]
