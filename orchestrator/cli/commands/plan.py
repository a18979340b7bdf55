"""`orch plan`: what a lane or run spec means, said by the readers and the builder of a run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.arguments import add_json, content_of, find_spec
from orchestrator.cli.output import print_json, say
from orchestrator.errors import UsageError
from orchestrator.spec.nodesets import fold

if TYPE_CHECKING:
    from orchestrator.plan.classes import RoleClass
    from orchestrator.plan.derive import Planned
    from orchestrator.qualify.preview import StepPreview
    from orchestrator.spec.content import Content
    from orchestrator.spec.lane import LaneSpec
    from orchestrator.spec.matrix import MatrixSpec
    from orchestrator.spec.program import CommandRunSpec
    from orchestrator.spec.run import RunSpec


_SHOWN = 400  # characters of all roles' names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a lane or a run spec")
    parser.add_argument(
        "--programs",
        action="store_true",
        help="build a run spec's programs too, as for a lane, for their digests",
    )
    detail = parser.add_mutually_exclusive_group()
    detail.add_argument("--role", metavar="NAME", help="say what this role does in a round, and holds")
    detail.add_argument("-v", "--verbose", action="store_true", help="lay out the memory of all roles")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Plan and print."""
    from orchestrator.cli.planning import find_matrix, read_lane_or_run
    from orchestrator.spec.program import CommandRunSpec

    content = content_of(args.content)
    path = find_spec(args.file, content)
    if (matrix := find_matrix(path)) is not None:
        return _matrix(args, matrix)
    lane, spec = read_lane_or_run(path)
    if isinstance(spec, CommandRunSpec):
        return _command(args, lane, spec)
    return _native(args, content, lane, spec)


def _native(args: argparse.Namespace, content: Content, lane: LaneSpec | None, spec: RunSpec) -> int:
    from orchestrator.plan.classes import role_classes
    from orchestrator.plan.derive import derive

    planned = derive(spec)
    if lane is not None:
        planned.swapped(lane)  # what is refused of the resumed part is refused of the lane
    classes = role_classes(planned.plan, spec.made_for)
    if args.role is not None:
        return _role(args, planned, classes)
    from orchestrator.admit.memory import demand
    from orchestrator.cli import plan_cards, plan_report
    from orchestrator.cli.planning import build_all

    firsts = [planned.plan.roles[each.roles.start] for each in classes]
    demands = tuple(demand(planned.plan, role, planned.devices[role.name]) for role in firsts)
    cards = tuple(plan_cards.needs(planned, role) for role in firsts)
    programs = build_all(planned, spec, lane, content.root) if lane or args.programs else ()
    report = plan_report.PlanReport(planned, classes, demands, cards, programs, lane, _steps(lane))
    if args.json:
        print_json(plan_report.as_json(report))
    else:
        plan_report.show(report, every=args.verbose)
    return 0


def _matrix(args: argparse.Namespace, spec: MatrixSpec) -> int:
    from orchestrator.cli import cells
    from orchestrator.plan.matrix import matrix_plan

    if args.role is not None or args.programs:
        raise UsageError("--role and --programs are of one run, and a matrix has many")
    plan = matrix_plan(spec)
    if args.json:
        print_json({"lane": spec.name, **plan.file_json(), "devices": cells.devices_of(spec)})
    else:
        say(cells.plan_text(spec, plan))
    return 0


def _role(args: argparse.Namespace, planned: Planned, classes: tuple[RoleClass, ...]) -> int:
    from orchestrator.admit.memory import demand
    from orchestrator.cli import plan_cards, plan_role
    from orchestrator.plan.roles import node_set, role_named
    from orchestrator.spec.places import visible

    plan = planned.plan
    role = role_named(plan.roles, args.role)
    if role is None:
        names = visible(node_set(plan.roles, range(len(plan.roles))), _SHOWN)
        raise UsageError(f"there is no such role (got {args.role}, expected one of {names})")
    made_for = planned.made_for(role.name)
    asked, card = demand(plan, role, planned.devices[role.name]), plan_cards.needs(planned, role)
    report = plan_role.RoleReport(plan, role, made_for, classes, asked, card)
    if args.json:
        print_json(plan_role.as_json(report))
    else:
        plan_role.show(report)
    return 0


def _steps(lane: LaneSpec | None) -> tuple[StepPreview, ...]:
    if lane is None:
        return ()
    from orchestrator.qualify.preview import preview  # the steps themselves: a run alone starts without them

    return preview(lane)


def _command(args: argparse.Namespace, lane: LaneSpec | None, spec: CommandRunSpec) -> int:
    from orchestrator.cli import command_plan
    from orchestrator.plan.command import command_plan as plan_of

    if args.role is not None and args.role not in spec.roles:
        raise UsageError(f"there is no such role (got {args.role}, expected one of {fold(list(spec.roles))})")
    plan, steps = plan_of(spec), _steps(lane)
    if args.json:
        print_json(command_plan.as_json(plan, lane, steps))
    else:
        command_plan.show(plan, lane, steps)
    return 0
