"""What `orch plan` and `orch validate` say of cards' memory: what roles use of it, and how much there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.cli.output import say, size_text, table

if TYPE_CHECKING:
    from orchestrator.admit.memory import DemandLine
    from orchestrator.errors import Refusal
    from orchestrator.plan.derive import Planned
    from orchestrator.plan.model import Role
    from orchestrator.spec.lane import LaneSpec
    from orchestrator.spec.run import RunSpec


@dataclass(frozen=True)
class CardNeeds:
    """What a role uses of its card, line by line, and what the card is known to hold.

    Attributes:
        product: as the driver says it.
        lines: of all that is used; what the program does not allocate itself is not static.
        holds: driver -> bytes that processes may use, where that is established.
    """

    product: str
    lines: tuple[DemandLine, ...]
    holds: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        """Bytes that are charged."""
        return sum(line.bytes for line in self.lines)

    @property
    def allocated(self) -> int:
        """Bytes that the program itself allocates."""
        return sum(line.bytes for line in self.lines if line.is_static)

    def as_json(self) -> dict[str, Any]:
        """Give what `--json` prints."""
        return {
            "product": self.product,
            "bytes": self.total,
            "allocated_bytes": self.allocated,
            "lines": [vars(line) for line in self.lines],
            "holds": dict(self.holds),
        }

    def show(self) -> None:
        """Print it for people."""
        used = f"{size_text(self.total)}, of which its program allocates {size_text(self.allocated)}"
        say(f"\nvideo memory of a role on {self.product}: {used}")
        rows = [(line.what, line.formula, line.bytes) for line in self.lines if line.bytes]
        rows += [("the card holds", f"under driver {driver}", size) for driver, size in self.holds]
        if not self.holds:
            rows.append(("the card holds", "not known: its profile says why", 0))
        say(table(("", "", ""), rows, indent="  "))


@dataclass(frozen=True)
class Admitted:
    """What is known of a run with cards before any machine is.

    Attributes:
        refusals: of its admission.
        roles: node sets of device roles that are alike, each with what one of them uses.
    """

    refusals: tuple[Refusal, ...]
    roles: tuple[tuple[str, CardNeeds], ...]

    def as_json(self) -> list[dict[str, Any]]:
        """Give what `--json` prints."""
        return [{"roles": roles, **each.as_json()} for roles, each in self.roles]

    def text(self) -> str:
        """Give it for people: a line for roles that are alike."""
        rows = []
        for roles, each in self.roles:
            sizes = sorted({size for _, size in each.holds})
            held = " to ".join(dict.fromkeys((size_text(sizes[0]), size_text(sizes[-1])))) if sizes else "?"
            rows.append((roles, each.product, size_text(each.allocated), size_text(each.total), held))
        head = ("video memory of", "each on", "allocates", "uses", "of")
        return table(head, rows, indent="  ")


def admitted(run: RunSpec, lane: LaneSpec | None) -> Admitted:
    """Give what is known of a run with cards, or of a lane over it."""
    from orchestrator.cli.planning import admission
    from orchestrator.plan.classes import role_classes
    from orchestrator.plan.derive import derive
    from orchestrator.plan.roles import node_set

    planned = derive(run)
    plan = planned.plan
    found = (
        (node_set(plan.roles, each.roles), needs(planned, plan.roles[each.roles.start]))
        for each in role_classes(plan, run.made_for)
    )
    return Admitted(
        admission(planned, run, lane), tuple((roles, asked) for roles, asked in found if asked is not None)
    )


def needs(planned: Planned, role: Role) -> CardNeeds | None:
    """Give what a role uses of its card; None where it has none."""
    device = planned.devices[role.name]
    if device is None:
        return None
    from orchestrator.admit.card import card_demand, supplies

    lines = card_demand(planned.plan, role).lines
    return CardNeeds(device.product, lines, tuple(supplies(device).items()))
