"""What would make a lane fail on the nodes of a rental, all of it at once; nothing is changed there.

Knows the lane's roles and where they go, and what the nodes say; must not know what a lane's steps do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from orchestrator.cli.nodes import at_once, look, opened
from orchestrator.errors import Label, OrchError, RefusedError

if TYPE_CHECKING:
    from orchestrator.qualify.fitness import Examined
    from orchestrator.remote.base import Remote
    from orchestrator.spec.lane import LaneSpec
    from orchestrator.spec.pods import PodsSpec

_PORT: Final = 20000  # of a tunnel that is tried and taken down; nobody needs to listen


@dataclass(frozen=True)
class Trouble:
    """One thing that would make a lane fail.

    Attributes:
        node: where; empty where it is no single node's.
        label: of the refusal that it would be.
        message: with the way out.
        is_passing: whether it may be gone at the next try.
    """

    node: str
    label: str
    message: str
    is_passing: bool = False


def placed(lane: LaneSpec, pods: PodsSpec) -> Mapping[str, str]:
    """Gives role -> node.

    Raises:
        RefusedError: the file's `roles` leave one out.
    """
    from orchestrator.qualify.placement import place, refusals

    roles = lane.run.roles
    if found := tuple(refusals(roles, pods)):
        raise RefusedError(found)
    return {role: each.node for role, each in place(roles, pods).items()}


def examine(
    pods: PodsSpec, lane: LaneSpec | None, roles: Mapping[str, str]
) -> tuple[Mapping[str, Examined], tuple[Trouble, ...]]:
    """Looks at every node that is used; at all of them where there is no lane.

    Args:
        pods: the rental.
        lane: that is to run there.
        roles: role -> node; empty without a lane.

    Returns:
        What was seen of the nodes that answered, and everything that is in the way.
    """
    used = {name: node for name, node in pods.nodes.items() if not lane or name in roles.values()}
    with opened(used.values()) as remotes:
        answers = at_once(used, lambda name: look(used[name], remotes[name]))
        seen = {name: answer for name, answer in answers.items() if not isinstance(answer, OrchError)}
        found = [trouble for name, answer in answers.items() for trouble in _of_node(name, answer)]
        if pods.transport == "ssh-tunnel":
            ways = _ways(lane, roles) if lane else _to_the_first(tuple(used))
            found += _tunnels(remotes, [way for way in ways if {*way} <= {*seen}])
    found += _of_cap(pods)
    if lane is not None:
        found += _of_lane(pods, lane, roles, seen)
    return seen, tuple(found)


def _of_node(name: str, answer: Examined | OrchError) -> Iterator[Trouble]:
    from orchestrator.qualify.fitness import faults

    if isinstance(answer, OrchError):
        label = str(getattr(answer, "label", None) or Label.UNREACHABLE)
        yield Trouble(name, label, str(answer), is_passing=answer.exit_code != 1)
        return
    for fault in faults(answer):
        yield Trouble(name, str(fault.label), str(fault))


def _of_cap(pods: PodsSpec) -> Iterator[Trouble]:
    """What the rental may cost in all, reached before anything has begun."""
    from orchestrator.qualify.limits import Billing, Limits, StopLaneError, declared
    from orchestrator.spec.lane import Limits as LaneLimits

    billing = Billing.of(pods)
    try:
        Limits(declared(LaneLimits(None, None), datetime.now(UTC), billing), billing).check()
    except StopLaneError as reached:
        way_out = "a higher `cap` under `rental`, or an end to the rental"
        yield Trouble("", str(Label.LIMIT_SPEND), f"{reached}; {way_out}")


def _ways(lane: LaneSpec, roles: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Nodes between which a lane's roles need a tunnel: (from, to)."""
    from orchestrator.plan.derive import derive
    from orchestrator.qualify.endpoints import TUNNEL, Wiring
    from orchestrator.spec.run import RunSpec

    if not isinstance(lane.run, RunSpec):  # roles of a user's own program find each other by themselves
        return ()
    wiring = Wiring(TUNNEL, roles, topology=derive(lane.run).plan.topology)
    return tuple((node, other) for node, others in wiring.forwards.items() for other in others)


