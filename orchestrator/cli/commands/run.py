"""`orch run`: a lane, from its first step to its sealed bundle."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.cli.arguments import add_json, cache_folder, content_of, find_spec
from orchestrator.cli.boundary import EXIT_BUG
from orchestrator.cli.chart import can_draw, chart
from orchestrator.cli.live import live_view
from orchestrator.cli.output import columns, complain, counted, paint, print_json, say
from orchestrator.cli.project import find_bundle, find_project
from orchestrator.cli.report import EXIT_OF, failed_checks, grade_line, open_checks, step_json, steps_table
from orchestrator.errors import UsageError
from orchestrator.redact import Secrets

if TYPE_CHECKING:
    from orchestrator.qualify.matrix.outcome import MatrixOutcome
    from orchestrator.qualify.options import RunOptions
    from orchestrator.qualify.outcome import LaneOutcome

GRADES = ("simulated", "emulated", "host", "physical")
"""What evidence can be evidence of, the least first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the lane and where its bundle goes."""
    parser.add_argument(
        "lane", nargs="?", type=Path, metavar="LANE", help="the lane's file; none with --resume"
    )
    parser.add_argument(
        "--pods",
        metavar="WHERE",
        help="where roles run: a pods file; `local`, this machine; `simulated`, this machine with stand-in "
        "cards (default: what the gate's variable says, else this machine)",
    )
    parser.add_argument("--resume", metavar="BUNDLE", help="go on with this bundle, or `last`")
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="BUNDLE:checkpoint@N",
        help="go on, in a new run, from a checkpoint that another run of the same system left (BUNDLE may "
        "be `last`)",
    )
    parser.add_argument("--require", choices=GRADES, help="exit 1 if the evidence is of a lesser grade")
    parser.add_argument(
        "--bundles", type=Path, metavar="DIR", help="where the bundle goes (default: the project's)"
    )
    parser.add_argument("--db", metavar="URL", help="the tracker's database (default: the project's)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="CELLS",
        help="of a matrix, these cells alone, such as 'adam/*/all', with those that they are compared with",
    )
    parser.add_argument("--keep", action="store_true", help="leave the work folders on the nodes")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run; the verdict's exit code."""
    from evidence.bundle import is_sealed

    if (args.lane is None) == (args.resume is None):
        raise UsageError(
            "either a lane or --resume BUNDLE is needed, and not both: a bundle has its lane in it"
        )
    if args.origin is not None and args.resume is not None:
        raise UsageError("--from begins a new run, --resume goes on with one: not both")
    options = options_of(args)
    if options.resume and is_sealed(options.resume):
        complain(f"{options.resume} was sealed before: nothing runs again, and what it says is only reported")
    outcome = _run_matrix(options) if _is_matrix(options) else run_one(options)
    if args.json:
        print_json(outcome_json(outcome))
    else:
        report(outcome)
    if outcome.crashed:
        complain(f"orch: a bug of ours: the traceback is in {outcome.bundle / outcome.crashed}")
        return EXIT_BUG
    if outcome.verdict == "pass" and args.require and (short := falls_short(outcome, args.require)):
        complain(f"orch: {short}")
        return 1
    return EXIT_OF[outcome.verdict]


def falls_short(outcome: LaneOutcome | MatrixOutcome, required: str) -> str:
    """Say why the evidence is of a lesser grade than is required; empty if it is not."""
    if GRADES.index(outcome.grade) >= GRADES.index(required):
        return ""
    return f"the evidence is of grade {outcome.grade}, and {required} is required"


def run_one(options: RunOptions) -> LaneOutcome:
    """Run a lane over one run, live on a terminal."""
    from orchestrator.qualify.lane import run_lane

    if options.only:
        raise UsageError("--only names cells of a matrix, and this is a lane over one run")
    with live_view() as view:
        return run_lane(options, view)


def _run_matrix(options: RunOptions) -> MatrixOutcome:
    from orchestrator.cli.cells import cells_view
    from orchestrator.qualify.matrix.run import run_matrix

    if options.origin is not None:
        raise UsageError("--from begins a run from a checkpoint, and a matrix begins all its runs anew")
    if options.only and options.resume is not None:
        raise UsageError("--only is said when a matrix begins; a resumed one goes on with its own cells")
    with cells_view() as view:
        return run_matrix(options, view)


