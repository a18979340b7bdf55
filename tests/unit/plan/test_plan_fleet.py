"""Fleets: what a plan says of one role of very many is exact, bounded, and found without the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.canonical import dumps
from orchestrator.plan.classes import RoleClass, owned_below, role_classes
from orchestrator.plan.derive import derive
from orchestrator.plan.model import Plan, Role, System
from orchestrator.plan.ownership import Ownership
from orchestrator.plan.roles import Roles, node_set, role_named
from orchestrator.plan.rounds import HEADER_BYTES, Flow, round_of, window_words
from orchestrator.plan.topology import Topology, star
from orchestrator.spec.names import expand, names_of
from orchestrator.spec.read import read_native_run
from orchestrator.spec.repeated import Repeated, repeated

ROOT = Path(__file__).parents[3]
FAN_OUT = 16
SIZES = (200, 2_000, 20_000, 200_000)
P, R = "partitioned", "replicated"
ALL = Ownership(P, P, P)


@cache
def adam() -> System:
    """Adam over 65,536 words, with two shared ones."""
    return derive(read_native_run(ROOT / "specs" / "runs" / "wide-adam.yaml")).plan.system


def plan_of(roles: int, ownership: Ownership = ALL, fan_out: int = FAN_OUT, width: int | None = None) -> Plan:
    system = adam()
    if width is not None:
        system = replace(
            system,
            **{
                part: tuple(each if each.shared else replace(each, size=width) for each in fields)
                for part in ("parameters", "state", "contributions")
                for fields in [getattr(system, part)]
            },
        )
    rows = repeated(((1, min(roles, 24)), (0, max(0, roles - 24))), int)
    names = expand(f"root,w[1-{roles - 1}]", roles) if roles > 1 else expand("root")
    return Plan(system, Roles(names, rows), Topology("hierarchy", roles, fan_out), ownership)


def some_roles(plan: Plan, classes: tuple[RoleClass, ...]) -> list[int]:
    """All roles of a small plan; else the first and last of each class."""
    if len(plan.roles) <= 2_000:
        return list(range(len(plan.roles)))
    return sorted({index for each in classes for index in (each.roles[0], each.roles[-1])})


@pytest.mark.parametrize("ownership", [Ownership(R, R, R), Ownership(R, P, R), Ownership(P, R, P), ALL])
def test_fan_in_metadata_and_connections_do_not_grow_with_the_fleet(ownership: Ownership) -> None:
    most: dict[int, tuple[int, int, int]] = {}
    for size in SIZES:
        plan = plan_of(size, ownership)
        classes = role_classes(plan)
        connections = fan_in = metadata = 0
        for role in some_roles(plan, classes):
            flows = round_of(plan, role, classes)
            peers = {peer for flow in flows for peer in flow.peers}
            assert peers <= {plan.topology.parent(role), *plan.topology.children(role)}
            connections = max(connections, len(peers))
            senders = Counter(flow.kind for flow in flows if not flow.sends for _ in flow.peers)
            fan_in = max(fan_in, *senders.values())
            told = [flow for flow in flows if flow.frames]
            metadata = max(metadata, sum(len(flow.peers) * flow.frames * HEADER_BYTES for flow in told))
        most[size] = connections, fan_in, metadata
        assert len(classes) <= 40
        assert len(dumps(plan.as_json()["roles"])) < 200
    assert all(connections <= FAN_OUT + 1 and fan_in <= FAN_OUT for connections, fan_in, _ in most.values())
    assert most[200_000][2] <= most[200][2]


@pytest.mark.parametrize("ownership", [Ownership(R, R, R), Ownership(P, R, R), Ownership(R, P, P), ALL])
@pytest.mark.parametrize("size", [1, 2, 17, 18, 200, 2_000])
def test_what_one_role_sends_another_receives(size: int, ownership: Ownership) -> None:
    plan = plan_of(size, ownership, width=500)
    classes = role_classes(plan)
    sent, received = {}, {}
    for role in range(size):
        for flow in round_of(plan, role, classes):
            for peer in flow.peers:
                edge = (role, peer) if flow.sends else (peer, role)
                (sent if flow.sends else received)[flow.kind, *edge] = (flow.words, flow.frames)
    assert sent == received
    assert size == 1 or {kind for kind, _, _ in sent} >= {"contribution", "total"}


@pytest.mark.parametrize("size", SIZES)
def test_all_that_is_sent_is_received_in_fleets_that_nobody_walks_through(size: int) -> None:
    plan = plan_of(size)
    classes = role_classes(plan)
    sent, received = Counter[str](), Counter[str]()
    for each in classes:
        for flow in round_of(plan, each.roles[0], classes):
            (sent if flow.sends else received)[flow.kind] += len(each.roles) * len(flow.peers) * flow.bytes
    # the roles of one class may have parents, and numbers of children, that are alike, and do
    assert sent == received
    assert set(sent) == {"offer", "replica", "contribution", "total"}


def test_the_parts_of_a_round_come_in_its_order() -> None:
    plan = plan_of(40, Ownership(R, P, P), 3, width=100)
    classes = role_classes(plan)
    middle = [(flow.kind, flow.sends, flow.peers, flow.words) for flow in round_of(plan, 1, classes)]
    below = sum(len(range(role, 100, 40)) for level in plan.topology.below(1) for role in level)
    assert middle[0] == ("contribution", False, range(4, 6), 103)
    assert middle[1] == ("contribution", False, range(6, 7), 103)  # who owns fewer words stands alone
    assert ("contribution", True, range(1), 103) in middle
    assert ("total", False, range(1), below + 3) in middle
    assert ("select", True, range(1), below) in middle
    assert ("selected", False, range(1), 100) in middle
    assert list(dict.fromkeys(kind for kind, *_ in middle)) == ["contribution", "total", "select", "selected"]


def test_words_travel_in_frames_of_a_window_at_most() -> None:
    plan = plan_of(3, Ownership(R, R, R), 2, width=5_000)
    (sent,) = [flow for flow in round_of(plan, 2, role_classes(plan)) if flow.sends]
    size = 2 * 96 + 5_003 * 8
    assert sent == Flow("contribution", sends=True, peers=range(1), words=5_003, frames=2, bytes=size)
    narrow = plan_of(3, ALL, 2, width=10)
    (offered,) = [flow for flow in round_of(narrow, 2, role_classes(narrow)) if flow.kind == "offer"]
    assert (window_words(narrow), offered.words, offered.frames) == (13, 3, 1)


LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=40)


def ranges_of(lengths: list[int]) -> tuple[range, ...]:
    """Contiguous ranges of so many coordinates; their order in the field is that of the roles, turned."""
    ends = list(accumulate(reversed(lengths), initial=0))
    found = [range(start, stop) if stop > start else range(0) for start, stop in pairwise(ends)]
    return tuple(reversed(found))


@given(st.integers(1, 60), st.integers(1, 7), st.integers(1, 150))
def test_classes_are_all_roles_and_alike_in_all(roles: int, fan_out: int, width: int) -> None:
    check_classes(plan_of(roles, ALL, fan_out, width))


@given(LENGTHS, st.integers(1, 7))
def test_classes_are_alike_where_ranges_are_declared(lengths: list[int], fan_out: int) -> None:
    own = Ownership(P, P, P, ranges_of(lengths))
    check_classes(plan_of(len(lengths), own, fan_out, max(1, sum(lengths))))


def check_classes(plan: Plan) -> None:
    fields = plan.system.state_fields + plan.system.contributions
    classes = role_classes(plan)
    assert [role for each in classes for role in each.roles] == list(range(len(plan.roles)))
    for each in classes:
        for index in each.roles:
            role, below = plan.roles[index], [i for level in plan.topology.below(index) for i in level]
            own = [plan.owned(field, role).count for field in fields]
            all_own = [sum(plan.owned(field, plan.roles[i]).count for i in below) for field in fields]
            assert (list(each.own), list(each.own_below)) == (own, all_own)
            assert [owned_below(plan, field, index) for field in fields] == all_own
            assert (each.samples, each.below) == (role.samples, len(below))
            assert each.level == len(plan.topology.path(index)) - 1
            assert each.children == len(plan.topology.children(index))
    assert all(left != right for left, right in pairwise(classes))


def test_a_class_ends_where_another_value_begins() -> None:
    plan = replace(plan_of(40, Ownership(R, R, R)), topology=star(40))
    targets = Repeated((("x86_64-linux", 30), ("aarch64-linux", 10)))
    assert [each.roles for each in role_classes(plan)] == [range(1), range(1, 24), range(24, 40)]
    assert [(each.roles, *each.values) for each in role_classes(plan, targets)] == [
        (range(1), "x86_64-linux"),
        (range(1, 24), "x86_64-linux"),
        (range(24, 30), "x86_64-linux"),
        (range(30, 40), "aarch64-linux"),
    ]


@given(LENGTHS)
def test_every_coordinate_of_declared_ranges_has_its_owner(lengths: list[int]) -> None:
    ranges = ranges_of(lengths)
    own = Ownership(P, P, P, ranges)
    for coordinate in range(sum(lengths)):
        assert coordinate in ranges[own.owner(coordinate, len(lengths))]
    with pytest.raises(LookupError):
        own.owner(sum(lengths), len(lengths))
    assert own.as_json() == Ownership(P, P, P, Repeated(tuple((each, 1) for each in ranges))).as_json()


def test_the_same_roles_are_the_same_plan_however_they_are_written() -> None:
    plan = plan_of(40)
    written = Roles(names_of(role.name for role in plan.roles), plan.roles.samples)
    listed = tuple(plan.roles)
    assert [plan.roles[index] for index in range(40)] == list(listed)
    assert replace(plan, roles=written).digest == replace(plan, roles=listed).digest == plan.digest
    assert plan.as_json()["roles"] == [["root", 1, 0, 1], ["w[1-23]", 23, 1, 1], ["w[24-39]", 16, 24, 0]]
    assert replace(plan, roles=listed[::-1]).digest != plan.digest
    moved = (*listed[:5], replace(listed[5], first_sample=4), *listed[6:])
    assert replace(plan, roles=moved).digest != plan.digest


def test_a_role_of_a_fleet_is_found_by_name() -> None:
    plan = plan_of(200_000)
    assert role_named(plan.roles, "w123456") == Role("w123456", 123_456, 24, 0)
    assert role_named(plan.roles, "w7") == plan.roles[7] == Role("w7", 7, 7, 1)
    assert role_named(plan.roles, "w0123456") is role_named(plan.roles, "w200000") is None
    assert plan.roles[-1].name == "w199999"
    assert node_set(plan.roles, range(5, 9)) == "w[5-8]"
    assert node_set(tuple(plan.roles[:9]), range(5, 9)) == "w[5-8]"
    assert node_set(plan.roles, range(0)) == ""


def test_words_that_are_alike_are_kept_once() -> None:
    runs = repeated([(0.0, 3), (0.0, 2), (-0.0, 1), (1.5, 0), (2.0, 4)], float.hex)
    assert [(word.hex(), count) for word, count in runs.runs] == [
        ("0x0.0p+0", 5),
        ("-0x0.0p+0", 1),
        ("0x1.0000000000000p+1", 4),
    ]
    assert (len(runs), runs[4], runs[5].hex(), runs[-1]) == (10, 0.0, "-0x0.0p+0", 2.0)
    assert list(runs) == [runs[index] for index in range(10)] == list(runs[:])
    with pytest.raises(IndexError):
        runs[10]
    field = replace(adam().parameters[0], size=10, initial=runs)
    assert field.initial_runs == replace(field, initial=tuple(runs)).initial_runs == runs.runs
