"""What a role sends and receives in a round, in arithmetic.

Knows the tree, who owns which words, and the order of a round; must not know a program. Every part of a round
goes up the tree or down it, over every edge of it: what crosses the edge between a role and its parent is a
matter of the role and those below it alone. Nothing here grows with the number of roles.

A round of version v, in its order:

* `offer` up, `replica` down: partitioned parameters, each word from its owner, then all to everybody;
* `contribution` up: every combined word, a role's own and the subtotals of those below it added;
* `total` down: all totals, or of partitioned gradients those that the roles below own, and the results;
* `select` up, `selected` down: what is replicated though one role each has computed it.

Of a few roles (`may_be_mesh`) contributions and totals may go otherwise, as their number and length make it
quicker: where that is so is decided when roles meet, and changes no sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.plan.classes import RoleClass, owned_below
from orchestrator.plan.model import Field, Plan

HEADER_BYTES = 96
MOST_WINDOW_WORDS = 4096
MESH_ROLES = 16
"""So many at most may be connected each to each."""

Direction = Literal["up", "down"]


@dataclass(frozen=True)
class Part:
    """One part of a round: its frames' kind, their way, and the words of each stream over a role's edge."""

    kind: str
    direction: Direction
    streams: Callable[[int], tuple[int, ...]]


@dataclass(frozen=True)
class Flow:
    """What one role sends or receives in one part of a round, to or from each of peers that are alike.

    Attributes:
        kind: of the frames.
        sends: or receives.
        peers: indices of roles.
        words: payload for each peer.
        frames: for each peer; none where there are no words.
        bytes: for each peer, headers among them.
    """

    kind: str
    sends: bool
    peers: range
    words: int
    frames: int
    bytes: int


def may_be_mesh(plan: Plan) -> bool:
    """Whether roles on one node exchange what is combined over connections of their own, each to each."""
    return 1 < len(plan.roles) <= MESH_ROLES and plan.ownership.gradients == "replicated"


def window_words(plan: Plan) -> int:
    """Most words of one frame: no more than are ever sent at once."""
    sent = max(plan.system.combined_words, *(field.size for field in plan.system.state_fields))
    return min(MOST_WINDOW_WORDS, sent)


def round_parts(plan: Plan) -> tuple[Part, ...]:
    """The parts of a round, in order."""
    system, held = plan.system, plan.ownership
    # where samples are not dealt out by rows, an owner's parameters and totals are read by nobody else
    is_by_rows = system.has_own_rows
    split = tuple(each for each in system.parameters if is_by_rows and plan.is_partitioned(each))
    whole = tuple(each for each in system.state_fields if not plan.is_partitioned(each) and not each.shared)

    def owned(fields: tuple[Field, ...], more: int = 0) -> Callable[[int], tuple[int, ...]]:
        return lambda role: (sum(owned_below(plan, each, role) for each in fields) + more,)

    def all_of(*sizes: int) -> Callable[[int], tuple[int, ...]]:
        return lambda _: sizes

    parts = []
    if split:
        parts.append(Part("offer", "up", owned(split)))
        parts.append(Part("replica", "down", all_of(*(each.size for each in split))))
    parts.append(Part("contribution", "up", all_of(system.combined_words)))
    totals = all_of(system.combined_words)
    if is_by_rows and held.gradients == "partitioned":
        totals = owned(system.contributions, len(system.results) + 1)
    parts.append(Part("total", "down", totals))
    if held.is_partitioned and whole:
        parts.append(Part("select", "up", owned(whole)))
        parts.append(Part("selected", "down", all_of(*(each.size for each in whole))))
    return tuple(parts)


def round_of(plan: Plan, role: int, classes: Sequence[RoleClass]) -> tuple[Flow, ...]:
    """What a role sends and receives in a round, in its order; `classes` are the plan's."""
    parent = plan.topology.parent(role)
    children = tuple(_alike(plan.topology.children(role), classes))
    flows = []
    for part in round_parts(plan):
        is_up = part.direction == "up"
        down = [_flow(plan, part, peers, peers.start, sends=not is_up) for peers in children]
        up = [_flow(plan, part, range(parent, parent + 1), role, sends=is_up)] if parent is not None else []
        flows += [*down, *up] if is_up else [*up, *down]
    return tuple(flow for flow in flows if flow.frames)


def _flow(plan: Plan, part: Part, peers: range, below: int, *, sends: bool) -> Flow:
    """What crosses the edges between a role and its peers; `below` is the lower end of the first of them."""
    streams, window = part.streams(below), window_words(plan)
    frames = sum(-(-words // window) for words in streams)
    size = sum(streams) * plan.system.word.size + frames * HEADER_BYTES
    return Flow(part.kind, sends, peers, sum(streams), frames, size)


def _alike(roles: range, classes: Sequence[RoleClass]) -> Iterator[range]:
    """Cuts consecutive roles where another class begins."""
    for each in classes:
        start, stop = max(roles.start, each.roles.start), min(roles.stop, each.roles.stop)
        if start < stop:
            yield range(start, stop)
