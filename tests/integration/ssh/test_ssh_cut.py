"""Connections that break, and nodes that go: the lane passes, or says so and stays open."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest
from covering import some
from lab.desk import Desk, assert_clean, events
from lab.network import Network, network
from lab.pods import write_pods
from ssh_lanes import LONG, TUNNELLED, has, labels, sound, when

SAMPLES = "lanes/samples.yaml"
GRACE = "{connect: 20s, round: 20s, run: 5m, unreachable: 60s}"
SHORT = "{connect: 10s, round: 5s, run: 1m, unreachable: 4s}"


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Network]:
    with network(tmp_path / "net", 2) as made:
        yield made


def pods_of(desk: Desk, net: Network, transport: str) -> Path:
    nodes = {
        f"n{index}": node.pods_entry(address=net.addresses[index]) for index, node in enumerate(net.nodes)
    }
    return write_pods(desk.folder / "pods.yaml", nodes, transport=transport)


def restart(net: Network) -> None:
    node = net.nodes[1]
    node.kill_sshd()
    time.sleep(0.5)
    node.start_sshd()


def cut(net: Network) -> None:
    net.cut(net.nodes[1])
    time.sleep(1)
    net.heal(net.nodes[1])


def delay(net: Network) -> None:
    net.wire(delay_ms=120)
    time.sleep(1)
    net.wire()


def lose(net: Network) -> None:
    net.wire(loss=0.15)
    time.sleep(1)
    net.wire()


def half_open(net: Network) -> None:
    """The connection is gone at the node, behind a black hole, and nobody told the controller."""
    node = net.nodes[1]
    net.wire(swallow=["in"], only=[node])
    node.kill_sshd()
    time.sleep(1)
    node.start_sshd()
    net.wire()


FAULTS: dict[str, Callable[[Network], None]] = {
    "sshd restarted": restart,
    "link down": cut,
    "delay": delay,
    "loss": lose,
    "half-open": half_open,
}


# every fault over one transport, every transport with faults of either sort
FAULTS_AND_WAYS = some(
    product(FAULTS, ("ssh-tunnel", "direct")),
    lambda at: (at[0] in ("link down", "loss")) == (at[1] == "direct"),
)


@contextmanager
def in_every_step(
    desk: Desk, net: Network, controller: subprocess.Popen[str], fault: Callable[[Network], None]
) -> Iterator[list[str]]:
    """Does the fault once in every step as it begins; gives the steps that had it."""
    struck: list[str] = []

    def strike() -> None:
        while controller.poll() is None:
            bundles = desk.bundles()
            begun = [
                event["data"]["step"]
                for event in (events(bundles[-1]) if bundles else ())
                if event["type"] == "orch.step.started"
            ]
            if begun and begun[-1] not in struck:
                struck.append(begun[-1])
                fault(net)
            time.sleep(0.005)

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield struck
    finally:
        thread.join()


@pytest.mark.parametrize(("fault", "transport"), FAULTS_AND_WAYS)
def test_a_fault_in_every_step_is_outlived(desk: Desk, net: Network, fault: str, transport: str):
    lane = desk.lane("samples", deadlines=GRACE)
    controller = desk.start("run", lane, "--pods", str(pods_of(desk, net, transport)), "--json")
    with in_every_step(desk, net, controller, FAULTS[fault]) as struck:
        done = desk.end(controller)
    assert done.returncode == 0, (struck, done)
    assert {"refusals", "uninterrupted", "split", "evaluate"} <= set(struck)
    assert_clean(*net.nodes)


# what takes a node away for good, and what brings it back
GONE: dict[str, tuple[Callable[[Network], None], Callable[[Network], None]]] = {
    "sshd killed": (lambda net: net.nodes[1].kill_sshd(), lambda net: net.nodes[1].start_sshd()),
    "link down": (lambda net: net.cut(net.nodes[1]), lambda net: net.heal(net.nodes[1])),
    "black hole": (lambda net: net.wire(swallow=["out", "in"], only=[net.nodes[1]]), lambda net: net.wire()),
}


@pytest.mark.parametrize("kind", GONE)
def test_beyond_the_grace_the_node_is_lost_and_the_lane_stays_open(desk: Desk, net: Network, kind: str):
    take, bring = GONE[kind]
    lane = desk.lane("samples", **LONG, deadlines=SHORT)
    controller = desk.start("run", lane, "--pods", str(pods_of(desk, net, "direct")), "--json")
    assert when(desk, controller, has("launch.started", launch="run-1"))
    take(net)
    done = desk.end(controller)
    assert done.returncode == 4, done
    assert labels(done.stderr) == {"node-lost"}, done.stderr
    assert "--resume" in done.stderr
    bring(net)
    code, result, err = desk.run("", None, "--resume", "last")
    assert (code, result.get("verdict")) == (0, "pass"), (result, err)
    sound(result)
    assert_clean(*net.nodes)


def test_a_node_whose_processes_are_all_killed(desk: Desk, net: Network):
    """As a container that is restarted: the step is run again, by the same controller."""
    lane = desk.lane("samples", **TUNNELLED, deadlines=GRACE)
    controller = desk.start("run", lane, "--pods", str(pods_of(desk, net, "ssh-tunnel")), "--json")
    assert when(desk, controller, has("job.started", launch="run-1", role="worker"))
    net.nodes[1].kill_all()
    net.nodes[1].start_sshd()
    done = desk.end(controller)
    assert done.returncode == 0, done
    (bundle,) = desk.bundles()
    started = [
        event["data"]["attempt"]
        for event in events(bundle)
        if event["type"] == "orch.step.started" and event["data"]["step"] == "uninterrupted"
    ]
    assert started == [1, 2]
    assert_clean(*net.nodes)


def test_ctrl_c_stops_our_own_processes_and_collects(desk: Desk, net: Network):
    lane = desk.lane("samples", updates="400000", split="200000")
    controller = desk.start("run", lane, "--pods", str(pods_of(desk, net, "direct")), "--json")
    assert when(desk, controller, has("job.started", launch="run-1", role="worker"))
    controller.terminate()
    done = desk.end(controller)
    assert done.returncode == 4, done
    assert_clean(*net.nodes)
