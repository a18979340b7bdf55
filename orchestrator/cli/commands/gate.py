"""`orch gate`: every lane of a gate, always without machines, and on those that its variable names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.cli.arguments import add_json, content_of, find_spec
from orchestrator.cli.commands import run as run_verb
from orchestrator.cli.output import complain, counted, paint, print_json, say, size_text, table
from orchestrator.cli.project import find_project
from orchestrator.cli.report import EXIT_OF, failed_checks, open_checks, step_json
from orchestrator.errors import OrchError, UndecidedError, UsageError

if TYPE_CHECKING:
    from orchestrator.qualify.gate.static import StaticHalf
    from orchestrator.qualify.outcome import LaneOutcome
    from orchestrator.spec.content import Content
    from orchestrator.spec.device import DeviceSpec

_WORST_FIRST = ("fail", "unknown", "pass")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the gates and where bundles of a physical half go."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME|LANE",
        help="gates, such as coordinates, or files of lanes (default: every gate)",
    )
    parser.add_argument(
        "--all-architectures",
        action="store_true",
        help="build device roles for a card of every architecture that there is a profile of, too",
    )
    parser.add_argument(
        "--bundles", type=Path, metavar="DIR", help="where bundles go (default: the project's)"
    )
    parser.add_argument("--db", metavar="URL", help="the tracker's database (default: the project's)")
    add_json(parser)


@dataclass(frozen=True)
class _Ran:
    """One lane's physical half: its outcome, or why there is none."""

    lane: str
    verdict: str
    why: str
    outcome: LaneOutcome | None = None

    def as_json(self) -> dict[str, Any]:
        run = run_verb.outcome_json(self.outcome) if self.outcome else None
        return {"lane": self.lane, "verdict": self.verdict, "reason": self.why, "run": run}


@dataclass(frozen=True)
class _Gate:
    """What both halves of one gate say; `not_run` is why nothing ran on machines, empty if something did."""

    name: str
    lanes: tuple[StaticHalf, ...]
    not_run: str = ""
    ran: tuple[_Ran, ...] = ()

    @property
    def static(self) -> str:
        return _worst([str(lane.outcome.verdict) for lane in self.lanes])

    @property
    def physical(self) -> str | None:
        return None if self.not_run else _worst([ran.verdict for ran in self.ran])

    def __str__(self) -> str:
        physical = (
            f"not run ({self.not_run})" if self.physical is None else paint(self.physical, self.physical)
        )
        return f"static: {paint(self.static, self.static)}   physical: {physical}"

    def as_json(self) -> dict[str, Any]:
        lanes = [
            {
                "path": str(lane.path),
                **step_json(lane.outcome),
                "programs": [program.as_json() for program in lane.programs],
                "kernels": {name: asdict(report) for name, report in lane.kernels.items()},
            }
            for lane in self.lanes
        ]
        return {
            "gate": self.name,
            "static": self.static,
            "physical": self.physical,
            "not_run": self.not_run,
            "lanes": lanes,
            "runs": [ran.as_json() for ran in self.ran],
        }


def run(args: argparse.Namespace) -> int:
    """Go through the gates; the exit code is that of the worst half of them all."""
    content = content_of(args.content)
    profiles = _architectures(content) if args.all_architectures else ()
    gates = []
    for name, (under, paths) in _wanted(args.names, content).items():
        gate = _gate(name, under, [_static(name, path, content, profiles) for path in paths], args)
        gates.append(gate)
        if not args.json:
            _report(gate)
    if args.json:
        print_json({"gates": [gate.as_json() for gate in gates]})
    said = [half for gate in gates for half in (gate.static, gate.physical) if half is not None]
    return EXIT_OF[_worst(said)]


def _worst(verdicts: Sequence[str]) -> str:
    return min(verdicts, key=_WORST_FIRST.index)


