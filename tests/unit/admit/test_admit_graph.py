"""The resource graph: each fault alone, their order, and what leases come to, counted step by step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.admit.graph import (
    Absent,
    Domain,
    Endpoint,
    Envelope,
    Established,
    Graph,
    Lease,
    Link,
    Placement,
    Relation,
    Transfer,
    Use,
)
from orchestrator.admit.hold import faults, peak
from orchestrator.errors import Label

ANY = Envelope(1, Established(1 << 20, "a reference"))
UNKNOWN = Absent("nobody has looked")
GRAPH = Graph(
    endpoints=(Endpoint("a", "host"), Endpoint("a/0", "card"), Endpoint("a/1", "card")),
    links=(Link("a", "a/0", ANY), Link("a/0", "a", ANY), Link("a", "a/1", ANY)),
    domains=(
        Domain("memory of a/0", ("a/0",), Established(100, "a reference")),
        Domain("memory of a/1", ("a/1",), UNKNOWN),
    ),
    relations=(Relation("machine a", "same-host", ("a", "a/0", "a/1")),),
)
USE = Use(
    steps=4,
    placements=(Placement("left", "a"), Placement("left", "a/0"), Placement("right", "a/0")),
    leases=(
        Lease("left", "memory of a/0", "left/state", 60, 0, 4),
        Lease("right", "memory of a/0", "right/state", 40, 1, 3),
    ),
    transfers=(Transfer("left", "a", "a/0", 60), Transfer("left", "a/0", "a", 60)),
)


def labels(graph: Graph, use: Use) -> list[Label]:
    found = faults(graph, use)
    assert all("(got " in each.message and each.message.endswith(")") for each in found)
    return [each.label for each in found]


def leased(*leases: Lease) -> Use:
    return replace(USE, leases=(*USE.leases, *leases))


def sent(*transfers: Transfer) -> Use:
    return replace(USE, transfers=transfers)


def test_what_fits_to_the_byte_is_held() -> None:
    assert faults(GRAPH, USE) == ()


def test_one_byte_more_is_not_and_says_whose_it_is() -> None:
    more = replace(USE, leases=(USE.leases[0], replace(USE.leases[1], bytes=41)))
    (fault,) = faults(GRAPH, more)
    assert (fault.label, fault.roles, fault.domain) == (
        Label.CAPACITY_EXCEEDED,
        ("left", "right"),
        "memory of a/0",
    )
    assert "(got 101 bytes of left, right at once, expected at most 100)" in fault.message


def test_leases_at_other_times_do_not_add_up() -> None:
    """[0, 2) and [2, 4) have no step in common."""
    first, second = (replace(each, bytes=100) for each in USE.leases)
    apart = (replace(first, start=0, stop=2), replace(second, start=2, stop=4))
    assert faults(GRAPH, replace(USE, leases=apart)) == ()
    touching = (replace(first, start=0, stop=3), replace(second, start=2, stop=4))
    assert labels(GRAPH, replace(USE, leases=touching)) == [Label.CAPACITY_EXCEEDED]


def test_an_alias_is_charged_once() -> None:
    assert faults(GRAPH, leased(replace(USE.leases[0], start=2, stop=4))) == ()
    assert faults(GRAPH, leased(replace(USE.leases[0], role="right"))) == ()
    other = leased(replace(USE.leases[0], buffer="left/other"))
    assert labels(GRAPH, other) == [Label.CAPACITY_EXCEEDED]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("a/0", "a/1", [Label.LINK_MISSING]),  # in one machine, and no way
        ("a", "a/0", []),
        ("a/0", "a", []),
        ("a", "a/1", []),
    ],
)
def test_a_way_needs_a_link(source: str, target: str, expected: list[Label]) -> None:
    assert labels(GRAPH, sent(Transfer("left", source, target, 1))) == expected


def test_one_direction_does_not_imply_the_other() -> None:
    there = replace(USE, placements=(*USE.placements, Placement("left", "a/1")))
    assert faults(GRAPH, replace(there, transfers=(Transfer("left", "a", "a/1", 1),))) == ()
    back = replace(there, transfers=(Transfer("left", "a/1", "a", 1),))
    assert labels(GRAPH, back) == [Label.LINK_MISSING]


@pytest.mark.parametrize(("size", "fits"), [(0, False), (1, True), (1 << 20, True), ((1 << 20) + 1, False)])
def test_a_transfer_is_within_the_envelope_of_its_link(size: int, fits: bool) -> None:  # noqa: FBT001 - a column
    found = labels(GRAPH, sent(Transfer("left", "a", "a/0", size)))
    assert found == ([] if fits else [Label.CAPACITY_EXCEEDED])


def test_an_unknown_limit_is_a_fault_only_where_it_limits_something() -> None:
    assert faults(GRAPH, USE) == ()  # nobody asks anything of a/1
    there = replace(leased(Lease("left", "memory of a/1", "left/work", 1, 0, 1)))
    there = replace(there, placements=(*USE.placements, Placement("left", "a/1")))
    (fault,) = faults(GRAPH, there)
    assert (fault.label, fault.roles) == (Label.CAPACITY_UNKNOWN, ("left",))
    assert "nobody has looked" in fault.message
    open_link = replace(GRAPH, links=(Link("a", "a/0", Envelope(0, UNKNOWN)), *GRAPH.links[1:]))
    assert labels(open_link, USE) == [Label.CAPACITY_UNKNOWN]


MALFORMED = {
    "endpoint twice": {"endpoints": (*GRAPH.endpoints, Endpoint("a", "card"))},
    "link twice": {"links": (*GRAPH.links, GRAPH.links[0])},
    "link to nowhere": {"links": (*GRAPH.links, Link("a", "b", ANY))},
    "link from nowhere": {"links": (*GRAPH.links, Link("b", "a", ANY))},
    "link to itself": {"links": (*GRAPH.links, Link("a", "a", ANY))},
    "empty envelope": {
        "links": (*GRAPH.links[:2], Link("a", "a/1", Envelope(9, Established(8, "a reference"))))
    },
    "negative least": {"links": (*GRAPH.links[:2], Link("a", "a/1", Envelope(-1, UNKNOWN)))},
    "domain twice": {"domains": (*GRAPH.domains, replace(GRAPH.domains[0], endpoints=("a",)))},
    "domain of nothing": {"domains": (*GRAPH.domains, Domain("none", (), UNKNOWN))},
    "domain of an endpoint twice": {"domains": (*GRAPH.domains, Domain("twice", ("a", "a"), UNKNOWN))},
    "domain of another endpoint": {"domains": (*GRAPH.domains, Domain("other", ("b",), UNKNOWN))},
    "no reason": {"domains": (*GRAPH.domains, Domain("host", ("a",), Absent("")))},
    "no reference": {"domains": (*GRAPH.domains, Domain("host", ("a",), Established(1, "")))},
    "negative": {"domains": (*GRAPH.domains, Domain("host", ("a",), Established(-1, "a reference")))},
    "relation twice": {"relations": GRAPH.relations * 2},
    "relation to nowhere": {"relations": (Relation("machine a", "same-host", ("a", "b")),)},
}


@pytest.mark.parametrize("changed", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_graph_that_contradicts_itself(changed: dict[str, tuple[object, ...]]) -> None:
    assert labels(replace(GRAPH, **changed), USE) == [Label.GRAPH_MALFORMED]


STATE = USE.leases[0]
INVALID = {
    "nowhere": replace(USE, placements=(*USE.placements, Placement("left", "b"))),
    "there twice": replace(USE, placements=(*USE.placements, USE.placements[0])),
    "no such domain": leased(replace(STATE, domain="memory of b")),
    "another card's memory": leased(replace(STATE, domain="memory of a/1")),
    "of nobody that is placed": leased(replace(STATE, role="third", buffer="third/state", bytes=0)),
    "no step": leased(replace(STATE, start=2, stop=2)),
    "backwards": leased(replace(STATE, start=3, stop=2)),
    "before the first": leased(replace(STATE, start=-1)),
    "after the last": leased(replace(STATE, stop=5)),
    "negative": leased(replace(STATE, buffer="left/other", bytes=-1)),
    "an alias of another size": leased(replace(STATE, bytes=59)),
    "sent from elsewhere": sent(Transfer("right", "a", "a/0", 1)),
}


@pytest.mark.parametrize("use", INVALID.values(), ids=INVALID.keys())
def test_a_placement_or_lease_that_means_nothing(use: Use) -> None:
    assert labels(GRAPH, use) == [Label.PLACEMENT_INVALID]


def test_only_the_first_class_of_faults_is_told() -> None:
    """Budget, then the graph, then placements and links, then what is unknown, then what is exceeded."""
    graph = replace(GRAPH, links=(*GRAPH.links, Link("a", "b", ANY)))
    over = leased(replace(STATE, buffer="left/other", bytes=1000))
    unknown = replace(
        over,
        placements=(*over.placements, Placement("right", "a/1")),
        leases=(*over.leases, Lease("right", "memory of a/1", "right/work", 1, 0, 1)),
    )
    wrong = replace(unknown, leases=(*unknown.leases, replace(STATE, start=9)))
    assert [each.label for each in faults(graph, wrong, budget=3)] == [Label.PLANNING_BUDGET]
    assert labels(graph, wrong) == [Label.GRAPH_MALFORMED]
    assert labels(GRAPH, wrong) == [Label.PLACEMENT_INVALID]
    assert labels(GRAPH, unknown) == [Label.CAPACITY_UNKNOWN]
    assert labels(GRAPH, over) == [Label.CAPACITY_EXCEEDED]


STEPS = 6
SPANS = st.tuples(st.integers(0, STEPS - 1), st.integers(1, STEPS)).filter(lambda span: span[0] < span[1])
SIZES = {"w": 3, "x": 5, "y": 1, "z": 8}


@given(st.lists(st.tuples(st.sampled_from(sorted(SIZES)), SPANS), max_size=12), st.integers(0, 20))
def test_leases_come_to_what_is_counted_step_by_step(
    drawn: list[tuple[str, tuple[int, int]]], capacity: int
) -> None:
    leases = tuple(
        Lease("left", "memory of a/0", buffer, SIZES[buffer], start, stop) for buffer, (start, stop) in drawn
    )
    by_step = [
        sum(SIZES[name] for name in {each.buffer for each in leases if each.start <= step < each.stop})
        for step in range(STEPS)
    ]
    most = max(by_step)
    assert peak(leases) == (by_step.index(most), most)
    domain = replace(GRAPH.domains[0], capacity=Established(capacity, "drawn"))
    use = replace(USE, steps=STEPS, leases=leases)
    found = labels(replace(GRAPH, domains=(domain, GRAPH.domains[1])), use)
    assert found == ([Label.CAPACITY_EXCEEDED] if most > capacity else [])


ENDS = ["a", "a/0", "a/1"]
ROLES = ["left", "right"]
DRAWN_LEASES = st.lists(
    st.builds(
        Lease,
        st.sampled_from(ROLES),
        st.sampled_from(["memory of a/0", "memory of a/1"]),
        st.sampled_from(["w", "x"]),
        st.integers(1, 3),
        st.integers(-1, 2),
        st.integers(0, 4),
    ),
    max_size=3,
)
DRAWN_TRANSFERS = st.lists(
    st.builds(
        Transfer, st.sampled_from(ROLES), st.sampled_from(ENDS), st.sampled_from(ENDS), st.integers(0, 3)
    ),
    max_size=2,
)
CAPACITIES = st.integers(0, 6).map(lambda size: Established(size, "drawn")) | st.just(UNKNOWN)


def modelled(graph: Graph, use: Use) -> Label | None:
    """The first class that has a fault, by asking of every entry by itself."""
    at = {(each.role, each.endpoint) for each in use.placements}
    backing = {domain.name: domain.endpoints[0] for domain in graph.domains}
    limits = {domain.name: domain.capacity for domain in graph.domains}
    ways = {(link.source, link.target) for link in graph.links}
    leases = use.leases
    if (
        any((each.role, backing[each.domain]) not in at for each in leases)
        or any(not (0 <= each.start < each.stop <= use.steps) for each in leases)
        or any(
            (one.domain, one.buffer) == (other.domain, other.buffer) and one.bytes != other.bytes
            for one in leases
            for other in leases
        )
        or any((each.role, each.source) not in at for each in use.transfers)
    ):
        return Label.PLACEMENT_INVALID
    if any((each.source, each.target) not in ways for each in use.transfers):
        return Label.LINK_MISSING
    if any(limits[each.domain] == UNKNOWN for each in leases):
        return Label.CAPACITY_UNKNOWN
    for step in range(use.steps):
        for name, limit in limits.items():
            held = {
                each.buffer: each.bytes
                for each in leases
                if each.domain == name and each.start <= step < each.stop
            }
            if isinstance(limit, Established) and sum(held.values()) > limit.value:
                return Label.CAPACITY_EXCEEDED
    return Label.CAPACITY_EXCEEDED if any(each.bytes < 1 for each in use.transfers) else None


@given(
    st.sets(st.sampled_from([Placement(role, end) for role in ROLES for end in ENDS]), min_size=3),
    DRAWN_LEASES,
    DRAWN_TRANSFERS,
    st.tuples(CAPACITIES, CAPACITIES),
)
def test_the_first_class_of_faults_is_the_models(
    placements: set[Placement],
    leases: list[Lease],
    transfers: list[Transfer],
    capacities: tuple[Established | Absent, Established | Absent],
) -> None:
    domains = tuple(
        replace(domain, capacity=capacity) for domain, capacity in zip(GRAPH.domains, capacities, strict=True)
    )
    graph = replace(GRAPH, domains=domains)
    use = Use(3, tuple(placements), tuple(leases), tuple(transfers))
    found = labels(graph, use)
    if Label.PLACEMENT_INVALID in found:  # told together with ways that are missing
        found = [Label.PLACEMENT_INVALID]
    assert (found[0] if found else None) == modelled(graph, use)
