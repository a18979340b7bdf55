"""Whether a resource graph holds what is asked of it; and what is wrong, by label.

Knows the graph alone. Of five classes of faults the first that has any is told whole, and no later one,
since what is asked of a graph that is not sound means nothing: planning budget, malformed graph, invalid
placement or lease (a transfer without a link is among them), unknown limit, exceeded capacity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

from orchestrator.admit.graph import Absent, Amount, Established, Graph, Lease, Link, Transfer, Use
from orchestrator.errors import Label

MOST_ENTRIES = 1 << 18
"""Entries of a graph and of its use that are looked at, all together."""


@dataclass(frozen=True)
class Fault:
    """One thing that does not hold.

    Attributes:
        label: which refusal it is.
        message: one sentence; ends with "(got X, expected Y)".
        roles: whom it is about, those who use most last; empty where it is about the graph alone.
        domain: what is used up; empty where it is about something else.
    """

    label: Label
    message: str
    roles: tuple[str, ...] = ()
    domain: str = ""


def faults(graph: Graph, use: Use, budget: int = MOST_ENTRIES) -> tuple[Fault, ...]:
    """The faults of the first class that has any, in the order of what they are about; none if all holds."""
    classes: tuple[Callable[[Graph, Use], Iterable[Fault]], ...] = (
        lambda graph, use: _over_budget(graph, use, budget),
        lambda graph, _: _malformed(graph),
        lambda graph, use: (*_misplaced(graph, use), *_without_link(graph, use)),
        _unknown,
        _exceeded,
    )
    return next((found for each in classes if (found := tuple(each(graph, use)))), ())


def _over_budget(graph: Graph, use: Use, budget: int) -> Iterator[Fault]:
    members = [*(each.endpoints for each in graph.domains), *(each.endpoints for each in graph.relations)]
    parts = (graph.endpoints, graph.links, members, *members, use.placements, use.leases, use.transfers)
    entries = sum(map(len, parts))
    if entries > budget:
        message = (
            f"there is more to plan than is looked at (got {entries} entries, expected at most {budget})"
        )
        yield Fault(Label.PLANNING_BUDGET, message)


def _malformed(graph: Graph) -> Iterator[Fault]:
    for what, named in (
        ("endpoint", [each.name for each in graph.endpoints]),
        ("link", [f"{each.source} to {each.target}" for each in graph.links]),
        ("domain", [each.name for each in graph.domains]),
        ("relation", [each.name for each in graph.relations]),
    ):
        for name, count in Counter(named).items():
            if count > 1:
                yield _bad(f"{what} {name} is there more than once", f"{count}", "1")
    known = {each.name for each in graph.endpoints}
    for link in graph.links:
        yield from _bad_link(link, known)
    for domain in graph.domains:
        yield from _bad_members(domain.name, domain.endpoints, known)
        yield from _bad_amount(f"the capacity of {domain.name}", domain.capacity)
    for relation in graph.relations:
        yield from _bad_members(relation.name, relation.endpoints, known)


def _bad_members(name: str, endpoints: tuple[str, ...], known: set[str]) -> Iterator[Fault]:
    for each in endpoints:
        if each not in known:
            yield _bad(f"{name} is of an endpoint that is not there", each, "one of the graph")
    if len(set(endpoints)) < len(endpoints) or not endpoints:
        listed = ", ".join(endpoints) or "none"
        yield _bad(f"{name} does not name endpoints once each", listed, "at least one, once")


def _bad_link(link: Link, known: set[str]) -> Iterator[Fault]:
    name = f"the link {link.source} to {link.target}"
    for end in (link.source, link.target):
        if end not in known:
            yield _bad(f"{name} ends at an endpoint that is not there", end, "one of the graph")
    if link.source == link.target:
        yield _bad(f"{name} leads nowhere", link.target, "another endpoint")
    least, most = link.envelope.least, link.envelope.most
    yield from _bad_amount(f"the most of {name}", most)
    if least < 0 or (isinstance(most, Established) and most.value < least):
        expected = f"0 to {most.value}" if isinstance(most, Established) else "0 or more"
        yield _bad(f"no transfer is within the envelope of {name}", f"at least {least}", expected)


def _bad_amount(name: str, amount: Amount) -> Iterator[Fault]:
    if isinstance(amount, Absent):
        if not amount.reason:
            yield _bad(f"{name} is absent without a reason", "nothing", "a reason")
    elif not amount.reference or amount.value < 0:
        got = f"{amount.value} from {amount.reference or 'nowhere'}"
        yield _bad(f"{name} is not established", got, "0 or more, with a reference")


def _bad(what: str, got: str, expected: str) -> Fault:
    return Fault(Label.GRAPH_MALFORMED, f"{what} (got {got}, expected {expected})")


def _misplaced(graph: Graph, use: Use) -> Iterator[Fault]:
    endpoints = {each.name for each in graph.endpoints}
    backed = {each.name: set(each.endpoints) for each in graph.domains}
    places = _places(use)
    for placement, count in Counter(use.placements).items():
        if placement.endpoint not in endpoints:
            yield _invalid(placement.role, "is nowhere", placement.endpoint, "an endpoint of the graph")
        elif count > 1:
            yield _invalid(placement.role, f"is at {placement.endpoint} more than once", str(count), "1")
    aliases: dict[tuple[str, str], Lease] = {}
    for lease in use.leases:
        if lease.domain not in backed:
            yield _invalid(lease.role, "has a lease of nothing", lease.domain, "a domain of the graph")
        elif not backed[lease.domain] & places.get(lease.role, set()):
            got = ", ".join(sorted(places.get(lease.role, ()))) or "nowhere"
            expected = " or ".join(sorted(backed[lease.domain]))
            yield _invalid(lease.role, f"is not where {lease.domain} is", got, expected)
        if not 0 <= lease.start < lease.stop <= use.steps or lease.bytes < 0:
            got = f"{lease.bytes} bytes in [{lease.start}, {lease.stop})"
            expected = f"0 or more in steps of [0, {use.steps})"
            yield _invalid(lease.role, f"has a lease of {lease.buffer} at no time", got, expected)
        first = aliases.setdefault((lease.domain, lease.buffer), lease)
        if first.bytes != lease.bytes:
            what = f"has an alias of {lease.buffer} of another size"
            yield _invalid(lease.role, what, str(lease.bytes), str(first.bytes))


def _places(use: Use) -> Mapping[str, set[str]]:
    places: dict[str, set[str]] = {}
    for each in use.placements:
        places.setdefault(each.role, set()).add(each.endpoint)
    return places


def _invalid(role: str, what: str, got: str, expected: str) -> Fault:
    return Fault(Label.PLACEMENT_INVALID, f"{role} {what} (got {got}, expected {expected})", (role,))


def _without_link(graph: Graph, use: Use) -> Iterator[Fault]:
    links, places = {(each.source, each.target) for each in graph.links}, _places(use)
    for each in use.transfers:
        if each.source not in places.get(each.role, set()):
            got = ", ".join(sorted(places.get(each.role, ()))) or "nowhere"
            yield _invalid(each.role, f"sends from where it is not to {each.target}", got, each.source)
        elif (each.source, each.target) not in links:
            message = (
                f"{each.role} has no way from {each.source} to {each.target}"
                " (got no link, expected one in this direction)"
            )
            yield Fault(Label.LINK_MISSING, message, (each.role,))


def _unknown(graph: Graph, use: Use) -> Iterator[Fault]:
    leased = _roles_of(use.leases)
    for domain in graph.domains:
        if isinstance(domain.capacity, Absent) and domain.name in leased:
            message = (
                f"what {domain.name} holds is not known (got {domain.capacity.reason}, expected an amount)"
            )
            yield Fault(Label.CAPACITY_UNKNOWN, message, leased[domain.name], domain.name)
    for link, transfer in _sent(graph, use):
        if isinstance(link.envelope.most, Absent):
            message = (
                f"what {link.source} to {link.target} takes at a time is not known"
                f" (got {link.envelope.most.reason}, expected an amount)"
            )
            yield Fault(Label.CAPACITY_UNKNOWN, message, (transfer.role,))


def _exceeded(graph: Graph, use: Use) -> Iterator[Fault]:
    of_domain: dict[str, list[Lease]] = {}
    for lease in use.leases:
        of_domain.setdefault(lease.domain, []).append(lease)
    for domain in graph.domains:
        leases, capacity = of_domain.get(domain.name, []), domain.capacity
        step, used = peak(leases)
        if isinstance(capacity, Established) and used > capacity.value:
            roles = _roles_of([each for each in leases if each.start <= step < each.stop])[domain.name]
            got = f"{used} bytes of {', '.join(roles)} at once"
            message = f"{domain.name} does not hold them (got {got}, expected at most {capacity.value})"
            yield Fault(Label.CAPACITY_EXCEEDED, message, roles, domain.name)
    for link, transfer in _sent(graph, use):
        most = link.envelope.most
        if isinstance(most, Established) and not link.envelope.least <= transfer.bytes <= most.value:
            expected = f"{link.envelope.least} to {most.value}"
            message = (
                f"{transfer.role} sends what {link.source} to {link.target} does not take at a time"
                f" (got {transfer.bytes} bytes, expected {expected})"
            )
            yield Fault(Label.CAPACITY_EXCEEDED, message, (transfer.role,))


def peak(leases: Iterable[Lease]) -> tuple[int, int]:
    """The first step at which leases of one domain use most, and how many bytes that is.

    A buffer counts in every step in which any of its aliases is leased, and once.
    """
    spans: dict[str, list[Lease]] = {}
    for lease in leases:
        spans.setdefault(lease.buffer, []).append(lease)
    changes: Counter[int] = Counter()
    for aliases in spans.values():
        for start, stop in _union((each.start, each.stop) for each in aliases):
            changes[start] += aliases[0].bytes
            changes[stop] -= aliases[0].bytes
    steps = sorted(changes)
    used = accumulate(changes[step] for step in steps)
    best_step, best = 0, 0
    for step, amount in zip(steps, used, strict=True):
        if amount > best:
            best_step, best = step, amount
    return best_step, best


def _union(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yields half-open intervals that overlap or touch as one."""
    ordered = sorted(spans)
    ends = list(accumulate((stop for _, stop in ordered), max))
    start = ordered[0][0]
    for (_, end), (following, _) in pairwise(zip((each[0] for each in ordered), ends, strict=True)):
        if following > end:
            yield start, end
            start = following
    yield start, ends[-1]


def _sent(graph: Graph, use: Use) -> Iterator[tuple[Link, Transfer]]:
    """Every transfer with the link that it goes over."""
    links = {(each.source, each.target): each for each in graph.links}
    return ((links[each.source, each.target], each) for each in use.transfers)


def _roles_of(leases: Iterable[Lease]) -> Mapping[str, tuple[str, ...]]:
    """Of each domain the roles with a lease of it, in the order of the leases."""
    found: dict[str, dict[str, None]] = {}
    for lease in leases:
        found.setdefault(lease.domain, {})[lease.role] = None
    return {domain: tuple(roles) for domain, roles in found.items()}