def _wanted(names: Sequence[str], content: Content) -> Mapping[str, tuple[str | None, tuple[Path, ...]]]:
    """Give every gate or lane that is asked for: the gate, if there is one, and its lanes, or the lane."""
    from orchestrator.qualify.gate.lanes import SUFFIXES, gates, gates_of

    project = find_project(quiet=True)
    homes = (content.root, *((project.root,) if project.file else ()))
    known = gates(home / "lanes" for home in homes)
    wanted: dict[str, tuple[str | None, tuple[Path, ...]]] = {}
    for name in names or known:
        if name in known:
            wanted[name] = name, known[name]
        elif name.endswith(SUFFIXES):
            path = _lane(find_spec(Path(name), content))
            wanted[name] = next(iter(gates_of([path])), None), (path,)
        else:
            raise UsageError(
                f"there is no such gate (got {name}, expected a lane's file or one of {', '.join(known)})"
            )
    return wanted


def _lane(path: Path) -> Path:
    """Give the file that a command line names, if it is of a lane over one run."""
    from orchestrator.spec.document import load
    from orchestrator.spec.matrix import SECTION

    document, _ = load(path)
    if document is not None and document.get(SECTION) is not None:
        raise UsageError(f"{path}: a matrix is under no gate: `orch run` holds each of its cells, here alone")
    return path


def _architectures(content: Content) -> tuple[DeviceSpec, ...]:
    """Give a profile for each architecture that the content has one of."""
    from orchestrator.qualify.gate.programs import one_of_each_architecture
    from orchestrator.spec.read import read_device

    folder = content.root / "specs" / "devices"
    return one_of_each_architecture(read_device(path) for path in folder.glob("*.yaml"))


def _static(name: str, path: Path, content: Content, profiles: tuple[DeviceSpec, ...]) -> StaticHalf:
    from orchestrator.qualify.gate.static import static_half

    complain(f"gate {name}: {path.name}")
    return static_half(path, content.root, profiles)


def _gate(name: str, under: str | None, halves: Sequence[StaticHalf], args: argparse.Namespace) -> _Gate:
    """Add the physical half, which is not begun where the static one does not pass."""
    from orchestrator.spec.lane import gate_variable

    lanes = tuple(halves)
    if under is None:
        return _Gate(name, lanes, "the lane is under no gate")
    variable = gate_variable(under)
    if not (named := os.environ.get(variable, "")):
        return _Gate(name, lanes, f"{variable} is not set")
    static = _Gate(name, lanes).static
    if static != "pass":
        return _Gate(name, lanes, f"the static half is {static}")
    complain(f"{variable} says where roles run: {named}")
    return _Gate(name, lanes, ran=tuple(_on_machines(half, named, args) for half in lanes))


def _on_machines(half: StaticHalf, named: str, args: argparse.Namespace) -> _Ran:
    """Run a lane as `orch run LANE --pods NAMED --require GRADE` would."""
    parser = argparse.ArgumentParser()
    run_verb.add_arguments(parser)
    arguments = parser.parse_args([str(half.path), "--pods", named])
    arguments.content, arguments.bundles, arguments.db = args.content, args.bundles, args.db
    try:
        outcome = run_verb.run_one(run_verb.options_of(arguments))
    except OrchError as error:
        return _Ran(half.outcome.name, "unknown" if isinstance(error, UndecidedError) else "fail", str(error))
    if not args.json:
        run_verb.report(outcome)
    if outcome.verdict == "pass" and (short := run_verb.falls_short(outcome, half.grade)):
        return _Ran(half.outcome.name, "fail", short, outcome)
    return _Ran(half.outcome.name, outcome.verdict, outcome.headline, outcome)


def _report(gate: _Gate) -> None:
    """Print a gate for a person: its lanes, what did not pass and by which label, and both halves."""
    rows = []
    for half in gate.lanes:
        passed = sum(check.verdict == "pass" for check in half.outcome.checks)
        largest = max((each.program.size for each in half.programs), default=0)
        rows.append(
            (
                half.outcome.name,
                str(half.outcome.verdict),
                f"{passed}/{len(half.outcome.checks)}",
                len(half.programs),
                size_text(largest) if largest else "",
                f"{half.outcome.elapsed_s:.1f}",
            )
        )
    say(f"gate {gate.name}: {counted(len(gate.lanes), 'lane')}")
    say(table(("lane", "static", "checks", "programs", "largest", "seconds"), rows))
    steps = [half.outcome for half in gate.lanes]
    for line in (*failed_checks(steps), *open_checks(steps)):
        say(line)
    for ran in gate.ran:
        say(f"{ran.lane}: {paint(ran.verdict, ran.verdict)}: {ran.why}")
    say(str(gate))
