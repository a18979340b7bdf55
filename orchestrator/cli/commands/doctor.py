"""`orch doctor`: what this machine, or the nodes of a rental, have of what orch needs, each thing tried."""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.arguments import add_json, content_of, find_spec
from orchestrator.cli.nodes import examined_json, examined_rows, read_rental, said_of
from orchestrator.cli.output import complain, print_json, say, size_text, table
from orchestrator.cli.project import Project, find_project
from orchestrator.errors import Label, OrchError, RefusedError, UndecidedError, UsageError

if TYPE_CHECKING:
    from orchestrator.build.compile import Program

_LEAST_PYTHON = (3, 11)
_SAMPLE_RUN = "specs/runs/samples.yaml"
_PROBE_BYTES = 1 << 16
_LEAST_ROOM = 16 << 20  # a bundle of the shipped lanes takes a tenth of it


@dataclass(frozen=True)
class Finding:
    """One thing looked at.

    Attributes:
        name: what it is.
        state: `ok`; `absent`, which some things are done without; or `broken`.
        detail: what was found, or the way out.
    """

    name: str
    state: str
    detail: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the rental and the lane that is to run there."""
    parser.add_argument("lane", nargs="?", type=Path, metavar="LANE", help="the lane that is to run there")
    parser.add_argument(
        "--pods", type=Path, metavar="FILE", help="the nodes of this file, instead of this machine"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Look at everything; 1 if something is broken."""
    if args.pods is not None:
        return _of_rental(args)
    if args.lane is not None:
        raise UsageError("--pods FILE is needed with a lane: it names the nodes to look at")
    findings = tuple(_examine(args.content))
    if args.json:
        print_json({"findings": [vars(finding) for finding in findings]})
    else:
        say(table(("", "", ""), [(each.name, each.state, each.detail) for each in findings]))
    return 1 if any(finding.state == "broken" for finding in findings) else 0


def _of_rental(args: argparse.Namespace) -> int:
    """Look at a rental's nodes; 4 if all that is in the way may pass."""
    from orchestrator.cli.rental import examine, placed
    from orchestrator.spec.read import read_lane

    pods = read_rental(args.pods)
    lane = read_lane(find_spec(args.lane, content_of(args.content))) if args.lane else None
    roles = placed(lane, pods) if lane else {}
    seen, troubles = examine(pods, lane, roles)
    if args.json:
        nodes = {name: examined_json(each) for name, each in seen.items()}
        print_json({"nodes": nodes, "roles": dict(roles), "troubles": [vars(each) for each in troubles]})
    else:
        rows = [
            (name, *row) for name, each in seen.items() for row in examined_rows(each) if row[0] != "fault"
        ]
        rows += [
            ("roles", node, ", ".join(role for role in roles if roles[role] == node))
            for node in dict.fromkeys(roles.values())
        ]
        say(table(("", "", ""), rows))
        for trouble in troubles:
            complain(said_of(trouble.node, trouble.message) if trouble.node else trouble.message)
        if not troubles:
            say(f"nothing is in the way: `orch run --pods {pods.path} {args.lane or 'LANE'}`")
    if not troubles:
        return 0
    return UndecidedError.exit_code if all(trouble.is_passing for trouble in troubles) else 1


def _examine(content: Path | None) -> Iterator[Finding]:
    yield _python()
    yield _tried("content", lambda: _content(content))
    try:
        yield from _role_programs(content)
    except OrchError as error:
        yield Finding("compiler", "broken", str(error))
    yield _tried("assembler", lambda: _assembler(content))
    try:
        project = find_project(quiet=True)
    except OrchError as error:
        yield Finding("project", "broken", str(error))
        return
    yield _cards()
    yield _project(project)
    yield _bundles(project.bundles)
    yield _tried("tracker", lambda: _tracker(project))


def _tried(name: str, look: Callable[[], Finding]) -> Finding:
    """Turn a refusal into a finding; every other exception is a bug and stays one."""
    try:
        return look()
    except OrchError as error:
        return Finding(name, "broken", str(error))


def _machine() -> str:
    machine = platform.machine()
    return {"arm64": "aarch64", "AMD64": "x86_64"}.get(machine, machine)


def _python() -> Finding:
    found = platform.python_version()
    if sys.version_info >= _LEAST_PYTHON:
        return Finding("python", "ok", f"{found} at {sys.executable}")
    return Finding(
        "python", "broken", f"(got {found}, expected {'.'.join(map(str, _LEAST_PYTHON))} or newer)"
    )


def _content(explicit: Path | None) -> Finding:
    content = content_of(explicit)
    return Finding("content", "ok", f"{content.digest[:16]} at {content.root}")


