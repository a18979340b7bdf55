"""What a plan says that roles send in a round is what their programs do send: bytes counted on each edge."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack

import pytest
import role_plans
from covering import some
from role_bench import Bench, Setup

from orchestrator.plan.classes import role_classes
from orchestrator.plan.model import Plan
from orchestrator.plan.ownership import Ownership
from orchestrator.plan.rounds import round_of

P, R = "partitioned", "replicated"
RANGES = (range(1), range(0), range(2, 3), range(1, 2), range(0))


class Counter:
    """Stands between a child and its parent, and counts what goes up and down."""

    def __init__(self, run: Bench, parent: int, stack: ExitStack) -> None:
        self.bytes = {"up": 0, "down": 0}
        self._run, self._parent = run, parent
        self._server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.port = self._server.getsockname()[1]
        thread = threading.Thread(target=self._serve, daemon=True)
        thread.start()
        stack.callback(thread.join, 60)

    def _serve(self) -> None:
        child, _ = self._server.accept()
        with child, _dial(self._run.ports[self._parent]) as parent:
            back = threading.Thread(target=self._pass, args=(parent, child, "down"), daemon=True)
            back.start()
            self._pass(child, parent, "up")
            back.join(60)

    def _pass(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        try:
            while data := source.recv(1 << 16):
                self.bytes[way] += len(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return  # one of them has ended: all that it had to say has been counted


def _dial(port: int) -> socket.socket:
    for _ in range(3000):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            threading.Event().wait(0.01)
    raise AssertionError("nobody listens")


def counted(run: Bench, updates: int) -> dict[str, dict[str, int]]:
    """Bytes that cross the edge above each role in so many updates and one publication."""
    plan = run.case.plan
    with ExitStack() as stack:
        counters = {
            role.name: Counter(run, plan.topology.parent(role.index), stack) for role in plan.roles[1:]
        }
        bound = {name: {"parent_port": counter.port} for name, counter in counters.items()}
        ends = run.run(Setup(target=updates, bind=bound))
        assert {outcome.code for outcome in ends.values()} == {0}, ends
    return {name: counter.bytes for name, counter in counters.items()}


def planned(plan: Plan) -> dict[str, dict[str, int]]:
    """The same of one round, by the plan: as the lower end of each edge has it."""
    classes = role_classes(plan)
    said = {}
    for role in plan.roles[1:]:
        flows = [
            flow
            for flow in round_of(plan, role.index, classes)
            if plan.topology.parent(role.index) in flow.peers
        ]
        said[role.name] = {
            "up": sum(flow.bytes for flow in flows if flow.sends),
            "down": sum(flow.bytes for flow in flows if not flow.sends),
        }
    return said


@pytest.mark.parametrize(
    "ownership",
    some(
        [Ownership(R, R, R), Ownership(R, P, R), Ownership(P, R, P), Ownership(P, P, P, RANGES)],
        lambda how: how != Ownership(R, P, R),
    ),
    ids=["replicated", "optimizer-state", "parameters-and-gradients", "all-by-ranges"],
)
def test_a_round_more_is_what_the_plan_says_of_a_round(bench, ownership):
    case = role_plans.among(role_plans.ADAM, (2, 0, 1, 1, 1), 2, ownership)
    few, more = (counted(bench(case), updates) for updates in (2, 3))
    assert {
        name: {way: more[name][way] - few[name][way] for way in ("up", "down")} for name in few
    } == planned(case.plan)
