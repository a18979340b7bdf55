"""Device roles of a lane on the cards that a pods file has pinned: which is whose, and who is left without.

Pure. A role keeps its node when its program is made for another profile, so its other card has to be there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.errors import Label, Refusal
from orchestrator.plan.derive import derive
from orchestrator.qualify import devices
from orchestrator.qualify.cards import BoundCard
from orchestrator.qualify.launch import SWAPPED
from orchestrator.qualify.placement import minor_of, place, uuid_of, without_card
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.pods import Placement, PodsSpec
from orchestrator.spec.program import CommandRunSpec


def place_devices(
    roles: Sequence[str], pods: PodsSpec, lane: LaneSpec
) -> tuple[Mapping[str, Placement], tuple[Refusal, ...]]:
    """Role -> node and card, in the roles' order; and device roles without a card, as refusals."""
    if isinstance(lane.run, CommandRunSpec):
        return place(roles, pods), ()
    planned = derive(lane.run)
    own, swapped = devices.of_planned(planned, lane), devices.of_planned(planned, lane, SWAPPED)
    placed = place(roles, pods, own)
    if lacking := tuple(without_card(placed, pods, tuple(own))):
        return placed, lacking
    bound = {
        role: BoundCard(where.node, minor_of(where.card, pods.nodes[where.node].cards), uuid_of(where.card))
        for role, where in placed.items()
        if role in own and where.card is not None
    }
    after = devices.exchanged(bound, own, swapped)
    return placed, tuple(_no_other(lane, role, placed[role].node) for role in swapped if role not in after)


def _no_other(lane: LaneSpec, role: str, node: str) -> Refusal:
    message = (
        f"no card of another role on node {node} is of the profile that {role} is swapped to"
        " (got none, expected one)"
    )
    hint = "roles keep their nodes: `--from` goes on with roles on other nodes and cards"
    return lane.document.at(Label.DEVICE_ABSENT, message, ("swap",), hint=hint)