def _role_programs(explicit: Path | None) -> Iterator[Finding]:
    """Build the smallest shipped run's first role for both instruction sets, keep nothing, and start each."""
    from orchestrator.build.compile import TARGETS, Made, build_programs
    from orchestrator.plan.derive import derive
    from orchestrator.spec.read import read_native_run

    root = content_of(explicit).root
    plan = derive(read_native_run(root / _SAMPLE_RUN)).plan
    programs = build_programs(plan, [(plan.roles[0], Made(target)) for target in TARGETS], root, None)
    made = ", ".join(f"{program.target} {program.size:,} B" for program in programs)
    yield Finding("compiler", "ok", f"built a role: {made}")
    yield from (_started(program) for program in programs)


def _assembler(explicit: Path | None) -> Finding:
    """Assemble the kernels of the same role, as gates do: no card is needed for it."""
    from orchestrator.build.assemble import assemble
    from orchestrator.build.kernels import kernels
    from orchestrator.build.ptx import LEAST_CAPABILITY
    from orchestrator.plan.derive import derive
    from orchestrator.spec.read import read_native_run

    plan = derive(read_native_run(content_of(explicit).root / _SAMPLE_RUN)).plan
    try:
        report = assemble({"a role": kernels(plan, plan.roles[0], LEAST_CAPABILITY).ptx})["a role"]
    except RefusedError as error:
        if any(refusal.label is not Label.ASSEMBLER_MISSING for refusal in error.refusals):
            raise
        hint = error.refusals[0].hint
        return Finding("assembler", "absent", f"{hint}: `orch gate` says nothing of kernels without it")
    entries = ", ".join(f"{name} {used.registers}" for name, used in report.usage.items())
    return Finding("assembler", "ok", f"assembled kernels for {report.architecture}, registers: {entries}")


def _started(program: Program) -> Finding:
    """Start a program that nothing is bound into: it must say so, which only one that runs can."""
    from orchestrator.qualify.steps.preflight import EMULATOR_PACKAGE, EMULATORS

    name = program.target
    emulator = [] if name == f"{_machine()}-linux" else [shutil.which(EMULATORS[name])]
    if emulator == [None]:
        detail = (
            f"{EMULATORS[name]} ({EMULATOR_PACKAGE}) is not here: such roles are refused (emulator-missing)"
        )
        return Finding(name, "absent", detail)
    with tempfile.TemporaryDirectory(prefix="orch-doctor-") as folder:
        path = Path(folder) / "role"
        path.write_bytes(program.data)
        path.chmod(0o700)
        how = f"in {tempfile.gettempdir()}" + (f" under {emulator[0]}" if emulator else "")
        try:
            done = subprocess.run([*filter(None, emulator), path, folder], capture_output=True, check=False)
        except OSError as error:
            return Finding(name, "broken", f"a role program does not start {how}: {error.strerror}")
    if (done.returncode, done.stderr) == (1, f"{Label.BINDING}\n".encode()):
        return Finding(name, "ok", f"role programs run {how}")
    return Finding(name, "broken", f"a role program {how} ended with {done.returncode}: {done.stderr!r}")


def _cards() -> Finding:
    """Ask this machine's own tools for its cards."""
    from orchestrator.qualify.looks import of_machine
    from orchestrator.remote.local import Local

    inventory = of_machine(Local())
    shown = ", ".join(f"{card.product} (minor {card.minor})" for card in inventory.cards)
    if not inventory.cards:
        return Finding(
            "cards", "absent", "no card here: device roles run with `--pods FILE` or `--pods simulated`"
        )
    if inventory.faults:
        return Finding("cards", "broken", f"{shown}; {inventory.faults[0]}")
    return Finding("cards", "ok", f"{shown}, driver {inventory.driver}")


def _project(project: Project) -> Finding:
    if project.file is None:
        return Finding(
            "project", "absent", f"no orch.toml from {project.root} upward: `orch init` writes one"
        )
    return Finding("project", "ok", str(project.file))


def _bundles(folder: Path) -> Finding:
    """Make a bundle's place, write into it, and take away again what was made."""
    made = []
    try:
        for place in (*reversed(folder.parents), folder):
            if not place.is_dir():
                place.mkdir()
                made.append(place)
        with tempfile.NamedTemporaryFile(prefix=".orch-doctor-", dir=folder) as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding("bundles", "broken", f"{folder} cannot be written: {error.strerror}")
    finally:
        for place in reversed(made):
            with suppress(OSError):  # somebody has put something there
                place.rmdir()
    if free < _LEAST_ROOM:
        return Finding("bundles", "broken", f"{folder} has no room: {size_text(free)} free")
    return Finding("bundles", "ok", f"{folder}, {size_text(free)} free")


def _tracker(project: Project) -> Finding:
    from tracker.errors import TrackerError
    from tracker.store import default_url, open_store, sqlite_path

    url = default_url(project.tracker_url)
    try:
        if not sqlite_path(url).exists():
            return Finding(
                "tracker", "absent", f"{url} is not made yet: `tracker load` or `orch run` makes it"
            )
        open_store(url, create=False)
    except TrackerError as error:
        return Finding("tracker", "broken", str(error))
    return Finding("tracker", "ok", url)
