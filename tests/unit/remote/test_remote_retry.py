"""A lost connection is asked about again; a lost node is said; nothing is done twice by that."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

import pytest
from unreachable import Breaking, Journal

from orchestrator.errors import Label
from orchestrator.remote import retry
from orchestrator.remote.base import Job, NodeLostError, RemoteError
from orchestrator.remote.local import Local
from orchestrator.remote.retry import SLICE_S, Retrying


class Clock:
    """Time that passes only while somebody waits, so that no test does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.waits: list[float] = []
        monkeypatch.setattr(retry, "time", self)

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        assert 0 < seconds <= SLICE_S
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def wire() -> Breaking:
    return Breaking(Local("a"))


@pytest.fixture
def node(wire: Breaking, journal: Journal, clock: Clock) -> Retrying:
    return Retrying(wire, journal=journal, wait=clock.wait, grace_s=60)


def test_a_good_answer_passes_through(node: Retrying, wire: Breaking, journal: Journal) -> None:
    assert node.name == "a"
    assert node.facts() == Local().facts()
    assert wire.asked == ["facts"]
    assert journal.events == []


def test_a_lost_connection_is_asked_again_and_said_once(
    node: Retrying, wire: Breaking, journal: Journal, clock: Clock
) -> None:
    wire.misses = 5
    assert node.facts() == Local().facts()
    assert wire.asked == ["facts"] * 6
    assert journal.kinds == ["remote.unreachable", "remote.reachable"]
    assert journal.data("remote.unreachable") == {
        "node": "a",
        "what": "facts",
        "why": "unreachable: a: the wire is cut",
    }
    assert journal.data("remote.reachable")["tries"] == 5
    assert journal.data("remote.reachable")["elapsed_ms"] == round(1000 * sum(clock.waits))


def test_two_outages_are_two(node: Retrying, wire: Breaking, journal: Journal) -> None:
    for _ in range(2):
        wire.misses = 1
        node.facts()
    assert journal.kinds == ["remote.unreachable", "remote.reachable"] * 2


def test_pauses_grow_to_a_bound_and_differ(node: Retrying, wire: Breaking, clock: Clock) -> None:
    moments = []

    def request() -> None:
        moments.append(clock.now)
        if len(moments) < 15:
            wire.misses = 1
            wire._ask("facts", lambda: None)

    node._ask("facts", request)
    pauses = [after - before for before, after in itertools.pairwise(moments)]
    assert max(pauses) <= 5
    assert pauses[0] < 0.2
    assert min(pauses[-3:]) >= 2.5
    assert len(set(pauses)) == len(pauses)


def test_a_node_is_lost_when_its_grace_is_over(
    node: Retrying, wire: Breaking, journal: Journal, clock: Clock
) -> None:
    wire.misses = 10_000
    with pytest.raises(NodeLostError, match=r"^node-lost: a: no answer for 60 s .*the wire is cut") as lost:
        node.facts()
    assert lost.value.label is Label.NODE_LOST
    assert lost.value.exit_code == 4
    assert sum(clock.waits) == pytest.approx(60)
    assert journal.kinds == ["remote.unreachable", "remote.lost"]
    assert journal.data("remote.lost")["elapsed_ms"] == 60_000


def test_the_grace_counts_from_the_last_good_answer(node: Retrying, wire: Breaking, clock: Clock) -> None:
    """Of a request that was answered 40 s after another began, the other has no more than it."""
    node.facts()
    asked, answered = clock.now, clock.now + 40

    def request() -> None:
        if clock.now >= answered and node._heard == asked:
            node._answered()  # another thread's request went through
        wire._ask("facts", lambda: None)

    wire.misses = 10_000
    with pytest.raises(NodeLostError):
        node._ask("facts", request)
    assert clock.now - asked == pytest.approx(100, abs=5)


def test_a_node_that_nobody_asked_has_its_grace_from_the_request_on(
    node: Retrying, wire: Breaking, clock: Clock
) -> None:
    node.facts()
    clock.now += 3600
    wire.misses = 3
    assert node.facts() == Local().facts()


def test_a_lost_node_is_tried_once_more_each_time(
    node: Retrying, wire: Breaking, journal: Journal, clock: Clock
) -> None:
    wire.misses = 10_000
    with pytest.raises(NodeLostError):
        node.facts()
    before, tries = clock.now, len(wire.asked)
    for _ in range(3):
        with pytest.raises(NodeLostError):
            node.facts()
    assert (clock.now, len(wire.asked)) == (before, tries + 3)
    wire.misses = 0
    node.facts()
    assert journal.kinds == ["remote.unreachable", "remote.lost", "remote.reachable"]
    wire.misses = 2
    assert node.facts() == Local().facts()


def test_what_the_wait_raises_ends_the_request(wire: Breaking, journal: Journal) -> None:
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    node = Retrying(wire, journal=journal, wait=stop, grace_s=60)
    wire.misses = 2
    with pytest.raises(KeyboardInterrupt):
        node.facts()
    assert wire.asked == ["facts"]


def test_what_a_node_refuses_is_not_asked_again(
    node: Retrying, wire: Breaking, journal: Journal, tmp_path: Path
) -> None:
    with pytest.raises(RemoteError, match="bears no mark"):
        node.put(b"", PurePosixPath(tmp_path) / "file")
    assert wire.asked == ["put"]
    assert journal.events == []


@pytest.mark.parametrize("does_act", [False, True])
def test_a_start_that_got_no_answer_starts_once(
    node: Retrying, wire: Breaking, tmp_path: Path, *, does_act: bool
) -> None:
    root = PurePosixPath(tmp_path.resolve()) / "root"
    node.make_root(root, "tests")
    wire.misses, wire.does_act = 2, does_act
    job = Job(root / "work", ("sh", "-c", f"echo begun >>{root}/begun"), 60)
    node.start(job)
    limit = time.monotonic() + 60
    while node.inspect(job).status == "running":
        assert time.monotonic() < limit
        time.sleep(0.02)
    assert node.get(root / "begun") == b"begun\n"


def test_threads_that_miss_together_say_it_once(wire: Breaking, journal: Journal) -> None:
    node = Retrying(wire, journal=journal, wait=lambda _: time.sleep(0.001), grace_s=60)
    wire.misses = 20
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(node.facts) for _ in range(8)]
        assert {one.result().machine for one in asked} == {Local().facts().machine}
    assert journal.kinds[0] == "remote.unreachable"
    assert journal.kinds.count("remote.unreachable") == journal.kinds.count("remote.reachable")
