"""A controller killed at any point of a lane over SSH: the lane goes on, and nothing is done twice."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from covering import each, some
from lab.desk import Desk, assert_clean, events
from lab.network import Network, network
from lab.pods import write_pods
from ssh_lanes import LONG, TUNNELLED, has, sound, when

KILLS = int(os.environ.get("ORCH_TEST_KILLS", "6"))
LONGEST = 270  # events of an undisturbed samples lane over SSH
SAMPLES = "lanes/samples.yaml"


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network(tmp_path_factory.mktemp("net"), 2) as made:
        yield made


def pods_of(desk: Desk, net: Network, transport: str) -> Path:
    nodes = {
        f"n{index}": node.pods_entry(address=net.addresses[index])
        for index, node in enumerate(net.nodes[: 1 if transport == "loopback" else 2])
    }
    return write_pods(desk.folder / "pods.yaml", nodes, transport=transport)


def goes_on(desk: Desk, net: Network) -> Path:
    """The bundle, resumed to its end."""
    (bundle,) = desk.bundles()
    code, result, err = desk.run("", None, "--resume", "last")
    assert (code, result.get("verdict")) == (0, "pass"), (result, err)
    assert desk.bundles() == [bundle]
    assert sound(result) == bundle
    assert_clean(*net.nodes)
    return bundle


@pytest.mark.parametrize("seed", each(2, range(KILLS)))
def test_the_lane_goes_on_after_a_kill(desk: Desk, net: Network, seed: int):
    chance = random.Random(seed)
    pods = pods_of(desk, net, ("loopback", "ssh-tunnel", "direct")[seed % 3])
    # every stretch of the stream gets its kill, at a random moment within it
    sequence = 1 + (seed * LONGEST) // KILLS
    controller = desk.start("run", SAMPLES, "--pods", str(pods))
    when(desk, controller, lambda found: len(found) >= sequence)
    time.sleep(chance.random() * 0.1)
    desk.kill(controller)
    goes_on(desk, net)


@pytest.mark.parametrize(
    "transport", some(["loopback", "ssh-tunnel", "direct"], lambda way: way != "loopback")
)
def test_roles_that_still_run_are_taken_up_again(desk: Desk, net: Network, transport: str):
    """Under tunnels they end with the controller that carried them: the step is run again."""
    lane = desk.lane("samples", **(TUNNELLED if transport == "ssh-tunnel" else LONG))
    controller = desk.start("run", lane, "--pods", str(pods_of(desk, net, transport)))
    assert when(desk, controller, has("job.started", launch="run-1", role="worker"))
    desk.kill(controller)
    bundle = goes_on(desk, net)
    again = [event["data"] for event in events(bundle) if event["type"] == "orch.launch.reattached"]
    attempts = {
        event["data"]["attempt"]
        for event in events(bundle)
        if event["type"] == "orch.step.started" and event["data"]["step"] == "uninterrupted"
    }
    if transport == "ssh-tunnel":
        assert len(attempts) == 2
    else:
        assert [data["launch"] for data in again] == ["run-1"]
        assert attempts == {1}


def test_a_second_run_is_kept_out_of_a_node(desk: Desk, net: Network):
    lane = desk.lane("samples", **LONG)
    pods = pods_of(desk, net, "loopback")
    controller = desk.start("run", lane, "--pods", str(pods))
    assert when(desk, controller, has("job.started", launch="run-1", role="worker"))
    code, _, err = desk.run(SAMPLES, pods)
    assert code == 1
    assert "run-locked: " in err
    done = desk.end(controller)
    assert done.returncode == 0, done
    assert_clean(*net.nodes)
