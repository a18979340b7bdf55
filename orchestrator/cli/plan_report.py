"""What `orch plan FILE` says of a whole plan: by role while they are few, by classes of alike roles always.

Knows how a plan is laid out for people and as JSON; must not know how it is made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from orchestrator.cli.output import counted, say, table
from orchestrator.cli.plan_role import made_text, memory_json, show_memory, slice_text
from orchestrator.plan.roles import node_set
from orchestrator.spec.nodesets import MAX_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.admit.memory import Demand
    from orchestrator.build.compile import Program
    from orchestrator.cli.plan_cards import CardNeeds
    from orchestrator.plan.classes import RoleClass
    from orchestrator.plan.derive import Planned
    from orchestrator.plan.model import Field, Plan, Role
    from orchestrator.plan.ownership import Ownership, Part
    from orchestrator.qualify.preview import StepPreview
    from orchestrator.spec.lane import LaneSpec

_SHOWN = 8  # names of a long list that are shown at either end
_SHOWN_ROLES = 64  # of more there is no line for each
_SHOWN_CLASSES = 64


@dataclass(frozen=True)
class PlanReport:
    """Everything that is shown; without a lane there are no steps, and programs only on request.

    `demands`, `cards`: what a role of each class asks for of its host, and of its card if it has one.
    """

    planned: Planned
    classes: tuple[RoleClass, ...]
    demands: tuple[Demand, ...]
    cards: tuple[CardNeeds | None, ...]
    programs: tuple[Program, ...]
    lane: LaneSpec | None
    steps: tuple[StepPreview, ...]

    @property
    def by_role(self) -> Iterator[tuple[Role, Demand, CardNeeds | None]]:
        """Every role with what it asks for."""
        for each, demand, card in zip(self.classes, self.demands, self.cards, strict=True):
            for index in each.roles:
                role = self.planned.plan.roles[index]
                yield role, replace(demand, role=role.name), card


def as_json(report: PlanReport) -> dict[str, Any]:
    """Give what `--json` prints; more roles than a lane starts are told by their classes alone."""
    plan, lane = report.planned.plan, report.lane
    value: dict[str, Any] = {
        "plan": plan.digest,
        "system": plan.system.digest,
        "name": plan.system.name,
        "numerics": plan.system.contract,
        "topology": plan.topology.as_json(),
        "ownership": plan.ownership.as_json(),
        "combine": plan.topology.combine_json(),
        "role_count": len(plan.roles),
        "role_classes": [
            _class_json(report.planned, each, demand, card)
            for each, demand, card in zip(report.classes, report.demands, report.cards, strict=True)
        ],
        "programs": [
            {"role": each.role, "target": each.target, "program_sha256": each.sha256, "size": each.size}
            for each in report.programs
        ],
    }
    if len(plan.roles) <= MAX_NAMES:
        value["roles"] = [_role_json(report.planned, *each) for each in report.by_role]
    if lane:
        value["lane"] = {"name": lane.name, "updates": lane.updates, "split": lane.split}
        value["steps"] = [
            {"name": step.name, "skipped": step.skipped, "does": step.does, "checks": list(step.checks)}
            for step in report.steps
        ]
    return value


def _class_json(planned: Planned, each: RoleClass, demand: Demand, card: CardNeeds | None) -> dict[str, Any]:
    plan = planned.plan
    fields = plan.system.state_fields
    first = plan.roles[each.roles.start]
    return {
        "roles": node_set(plan.roles, each.roles),
        "count": len(each.roles),
        **_made_for(planned, first),
        "level": each.level,
        "children": each.children,
        "below": each.below - 1,
        "samples": each.samples,
        "owns": {field.name: count for field, count in zip(fields, each.own, strict=False)},
        "holds": {field.name: plan.held(field, first).count for field in fields},
        "memory": memory_json(demand),
        "video_memory": card and card.as_json(),
    }


def _role_json(planned: Planned, role: Role, demand: Demand, card: CardNeeds | None) -> dict[str, Any]:
    plan = planned.plan
    parent = plan.topology.parent(role.index)
    return {
        "name": role.name,
        **_made_for(planned, role),
        "first_sample": plan.rows(role).start,
        "samples": len(plan.rows(role)),
        "dials": None if parent is None else plan.roles[parent].name,
        "publishes": {field.name: vars(part) for field, part in _regions(plan, role)},
        "memory": memory_json(demand),
        "video_memory": card and card.as_json(),
    }


def _made_for(planned: Planned, role: Role) -> dict[str, str | None]:
    return dict(zip(("target", "device"), planned.made_for(role.name), strict=True))


def show(report: PlanReport, *, every: bool) -> None:
    """Print for people; `every`: lay out the memory of every class of roles, not of the largest alone."""
    plan, lane = report.planned.plan, report.lane
    system = plan.system
    if lane:
        say(f"lane      {lane.name}: {counted(lane.updates, 'update')}, split after {lane.split}")
    data = f"{counted(system.rows, 'sample')} of {counted(system.sample_words, 'word')}"
    words = f"{counted(system.state_words, 'word')} of state, {data}"
    say(f"system    {system.name}: {words}")
    if system.bound is not None:
        say(f"numerics  {system.contract}")
    say(f"          {system.digest}")
    say(f"plan      {plan.digest}")
    say(f"combine   {_order(plan)}")
    say(f"owners    {_owners(plan.ownership)}")
    say("\n" + (_roles_table(report.planned) if len(plan.roles) <= _SHOWN_ROLES else _classes_table(report)))
    say("\n" + _memory_table(report))
    for demand in _laid_out(report.demands, every=every):
        show_memory(demand)
    for card in dict.fromkeys(each for each in report.cards if each):
        card.show()
    if report.programs:
        rows = [(each.role, each.target, each.size, each.sha256) for each in report.programs]
        say("\n" + table(("program", "target", "bytes", "sha256 with the binding zeroed"), rows))
    for number, step in enumerate(report.steps, start=1):
        say(f"\n{number}. {step.name}: {step.skipped or step.does}")
        for check in () if step.skipped else step.checks:
            say(f"   - {check}")


def _laid_out(demands: Sequence[Demand], *, every: bool) -> tuple[Demand, ...]:
    """Give the demands whose lines are shown: of roles that ask for the same, the first."""
    if every:
        return tuple({demand.lines: demand for demand in reversed(demands)}.values())[::-1]
    return (max(demands, key=lambda demand: demand.total),)


def _memory_table(report: PlanReport) -> str:
    """Give what each role asks for; roles that ask for as much in one line."""
    alike: dict[tuple[int, int], list[range]] = {}
    for each, demand in zip(report.classes, report.demands, strict=True):
        some = alike.setdefault((demand.persistent, demand.total), [])
        if some and some[-1].stop == each.roles.start:
            some[-1] = range(some[-1].start, each.roles.stop)
        else:
            some.append(each.roles)
    rows = [(_node_sets(report.planned.plan, some), *size) for size, some in alike.items()]
    return table(("memory of", "bytes that last", "bytes at the peak"), rows[:_SHOWN_CLASSES])


def _node_sets(plan: Plan, some: Sequence[range]) -> str:
    shown = [node_set(plan.roles, each) for each in some[:_SHOWN]]
    more = sum(map(len, some[_SHOWN:]))
    return ",".join(shown) + (f" and {more} more" if more else "")


def _owners(held: Ownership) -> str:
    parts = {
        "parameters": held.parameters,
        "optimizer state": held.optimizer_state,
        "gradients": held.gradients,
    }
    return ", ".join(f"{what} {how}" for what, how in parts.items())


def _roles_table(planned: Planned) -> str:
    plan = planned.plan
    rows = []
    for role in plan.roles:
        parent = plan.topology.parent(role.index)
        samples = plan.rows(role)
        children = plan.topology.children(role.index)
        rows.append(
            (
                role.name,
                made_text(planned.made_for(role.name)),
                f"{samples.start}..{samples.stop - 1}" if samples else "none",
                "nobody" if parent is None else plan.roles[parent].name,
                node_set(plan.roles, children) if children else "none",
                ", ".join(f"{field.name}[{slice_text(part)}]" for field, part in _regions(plan, role)),
            )
        )
    return table(("role", "target", "samples", "dials", "children", "publishes"), rows)


def _classes_table(report: PlanReport) -> str:
    """Give one line for roles that follow each other and of which the same is shown."""
    plan = report.planned.plan
    rows = [
        (list(of_row), said)
        for said, of_row in groupby(report.classes, lambda each: _class_row(report.planned, each))
    ]
    shown = []
    for of_row, (level, *said) in rows[:_SHOWN_CLASSES]:
        some = range(of_row[0].roles.start, of_row[-1].roles.stop)
        shown.append((level, node_set(plan.roles, some), len(some), *said))
    left_out = len(rows) - len(shown)
    head = ("level", "roles", "count", "target", "samples", "children", "holds words", "owns")
    return table(head, shown) + (f"\n... {counted(left_out, 'more line')}" if left_out else "")


def _class_row(planned: Planned, each: RoleClass) -> tuple[object, ...]:
    plan = planned.plan
    first = plan.roles[each.roles.start]
    fields = plan.system.state_fields
    held = sum(plan.held(field, first).count for field in fields)
    own = [f"{count} of {field.name}" for field, count in zip(fields, each.own, strict=False) if count]
    return (
        each.level,
        made_text(planned.made_for(first.name)),
        each.samples,
        each.children,
        held,
        ", ".join(own),
    )


def _regions(plan: Plan, role: Role) -> list[tuple[Field, Part]]:
    parts = [(field, plan.published(field, role)) for field in plan.system.state_fields]
    return [(field, part) for field, part in parts if part.count]


def _order(plan: Plan) -> str:
    """Give the order of additions as a person writes it; of a long one what it is like."""
    count = len(plan.roles)
    if count <= 2 * _SHOWN:
        return _subtotal(plan, 0).removeprefix("(").removesuffix(")") if count > 1 else plan.roles[0].name
    if plan.topology.kind == "hierarchy":
        levels = counted(len(plan.topology.below(0)), "level")
        return f"tree of {levels}: a role's own, then its children's subtotals one by one"
    middle = f"... {count - 2 * _SHOWN} more ..."
    names = [role.name for role in (*plan.roles[:_SHOWN], *plan.roles[-_SHOWN:])]
    return "left-deep: " + " + ".join((*names[:_SHOWN], middle, *names[_SHOWN:]))


def _subtotal(plan: Plan, role: int) -> str:
    text = plan.roles[role].name
    for child in plan.topology.children(role):
        text = f"({text} + {_subtotal(plan, child)})"
    return text
