"""What `orch plan FILE --role NAME` says: what one role sends, receives, computes and holds in a round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.cli.output import say, size_text, table
from orchestrator.plan.ownership import part
from orchestrator.plan.roles import node_set
from orchestrator.plan.rounds import may_be_mesh, round_of

if TYPE_CHECKING:
    from orchestrator.admit.memory import Demand
    from orchestrator.cli.plan_cards import CardNeeds
    from orchestrator.plan.classes import RoleClass
    from orchestrator.plan.model import Plan, Role
    from orchestrator.plan.ownership import Part
    from orchestrator.plan.rounds import Flow


@dataclass(frozen=True)
class RoleReport:
    """One role of a plan: what it is made for, the plan's classes, what it asks for in memory."""

    plan: Plan
    role: Role
    made_for: tuple[str, str | None]
    classes: tuple[RoleClass, ...]
    demand: Demand
    card: CardNeeds | None

    @property
    def parent(self) -> str | None:
        """The name of the role that it dials."""
        parent = self.plan.topology.parent(self.role.index)
        return None if parent is None else self.plan.roles[parent].name

    @property
    def children(self) -> str:
        """The node set of the roles that dial it."""
        return node_set(self.plan.roles, self.plan.topology.children(self.role.index))

    @property
    def flows(self) -> tuple[Flow, ...]:
        """What it sends and receives in a round, in its order."""
        return round_of(self.plan, self.role.index, self.classes)

    @property
    def coordinates(self) -> dict[str, dict[str, Part]]:
        """Of each state field the coordinates that it owns, holds, computes in an update, and publishes."""
        plan, role = self.plan, self.role
        found: dict[str, dict[str, Part]] = {"owns": {}, "holds": {}, "computes": {}, "publishes": {}}
        for field in plan.system.state_fields:
            is_partitioned = plan.ownership.is_partitioned
            own = plan.owned(field, role) if is_partitioned else part(0, 1, 0)
            is_own_alone = is_partitioned and not field.shared
            found["owns"][field.name] = own
            found["holds"][field.name] = plan.held(field, role)
            found["computes"][field.name] = own if is_own_alone else part(0, 1, field.size)
            found["publishes"][field.name] = plan.published(field, role)
        return found


def as_json(report: RoleReport) -> dict[str, Any]:
    """Give what `--json` prints of one role."""
    plan, role = report.plan, report.role
    flows, children = report.flows, plan.topology.children(role.index)
    return {
        "plan": plan.digest,
        "system": plan.system.digest,
        "role": {
            "name": role.name,
            "index": role.index,
            "level": len(plan.topology.path(role.index)) - 1,
            "target": report.made_for[0],
            "device": report.made_for[1],
            "dials": report.parent,
            "children": {"roles": report.children, "count": len(children)},
            "below": sum(map(len, plan.topology.below(role.index))) - 1,
            "first_sample": plan.rows(role).start,
            "samples": len(plan.rows(role)),
            **{does: _parts_json(parts) for does, parts in report.coordinates.items()},
            "round": {
                "sends": [_flow_json(plan, flow) for flow in flows if flow.sends],
                "receives": [_flow_json(plan, flow) for flow in flows if not flow.sends],
            },
            "memory": memory_json(report.demand),
            "video_memory": report.card and report.card.as_json(),
        },
    }


def memory_json(demand: Demand) -> dict[str, Any]:
    """Give what a role's program holds: bytes at the peak of a round, those that last, and line by line."""
    lines = [vars(line) for line in demand.lines]
    return {"bytes": demand.total, "persistent_bytes": demand.persistent, "lines": lines}


def _parts_json(parts: Mapping[str, Part]) -> dict[str, Any]:
    return {name: vars(each) for name, each in parts.items() if each.count}


def _flow_json(plan: Plan, flow: Flow) -> dict[str, Any]:
    return {
        "kind": flow.kind,
        "peers": {"roles": node_set(plan.roles, flow.peers), "count": len(flow.peers)},
        "words": flow.words,
        "frames": flow.frames,
        "bytes": flow.bytes,
    }


def show(report: RoleReport) -> None:
    """Print for people what one role does."""
    plan, role, demand = report.plan, report.role, report.demand
    level = len(plan.topology.path(role.index)) - 1
    samples = plan.rows(role)
    say(f"plan       {plan.digest}")
    place = f"role {role.index} of {len(plan.roles)}, level {level}"
    say(f"role       {role.name}: {made_text(report.made_for)}, {place}")
    say(f"dials      {report.parent or 'nobody: it is the root'}")
    say(f"children   {report.children or 'none'}")
    say(f"samples    {f'{samples.start}..{samples.stop - 1}' if samples else 'none'}")
    for does, parts in report.coordinates.items():
        shown = ", ".join(f"{name}[{slice_text(each)}]" for name, each in parts.items() if each.count)
        say(f"{does:<10} {shown or 'nothing'}")
    rows = [
        (
            "sends" if flow.sends else "receives",
            flow.kind,
            node_set(plan.roles, flow.peers),
            flow.words,
            flow.frames,
            flow.bytes,
        )
        for flow in report.flows
    ]
    say("\n" + table(("in a round", "kind", "with each of", "words", "frames", "bytes"), rows))
    if may_be_mesh(plan):
        say("on one node, contributions and totals may go from each role to each instead, in the same order")
    show_memory(demand)
    if report.card:
        report.card.show()


def show_memory(demand: Demand) -> None:
    """Print what a role's program holds in memory, line by line."""
    kept = size_text(demand.persistent)
    say(f"\nmemory of {demand.role}: at the peak {size_text(demand.total)}, from update to update {kept}")
    lines = [(line.what, line.formula, line.bytes) for line in demand.lines if line.bytes]
    say(table(("", "", ""), lines, indent="  "))


def made_text(made_for: tuple[str, str | None]) -> str:
    """Give target and card as people read them: `x86_64-linux, nvidia-geforce-rtx-3070`."""
    return ", ".join(each for each in made_for if each)


def slice_text(coordinates: Part) -> str:
    """Give coordinates as Python slices them."""
    end = coordinates.coordinates[-1] + 1
    stride = coordinates.stride
    return f"{coordinates.first}:{end}" if stride == 1 else f"{coordinates.first}:{end}:{stride}"
