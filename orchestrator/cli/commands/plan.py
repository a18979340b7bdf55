"""`orch plan`: what a lane or run spec means, said by the readers and the builder of a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.cli.arguments import add_json, content_of, find_spec
from orchestrator.cli.output import counted, print_json, say, size_text, table
from orchestrator.errors import UsageError
from orchestrator.spec.nodesets import fold

if TYPE_CHECKING:
    from orchestrator.admit.memory import Demand
    from orchestrator.build.compile import Program
    from orchestrator.plan.derive import Planned
    from orchestrator.plan.model import Field, Plan, Role
    from orchestrator.plan.ownership import Ownership, Part
    from orchestrator.qualify.preview import StepPreview
    from orchestrator.spec.content import Content
    from orchestrator.spec.lane import LaneSpec
    from orchestrator.spec.matrix import MatrixSpec
    from orchestrator.spec.program import CommandRunSpec
    from orchestrator.spec.run import RunSpec

_SHOWN = 8  # names of a long list that are shown at either end


@dataclass(frozen=True)
class _Preview:
    """Everything that is shown; without a lane there are no steps, and programs only on request."""

    planned: Planned
    demands: tuple[Demand, ...]
    programs: tuple[Program, ...]
    lane: LaneSpec | None
    steps: tuple[StepPreview, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a lane or a run spec")
    parser.add_argument(
        "--programs",
        action="store_true",
        help="build a run spec's programs too, as for a lane, for their digests",
    )
    detail = parser.add_mutually_exclusive_group()
    detail.add_argument("--role", metavar="NAME", help="lay out this role's memory (default: the largest)")
    detail.add_argument("-v", "--verbose", action="store_true", help="lay out the memory of every role")
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
    preview = _preview(args, content, lane, spec)
    if args.json:
        print_json(_as_json(preview))
    else:
        shown = _laid_out(preview.demands, args.role, every=args.verbose)
        _print(preview, shown)
    return 0


def _matrix(args: argparse.Namespace, spec: MatrixSpec) -> int:
    from orchestrator.cli import cells
    from orchestrator.plan.matrix import matrix_plan

    if args.role is not None or args.programs:
        raise UsageError("--role and --programs are of one run, and a matrix has many")
    plan = matrix_plan(spec)
    if args.json:
        print_json({"lane": spec.name, **plan.file_json()})
    else:
        say(cells.plan_text(spec, plan))
    return 0


def _laid_out(demands: Sequence[Demand], role: str | None, *, every: bool) -> tuple[Demand, ...]:
    """Give the demands whose lines are shown: of roles that ask for the same, the first."""
    if role is not None:
        found = tuple(demand for demand in demands if demand.role == role)
        if not found:
            names = fold([demand.role for demand in demands])
            raise UsageError(f"there is no such role (got {role}, expected one of {names})")
        return found
    if every:
        return tuple({demand.lines: demand for demand in reversed(demands)}.values())[::-1]
    return (max(demands, key=lambda demand: demand.total),)


def _command(args: argparse.Namespace, lane: LaneSpec | None, spec: CommandRunSpec) -> int:
    from orchestrator.cli import command_plan
    from orchestrator.plan.command import command_plan as plan_of
    from orchestrator.qualify.preview import preview

    if args.role is not None and args.role not in spec.roles:
        raise UsageError(f"there is no such role (got {args.role}, expected one of {fold(list(spec.roles))})")
    plan, steps = plan_of(spec), preview(lane) if lane else ()
    if args.json:
        print_json(command_plan.as_json(plan, lane, steps))
    else:
        command_plan.show(plan, lane, steps)
    return 0


def _preview(args: argparse.Namespace, content: Content, lane: LaneSpec | None, spec: RunSpec) -> _Preview:
    from orchestrator.admit.memory import demand
    from orchestrator.cli.planning import build_all
    from orchestrator.plan.derive import derive
    from orchestrator.qualify.preview import preview

    planned = derive(spec)
    return _Preview(
        planned,
        tuple(demand(planned.plan, role) for role in planned.plan.roles),
        build_all(planned, spec, content.root) if lane or args.programs else (),
        lane,
        preview(lane) if lane else (),
    )


def _as_json(preview: _Preview) -> dict[str, Any]:
    plan, lane = preview.planned.plan, preview.lane
    value: dict[str, Any] = {
        "plan": plan.digest,
        "system": plan.system.digest,
        "name": plan.system.name,
        "topology": plan.topology.as_json(),
        "ownership": plan.as_json()["ownership"],
        "combine": plan.topology.combine_json(),
        "roles": [
            _role_json(preview.planned, role, demand)
            for role, demand in zip(plan.roles, preview.demands, strict=True)
        ],
        "programs": [
            {"role": each.role, "target": each.target, "program_sha256": each.sha256, "size": each.size}
            for each in preview.programs
        ],
    }
    if lane:
        value["lane"] = {"name": lane.name, "updates": lane.updates, "split": lane.split}
        value["steps"] = [
            {"name": step.name, "skipped": step.skipped, "does": step.does, "checks": list(step.checks)}
            for step in preview.steps
        ]
    return value


def _role_json(planned: Planned, role: Role, demand: Demand) -> dict[str, Any]:
    plan = planned.plan
    parent = plan.topology.parent(role.index)
    return {
        "name": role.name,
        "target": planned.targets[role.name],
        "first_sample": role.first_sample,
        "samples": role.samples,
        "dials": None if parent is None else plan.roles[parent].name,
        "publishes": {field.name: vars(part) for field, part in _regions(plan, role)},
        "memory": {"bytes": demand.total, "lines": [vars(line) for line in demand.lines]},
    }


def _print(preview: _Preview, laid_out: Sequence[Demand]) -> None:
    plan, lane = preview.planned.plan, preview.lane
    system = plan.system
    if lane:
        say(f"lane      {lane.name}: {counted(lane.updates, 'update')}, split after {lane.split}")
    data = f"{counted(system.rows, 'sample')} of {counted(system.sample_words, 'word')}"
    words = f"{counted(system.state_words, 'word')} of state, {data}"
    say(f"system    {system.name}: {words}")
    say(f"          {system.digest}")
    say(f"plan      {plan.digest}")
    say(f"combine   {_order(tuple(role.name for role in plan.roles))}")
    say(f"owners    {_owners(plan.ownership)}")
    say("\n" + _roles_table(preview.planned))
    say("\n" + _memory_table(preview.demands))
    for demand in laid_out:
        say(f"\nmemory of {demand.role}: {size_text(demand.total)}")
        say(
            table(("", "", ""), [(line.what, line.formula, line.bytes) for line in demand.lines], indent="  ")
        )
    if preview.programs:
        rows = [(each.role, each.target, each.size, each.sha256) for each in preview.programs]
        say("\n" + table(("program", "target", "bytes", "sha256 with the binding zeroed"), rows))
    for number, step in enumerate(preview.steps, start=1):
        say(f"\n{number}. {step.name}: {step.skipped or step.does}")
        for check in () if step.skipped else step.checks:
            say(f"   - {check}")


def _memory_table(demands: Sequence[Demand]) -> str:
    """Give what each role asks for; roles that ask for as much in one line."""
    alike: dict[int, list[str]] = {}
    for demand in demands:
        alike.setdefault(demand.total, []).append(demand.role)
    rows = [(fold(names), total) for total, names in alike.items()]
    return table(("memory of", "bytes for each"), rows)


def _owners(held: Ownership) -> str:
    parts = {
        "parameters": held.parameters,
        "optimizer state": held.optimizer_state,
        "gradients": held.gradients,
    }
    return ", ".join(f"{what} {how}" for what, how in parts.items())


def _roles_table(planned: Planned) -> str:
    plan = planned.plan
    alone = len(plan.roles) == 1
    rows = []
    for role in plan.roles:
        parent = plan.topology.parent(role.index)
        listens = "" if alone else "listens"
        rows.append(
            (
                role.name,
                planned.targets[role.name],
                f"{role.first_sample}..{role.first_sample + role.samples - 1}" if role.samples else "none",
                listens if parent is None else plan.roles[parent].name,
                ", ".join(f"{field.name}[{_slice(part)}]" for field, part in _regions(plan, role)),
            )
        )
    return table(("role", "target", "samples", "dials", "publishes"), rows)


def _regions(plan: Plan, role: Role) -> list[tuple[Field, Part]]:
    parts = [(field, plan.published(field, role)) for field in plan.system.state_fields]
    return [(field, part) for field, part in parts if part.count]


def _slice(part: Part) -> str:
    """Give coordinates as Python slices them."""
    end = part.coordinates[-1] + 1
    return f"{part.first}:{end}" if part.stride == 1 else f"{part.first}:{end}:{part.stride}"


def _order(names: tuple[str, ...]) -> str:
    """Give the left-deep order as a person writes it; of a long one, both ends."""
    if len(names) > 2 * _SHOWN:
        middle = f"... {len(names) - 2 * _SHOWN} more ..."
        return "left-deep: " + " + ".join((*names[:_SHOWN], middle, *names[-_SHOWN:]))
    text = names[0]
    for number, name in enumerate(names[1:], start=1):
        text = f"{text} + {name}" if number == 1 else f"({text}) + {name}"
    return text