def _is_matrix(options: RunOptions) -> bool:
    """Say whether a lane, or the bundle that is resumed, is a matrix's."""
    from orchestrator.cli.planning import find_matrix
    from orchestrator.qualify.matrix.view import is_matrix

    if options.resume is not None:
        return is_matrix(options.resume)
    return options.lane is not None and find_matrix(options.lane) is not None


def options_of(args: argparse.Namespace) -> RunOptions:
    """Give what the arguments ask of a run, with what the project and this machine add."""
    from orchestrator.qualify.options import RunOptions
    from tracker.store import default_url

    content = content_of(args.content)
    project = find_project()
    bundles = args.bundles or project.bundles
    lane = find_spec(args.lane, content) if args.lane else None
    return RunOptions(
        lane=lane,
        bundles=bundles,
        content=content,
        pods=Path(args.pods) if args.resume and args.pods else _pods(args.pods or _gate(lane)),
        resume=find_bundle(args.resume, bundles) if args.resume else None,
        origin=_origin(args.origin, bundles) if args.origin else None,
        tracker_url=args.db or default_url(project.tracker_url),
        owner=project.owner,
        keep=args.keep,
        cache=cache_folder(),
        secrets=Secrets.here(project.secrets),
        only=tuple(args.only),
    )


def _origin(named: str, bundles: Path) -> tuple[Path, int]:
    """Give the bundle and the version of `BUNDLE:checkpoint@N`."""
    bundle, found, number = named.rpartition(":checkpoint@")
    if not found or not bundle or not (number.isascii() and number.isdecimal()) or int(number) < 1:
        raise UsageError(f"--from names a bundle's checkpoint (got {named}, expected BUNDLE:checkpoint@N)")
    return find_bundle(bundle, bundles), int(number)


def _pods(named: str) -> Path | None:
    """Give the pods file that is named; None for this machine."""
    return None if named in ("", "local") else Path(named)


def _gate(lane: Path | None) -> str:
    """Give the pods file that the variable of the lane's gate names; empty if there is none."""
    from orchestrator.spec.lane import gate_variable
    from orchestrator.spec.read import read_any_lane

    gate = getattr(read_any_lane(lane), "gate", None) if lane else None
    if not gate:
        return ""
    variable = gate_variable(gate)
    if named := os.environ.get(variable, ""):
        complain(f"{variable} says where roles run: {named}")
    return named


def outcome_json(outcome: LaneOutcome | MatrixOutcome) -> dict[str, Any]:
    """Give an outcome as the object that `--json` prints; a matrix's steps are its cells."""
    from orchestrator.qualify.outcome import LaneOutcome

    shown = {
        **outcome.as_json(),
        "headline": outcome.headline,
        "steps": [step_json(step) for step in outcome.steps],
    }
    if isinstance(outcome, LaneOutcome):
        shown |= {
            "numerics": outcome.numerics,
            "updates": outcome.updates,
            "losses": list(outcome.losses),
            "final_loss": outcome.final_loss,
        }
    return shown


def report(outcome: LaneOutcome | MatrixOutcome) -> None:
    """Print an outcome for a person."""
    from orchestrator.qualify.outcome import LaneOutcome

    if isinstance(outcome, LaneOutcome):
        _say_lane(outcome)
        grade = grade_line(outcome.grade, outcome.steps)
    else:
        _say_matrix(outcome)
        grade = f"grade: {outcome.grade}"
    if outcome.proves:
        say(f"proves: {', '.join(outcome.proves)}")
    say(f"verdict: {paint(outcome.headline, outcome.verdict)}\n{grade}")
    say(f"bundle: {outcome.bundle}\nseal: {outcome.seal}")


def _say_lane(outcome: LaneOutcome) -> None:
    lines = chart(outcome.losses, columns=columns(), blocks=can_draw(sys.stdout.encoding))
    if lines:
        done, asked = len(outcome.losses), counted(outcome.updates, "update")
        say(
            f"loss that each of {asked} read"
            if done == outcome.updates
            else f"loss that {done} of {asked} read"
        )
        say("\n".join(lines) + "\n")
    say(steps_table(outcome.steps))
    for line in (*failed_checks(outcome.steps), *open_checks(outcome.steps)):
        say(line)
    if outcome.final_loss is not None:
        say(f"final loss: {outcome.final_loss:.6g}")


def _say_matrix(outcome: MatrixOutcome) -> None:
    from orchestrator.cli.cells import cells_table, not_admitted

    say(cells_table(outcome.steps))
    for line in (*not_admitted(outcome.steps), *failed_checks(outcome.steps)):
        say(line)
