"""Work on several nodes at once, and what a node that does not answer may hold up."""

from __future__ import annotations

import threading

import pytest

from orchestrator.qualify.crew import Crew
from orchestrator.qualify.limits import Limits, StopLaneError
from orchestrator.remote.base import RemoteError, UnreachableError


@pytest.mark.parametrize("far", [False, True])
def test_results_come_in_the_tasks_order(*, far: bool) -> None:
    crew = Crew(Limits(), far=far)
    assert crew.each([("b", lambda: 1), ("a", lambda: 2), ("b", lambda: 3)]) == [1, 2, 3]


def test_nodes_are_worked_on_at_once_and_each_in_order() -> None:
    both = threading.Barrier(2, timeout=30)
    done: list[str] = []
    crew = Crew(Limits(), far=True)
    crew.each(
        [
            ("a", both.wait),
            ("a", lambda: done.append("first")),
            ("a", lambda: done.append("second")),
            ("b", both.wait),
        ]
    )
    assert done == ["first", "second"]


@pytest.mark.parametrize("far", [False, True])
def test_an_error_is_raised_where_the_result_is_asked_for(*, far: bool) -> None:
    def refuse() -> int:
        raise RemoteError("a: no")

    with pytest.raises(RemoteError, match="a: no"):
        Crew(Limits(), far=far).each([("a", refuse)])


def test_a_stop_does_not_wait_for_a_node_that_hangs() -> None:
    never, limits = threading.Event(), Limits()
    crew = Crew(limits, far=True)

    def hang() -> int:
        limits.stop_requested = "interrupted by SIGINT"
        never.wait(60)
        return 0

    with pytest.raises(StopLaneError, match="interrupted"):
        crew.each([("a", hang), ("b", lambda: 1)])
    limits.part()
    hanging, other = crew.settle([("a", lambda: 1), ("b", lambda: 2)], patience_s=0.2)
    assert isinstance(hanging, UnreachableError)
    assert other == 2
    never.set()


def test_what_refuses_is_given_beside_what_was_done() -> None:
    def refuse() -> int:
        raise UnreachableError("a: gone")

    for far in (False, True):
        gone, done = Crew(Limits(), far=far).settle([("a", refuse), ("b", lambda: 2)], patience_s=30)
        assert "a: gone" in str(gone)
        assert done == 2
