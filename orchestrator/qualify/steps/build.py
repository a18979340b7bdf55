"""Build: one program per role from the plan, checked as ELF files, before anything is sent anywhere.

Also the programs that controls need: the last role's of another plan, those of the order's witness, and those
of device roles for a product that no card is.
"""

from __future__ import annotations

from evidence.canonical import dumps
from evidence.files import write_whole
from orchestrator.build.compile import Made, Program, build_programs
from orchestrator.build.elf import verify
from orchestrator.plan.derive import Planned, other_plan
from orchestrator.qualify.checks import Check, equal
from orchestrator.qualify.command import series
from orchestrator.qualify.devices import profiles
from orchestrator.qualify.launch import FOREIGN, OTHER, OWN, SWAPPED, WITNESS
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
    FOREIGN: "foreign-program",
}


def wanted(view: View) -> tuple[tuple[str, Planned, tuple[str, ...]], ...]:
    """What is built: (which, plan, roles).

    A run of one role has no one to mistake, so no control program; nor has a lane without controls. Where no
    order was declared there is none to witness.
    """
    planned, names = view.planned, view.roles
    controls = names[-1:] if len(names) > 1 and refusals.NAME not in view.lane.omit else ()
    ordered = () if view.planned.plan.system.bound is not None else controls
    foreign = () if refusals.NAME in view.lane.omit else tuple(profiles(view, FOREIGN))
    return (
        (OWN, planned, names),
        (SWAPPED, planned, names if view.lane.swap else ()),
        (OTHER, other_plan(planned), controls),
        (WITNESS, view.witness, names if ordered else ()),
        (FOREIGN, planned, foreign),
    )


def act(launcher: Launcher) -> None:
    """Builds, and writes the programs with their digests into the bundle."""
    if (plan := launcher.session.view.command) is not None:
        series.act(launcher, plan)
        return
    session = launcher.session
    listing: dict[str, dict[str, object]] = {}
    for which, planned, names in wanted(session.view):
        made = made_for(session.view, which)
        pairings = [(role, made[role.name]) for role in planned.plan.roles if role.name in names]
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
            listing[f"{PROGRAM_FOLDERS[which]}/{program.role}.elf"] = _entry(program, made[program.role])
    write_whole(launcher.attempt.folder / "programs.json", dumps(listing))


def made_for(view: View, which: str) -> dict[str, Made]:
    """Role -> what its program of this sort is made for, in role order."""
    devices = profiles(view, which)
    return {role: Made(target, devices.get(role)) for role, target in view.targets_of(which).items()}


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
            made = made_for(view, which)[name]
            fine = f"{_kind(made)} program of plan {planned.plan.digest[:16]}"
            got = _faults(view.bytes(f"{folder}/{file}"), planned, (name, made), listing.get(file))
            checks.append(equal(label, (f"{folder}/{file}", f"{folder}/programs.json"), fine, got or fine))
    return tuple(checks)


def _kind(made: Made) -> str:
    """What a program is, for people."""
    return f"static {made.target}" if made.device is None else f"{made.target}, {made.device.name}"


def _faults(data: bytes | None, planned: Planned, made: tuple[str, Made], recorded: object) -> str:
    """What is wrong with a program's file, made for a role and what it runs on; empty if nothing is."""
    if data is None:
        return "nothing"
    role, runs_on = made
    is_device = runs_on.device is not None
    found = verify(data, target=runs_on.target, plan=planned.plan.digest, role=role, is_device=is_device)
    problems = [str(problem) for problem in found]
    if runs_on.device is not None and f"{runs_on.device.product}\0".encode() not in data:
        problems.append(f"it is not made for {runs_on.device.product}")
    if recorded != _entry(Program(role, runs_on.target, data), runs_on):
        problems.append(f"it is not the program that the build recorded (expected {recorded})")
    return "; ".join(problems)


def _entry(program: Program, made: Made) -> dict[str, object]:
    device = {} if made.device is None else {"device": made.device.name}
    return {"target": program.target, **device, "sha256": program.sha256, "size": program.size}
