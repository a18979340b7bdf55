"""What would make a lane fail on the nodes of a rental, all of it at once; nothing is changed there.

Knows the lane's roles and where they go, and what the nodes say; must not know what a lane's steps do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
            root = next(iter(roles.values()), next(iter(used)))
            found += _tunnels(remotes, tuple(seen), root)
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


def _tunnels(remotes: Mapping[str, Remote], names: tuple[str, ...], root: str) -> Iterator[Trouble]:
    """Tries a way from every node to the root's."""
    if root not in names:
        return

    def tried(name: str) -> None:
        remotes[name].tunnel(remotes[root], _PORT).close()

    others = [name for name in names if name != root]
    for name, error in at_once(others, tried).items():
        if isinstance(error, OrchError):
            label = str(getattr(error, "label", None) or Label.TUNNEL_REFUSED)
            yield Trouble(name, label, str(error), is_passing=error.exit_code != 1)


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


def _target(role: str, target: str, seen: Examined, emulators: Mapping[str, str]) -> str:
    """Says why a role cannot run on a node; an emulator that does not answer is told of the node itself."""
    from orchestrator.qualify.steps.preflight import MACHINES

    machine = seen.facts.machine
    if machine == MACHINES[target] or target in emulators:
        return ""
    way_out = f"declare one there: emulators: {{{target}: ...}}, or place {role} elsewhere under `roles`"
    return f"{role} is for {target} (got {machine} and no emulator, expected {MACHINES[target]}); {way_out}"
