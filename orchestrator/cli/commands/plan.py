"""`orch plan`: what a lane or run spec means, said by the readers and the builder of a run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.cli.arguments import add_json, content_of, find_spec
from orchestrator.cli.output import print_json, say, size_text, table

if TYPE_CHECKING:
    from orchestrator.admit.memory import Demand
    from orchestrator.build.compile import Program
    from orchestrator.plan.derive import Planned
    from orchestrator.plan.model import Ownership, Plan
    from orchestrator.qualify.preview import StepPreview
    from orchestrator.spec.lane import LaneSpec

_SHOWN = 8  # names of a long combine order that are shown at either end


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a lane or a run spec")
    parser.add_argument(
        "--programs",
        action="store_true",
        help="build a run spec's programs too, as for a lane, for their digests",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Plan and print."""
    from orchestrator.admit.memory import demand
    from orchestrator.cli.planning import build_all, read_lane_or_run
    from orchestrator.plan.derive import derive

    content = content_of(args.content)
    lane, spec = read_lane_or_run(find_spec(args.file, content))
    planned = derive(spec)
    demands = tuple(demand(planned.plan, role) for role in planned.plan.roles)
    programs = build_all(planned, spec, content.root) if lane or args.programs else ()
    steps = _preview(lane) if lane else ()
    if args.json:
        print_json(_as_json(planned, demands, programs, steps, lane))
    else:
        _print(planned, demands, programs, steps, lane)
    return 0


def _preview(lane: LaneSpec) -> tuple[StepPreview, ...]:
    from orchestrator.qualify.preview import preview

    return preview(lane)


def _as_json(
    planned: Planned,
    demands: tuple[Demand, ...],
    programs: tuple[Program, ...],
    steps: tuple[StepPreview, ...],
    lane: LaneSpec | None,
) -> dict[str, Any]:
    plan = planned.plan
    roles = [
        {
            "name": role.name,
            "target": planned.targets[role.name],
            "first_sample": role.first_sample,
            "samples": role.samples,
            "dials": None if parent is None else plan.roles[parent].name,
            "publishes": {field.name: [span.start, span.stop] for field, span in _regions(plan, role.index)},
            "memory": {
                "bytes": needs.total,
                "lines": [
                    {"what": line.what, "formula": line.formula, "bytes": line.bytes} for line in needs.lines
                ],
            },
        }
        for role, parent, needs in zip(plan.roles, plan.parents, demands, strict=True)
    ]
    value: dict[str, Any] = {
        "plan": plan.digest,
        "system": plan.system.digest,
        "name": plan.system.name,
        "topology": plan.topology,
        "ownership": plan.as_json()["ownership"],
        "combine": {"kind": "left-deep", "order": list(plan.combine_order)},
        "roles": roles,
        "programs": [
            {"role": p.role, "target": p.target, "program_sha256": p.sha256, "size": p.size} for p in programs
        ],
    }
    if lane:
        value["lane"] = {"name": lane.name, "updates": lane.updates, "split": lane.split}
        value["steps"] = [
            {"name": s.name, "skipped": s.skipped, "does": s.does, "checks": list(s.checks)} for s in steps
        ]
    return value


def _print(
    planned: Planned,
    demands: tuple[Demand, ...],
    programs: tuple[Program, ...],
    steps: tuple[StepPreview, ...],
    lane: LaneSpec | None,
) -> None:
    plan = planned.plan
    system = plan.system
    if lane:
        say(f"lane      {lane.name}: {lane.updates} updates, split after {lane.split}")
    words = f"{system.state_words} words of state, {system.rows} samples of {system.sample_words}"
    say(f"system    {system.name}: {words}")
    say(f"          {system.digest}")
    say(f"plan      {plan.digest}")
    say(f"combine   {_order(plan.combine_order)}")
    say(f"owners    {_owners(plan.ownership)}")
    say("\n" + _roles_table(planned))
    for role, needs in zip(plan.roles, demands, strict=True):
        say(f"\nmemory of {role.name}: {size_text(needs.total)}")
        say(table(("", "", ""), [(line.what, line.formula, line.bytes) for line in needs.lines], indent="  "))
    if programs:
        rows = [(program.role, program.target, program.size, program.sha256) for program in programs]
        say("\n" + table(("program", "target", "bytes", "sha256 with the binding zeroed"), rows))
    for number, step in enumerate(steps, start=1):
        say(f"\n{number}. {step.name}: {step.skipped or step.does}")
        for check in () if step.skipped else step.checks:
            say(f"   - {check}")


def _owners(held: Ownership) -> str:
    parts = (
        ("parameters", held.parameters),
        ("optimizer state", held.optimizer_state),
        ("gradients", held.gradients),
    )
    return ", ".join(f"{what} {how}" for what, how in parts)


def _roles_table(planned: Planned) -> str:
    plan = planned.plan
    rows = [
        (
            role.name,
            planned.targets[role.name],
            f"{role.first_sample}..{role.first_sample + role.samples - 1}" if role.samples else "none",
            "listens"
            if parent is None and len(plan.roles) > 1
            else ""
            if parent is None
            else plan.roles[parent].name,
            ", ".join(
                f"{field.name}[{span.start}:{span.stop}]" for field, span in _regions(plan, role.index)
            ),
        )
        for role, parent in zip(plan.roles, plan.parents, strict=True)
    ]
    return table(("role", "target", "samples", "dials", "publishes"), rows)


def _regions(plan: Plan, index: int) -> list[tuple[Any, range]]:
    spans = [(field, plan.publication(field, plan.roles[index])) for field in plan.system.state_fields]
    return [(field, span) for field, span in spans if span]


def _order(names: tuple[str, ...]) -> str:
    """Give the left-deep order as a person writes it; the middle of a long one is left out."""
    if len(names) > 2 * _SHOWN:
        names = (*names[:_SHOWN], f"... {len(names) - 2 * _SHOWN} more ...", *names[-_SHOWN:])
        return "left-deep: " + " + ".join(names)
    text = names[0]
    for number, name in enumerate(names[1:], start=1):
        text = f"{text} + {name}" if number == 1 else f"({text}) + {name}"
    return text
