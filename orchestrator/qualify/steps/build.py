"""Build: one program per role from the plan, checked as ELF files, before anything is sent anywhere.

Also the one program that a control needs, the last role's of another plan, and those of the order's witness.
"""

from __future__ import annotations

from evidence.canonical import dumps
from evidence.files import write_whole
from orchestrator.build.compile import Made, Program, build_programs
from orchestrator.build.elf import verify
from orchestrator.plan.derive import Planned, other_plan
from orchestrator.qualify.checks import Check, equal
from orchestrator.qualify.command import series
from orchestrator.qualify.launch import OTHER, OWN, SWAPPED, WITNESS
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.session import Session
from orchestrator.qualify.steps import refusals
from orchestrator.qualify.view import PROGRAM_FOLDERS, View

NAME = "build"
DOES = "renders and compiles one program per role for its target, one more for the witness, one for a control"
CHECKS = (
    "plan.json is the plan of the bundle's own specs",
    "every program is whole: right machine, static, no writable and executable segment, this plan",
)


_LABELS = {
    OWN: "program",
    SWAPPED: "swapped-program",
    OTHER: "control-program",
    WITNESS: "witness-program",
}


def wanted(view: View) -> tuple[tuple[str, Planned, tuple[str, ...]], ...]:
    """What is built: (which, plan, roles).

    A run of one role has no one to mistake, so no control program; nor has a lane without controls. Where no
    order was declared there is none to witness.
    """
    planned, names = view.planned, view.roles
    controls = names[-1:] if len(names) > 1 and refusals.NAME not in view.lane.omit else ()
    ordered = () if view.planned.plan.system.bound is not None else controls
    return (
        (OWN, planned, names),
        (SWAPPED, planned, names if view.lane.swap else ()),
        (OTHER, other_plan(planned), controls),
        (WITNESS, view.witness, names if ordered else ()),
    )


def act(launcher: Launcher) -> None:
    """Builds, and writes the programs with their digests into the bundle."""
    if (plan := launcher.session.view.command) is not None:
        series.act(launcher, plan)
        return
    session = launcher.session
    listing: dict[str, dict[str, object]] = {}
    for which, planned, names in wanted(session.view):
        targets = session.view.targets_of(which)
        pairings = [(role, Made(targets[role.name])) for role in planned.plan.roles if role.name in names]
        if not pairings:
            continue
        folder = launcher.attempt.folder / PROGRAM_FOLDERS[which]
        folder.mkdir(parents=True, exist_ok=True)
        programs = build_programs(
            planned.plan, pairings, session.content_root, session.cache, check=session.limits.check
        )
        for program in programs:
            write_whole(folder / f"{program.role}.elf", program.data)
            session.programs[program.role, which] = program
            listing[f"{PROGRAM_FOLDERS[which]}/{program.role}.elf"] = _entry(program)
    write_whole(launcher.attempt.folder / "programs.json", dumps(listing))


def load(session: Session) -> None:
    """Takes the programs of a finished build step from the bundle: a resumed lane compiles nothing again."""
    view = session.view
    if view.command is not None:
        return  # there is nothing but the declared files, and those are in the bundle
    for which, _, names in wanted(session.view):
        for name in names:
            program = view.program(name, which)
            if program is not None:
                session.programs[name, which] = program


def judge(view: View) -> tuple[Check, ...]:
    """The plan derived again, and every program read as an ELF file."""
    folder = view.attempt(NAME)
    plan = view.plan
    recorded = view.json("plan.json") or {}
    fine = "the plan of the bundle's own specs"
    checks = [
        equal("plan", ("plan.json", "specs/index.json"), plan.digest, recorded.get("digest")),
        equal("plan-file", ("plan.json",), fine, fine if recorded == plan.file_json() else "something else"),
    ]
    if view.command is not None:
        return (*checks, *series.judge(view, view.command, NAME))
    listing = view.json(f"{folder}/programs.json") or {}
    listed = sorted(listing)
    files = sorted(
        f"{PROGRAM_FOLDERS[which]}/{name}.elf" for which, _, names in wanted(view) for name in names
    )
    checks.append(equal("programs", (f"{folder}/programs.json",), files, listed))
    for which, planned, names in wanted(view):
        for name in names:
            file = f"{PROGRAM_FOLDERS[which]}/{name}.elf"
            label = f"{name}-{_LABELS[which]}"
            target = view.targets_of(which)[name]
            fine = f"static {target} program of plan {planned.plan.digest[:16]}"
            got = _faults(view.bytes(f"{folder}/{file}"), planned, (name, target), listing.get(file))
            checks.append(equal(label, (f"{folder}/{file}", f"{folder}/programs.json"), fine, got or fine))
    return tuple(checks)


def _faults(data: bytes | None, planned: Planned, made: tuple[str, str], recorded: object) -> str:
    """What is wrong with a program's file, made for a role and a target; empty if nothing is."""
    if data is None:
        return "nothing"
    role, target = made
    problems = [str(problem) for problem in verify(data, target=target, plan=planned.plan.digest, role=role)]
    if recorded != _entry(Program(role, target, data)):
        problems.append(f"it is not the program that the build recorded (expected {recorded})")
    return "; ".join(problems)


def _entry(program: Program) -> dict[str, object]:
    return {"target": program.target, "sha256": program.sha256, "size": program.size}