def _to_the_first(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """What the roles of a star would need, one on each node."""
    return tuple((name, names[0]) for name in names[1:])


def _tunnels(remotes: Mapping[str, Remote], ways: Sequence[tuple[str, str]]) -> Iterator[Trouble]:
    """Tries every way between two nodes, those from one node one after the other."""

    def tried(name: str) -> tuple[OrchError, ...]:
        return tuple(_refusals(remotes[name], [remotes[other] for near, other in ways if near == name]))

    for name, errors in at_once(dict.fromkeys(near for near, _ in ways), tried).items():
        for error in errors if isinstance(errors, tuple) else (errors,):
            label = str(getattr(error, "label", None) or Label.TUNNEL_REFUSED)
            yield Trouble(name, label, str(error), is_passing=error.exit_code != 1)


def _refusals(near: Remote, others: Sequence[Remote]) -> Iterator[OrchError]:
    """Why tunnels from a node to others carry nothing."""
    for far in others:
        try:
            near.tunnel(far, _PORT).close()
        except OrchError as error:
            yield error


def _of_lane(
    pods: PodsSpec, lane: LaneSpec, roles: Mapping[str, str], seen: Mapping[str, Examined]
) -> Iterator[Trouble]:
    """Instruction sets and memory, of the nodes that answered."""
    from orchestrator.admit.host import admit
    from orchestrator.plan.derive import derive
    from orchestrator.spec.run import RunSpec

    run = lane.run
    if not isinstance(run, RunSpec):  # of a program of the user's own nothing is known that a node could lack
        return
    planned = derive(run)
    swapped = {role: lane.swap.get(target, target) for role, target in planned.targets.items()}
    for role, target in dict.fromkeys((*planned.targets.items(), *swapped.items())):
        node = roles[role]
        if node in seen and (message := _target(role, target, seen[node], pods.nodes[node].emulators)):
            yield Trouble(node, str(Label.TARGET_ARCH), f"{Label.TARGET_ARCH}: {message}")
    quotas: dict[str, int | None] = dict.fromkeys(pods.nodes, None)
    quotas |= {name: each.facts.quota_bytes for name, each in seen.items()}
    for refusal in admit(planned.plan, run, roles, quotas):
        node = roles[refusal.key.removeprefix("memory.")]
        if node in seen:
            yield Trouble(node, str(refusal.label), f"{refusal.label}: {refusal.message}")
    yield from _of_cards(pods, lane, seen)


def _of_cards(pods: PodsSpec, lane: LaneSpec, seen: Mapping[str, Examined]) -> Iterator[Trouble]:
    """Device roles without a card, and cards that are not what their roles need, too small, or not free."""
    from orchestrator.admit.device import FoundCard, Part, admit_cards
    from orchestrator.plan.derive import derive
    from orchestrator.probe import checks
    from orchestrator.qualify.card_checks import wanted
    from orchestrator.qualify.device_places import place_devices
    from orchestrator.qualify.devices import of_planned
    from orchestrator.qualify.pins import Pinned
    from orchestrator.spec.run import RunSpec

    placed, lacking = place_devices(lane.run.roles, pods, lane)
    for refusal in lacking:
        hint = f"; {refusal.hint}" if refusal.hint else ""
        yield Trouble("", str(refusal.label), f"{refusal.label}: {refusal.message}{hint}")
    if not isinstance(lane.run, RunSpec):
        return
    planned = derive(lane.run)
    profiles, cards = of_planned(planned, lane), Pinned.of(pods, placed).cards
    found = {
        role: FoundCard(card.node, card.uuid or f"minor {card.minor}", inventory.driver.known)
        for role, card in cards.items()
        if card.node in seen and (inventory := seen[card.node].cards)
    }
    for refusal in admit_cards(lane.run, [Part(planned, found)]):
        node = found[refusal.key.removeprefix("video_memory.")].node
        yield Trouble(node, str(refusal.label), f"{refusal.label}: {refusal.message}; {refusal.hint}")
    for role, card in cards.items():
        inventory = seen[card.node].cards if role in profiles and card.node in seen else None
        for row in checks(inventory, wanted(lane, card, profiles[role])) if inventory else ():
            if row.verdict == "fail":
                message = f"{row.label}: {role}: {row.name} (got {row.got}, expected {row.expected})"
                yield Trouble(card.node, str(row.label), message)


def _target(role: str, target: str, seen: Examined, emulators: Mapping[str, str]) -> str:
    """Says why a role cannot run on a node; an emulator that does not answer is told of the node itself."""
    from orchestrator.qualify.steps.preflight import MACHINES

    machine = seen.facts.machine
    if machine == MACHINES[target] or target in emulators:
        return ""
    way_out = f"declare one there: emulators: {{{target}: ...}}, or place {role} elsewhere under `roles`"
    return f"{role} is for {target} (got {machine} and no emulator, expected {MACHINES[target]}); {way_out}"
