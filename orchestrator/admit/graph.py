"""What machines offer, as a graph: where roles can be, over what they can send, and what can be used up.

*Endpoints* are places with memory: a machine's host side, or one card. *Links* lead one way between two of
them and say how large a transfer may be. *Domains* are what leases use up: each backs the memory of some
endpoints. *Relations* say what endpoints have in common, and nothing else: being in one machine is no way
from one card to another. Every amount is established with a reference, or absent with a reason.

Knows no file, no role program and no card; what is in the graph is for `orchestrator.admit.device` to say,
and whether it holds for `orchestrator.admit.hold`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Established:
    """A known amount of bytes, and where it was read."""

    value: int
    reference: str


@dataclass(frozen=True)
class Absent:
    """An amount that is not known, and why."""

    reason: str


Amount = Established | Absent


@dataclass(frozen=True)
class Endpoint:
    """A place with memory, by a name of its own."""

    name: str
    kind: Literal["host", "card"]


@dataclass(frozen=True)
class Envelope:
    """How many bytes one transfer over a link may have: from `least` to `most`, both among them."""

    least: int
    most: Amount


@dataclass(frozen=True)
class Link:
    """A way from one endpoint to another; the way back is a link of its own, or there is none."""

    source: str
    target: str
    envelope: Envelope


@dataclass(frozen=True)
class Domain:
    """Something that leases use up, and the endpoints whose memory it backs."""

    name: str
    endpoints: tuple[str, ...]
    capacity: Amount


@dataclass(frozen=True)
class Relation:
    """What some endpoints have in common, such as a machine. No transfer follows from it."""

    name: str
    kind: str
    endpoints: tuple[str, ...]


@dataclass(frozen=True)
class Graph:
    """All of it. Names are unique among endpoints, domains and relations each."""

    endpoints: tuple[Endpoint, ...]
    links: tuple[Link, ...] = ()
    domains: tuple[Domain, ...] = ()
    relations: tuple[Relation, ...] = ()


@dataclass(frozen=True)
class Placement:
    """A role is at an endpoint; a role with a card is at two, its machine's and the card's."""

    role: str
    endpoint: str


@dataclass(frozen=True)
class Lease:
    """Bytes of a domain that a role uses in the steps [start, stop) of a schedule.

    Attributes:
        role: who.
        domain: of what.
        buffer: what of; leases of one domain with the same buffer are aliases, and are charged once.
        bytes: how many, the same for every alias.
        start: the first step.
        stop: the step before which it is given back.
    """

    role: str
    domain: str
    buffer: str
    bytes: int
    start: int
    stop: int


@dataclass(frozen=True)
class Transfer:
    """One role sends bytes at a time from an endpoint where it is to another endpoint."""

    role: str
    source: str
    target: str
    bytes: int


@dataclass(frozen=True)
class Use:
    """What is asked of a graph.

    Attributes:
        steps: of the schedule, from 0.
        placements: where roles are.
        leases: what they use up.
        transfers: what they send.
    """

    steps: int
    placements: tuple[Placement, ...]
    leases: tuple[Lease, ...] = ()
    transfers: tuple[Transfer, ...] = ()
