"""The shipped lanes on real nodes: one, two and four, by every transport; their bundles hold elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from covering import some
from lab.desk import Desk, assert_clean
from lab.network import Network, network
from lab.node import SshNode, sshd
from lab.pods import write_pods
from ssh_lanes import EMULATED, NEEDS_EMULATOR, sound

LANES = ("samples", "diabetes", "mixed-isa")
GRADES = {"mixed-isa": "emulated"}
needs_emulator = pytest.mark.skipif(NEEDS_EMULATOR, reason="Debian's qemu-user-static is not installed")
MARKS = {"mixed-isa": needs_emulator, "diabetes": pytest.mark.more}
EVERY_LANE = [pytest.param(lane, marks=MARKS.get(lane, ())) for lane in LANES]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshNode]:
    with sshd(tmp_path_factory.mktemp("node")) as made:
        yield made


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network(tmp_path_factory.mktemp("net"), 4) as made:
        yield made


def holds_elsewhere(desk: Desk, result: dict[str, Any], lane: str) -> None:
    """The bundle, moved away from its project, verifies by its seal and gives the same verdict."""
    elsewhere = desk.folder / "elsewhere"
    shutil.move(sound(result), elsewhere)
    assert desk.orch("evidence", "verify", str(elsewhere), "--seal", result["seal"]).returncode == 0
    judged = desk.orch("judge", str(elsewhere))
    assert judged.returncode == 0, judged
    assert result["grade"] == GRADES.get(lane, "host")
    assert {step["name"] for step in result["steps"] if step["verdict"] != "pass"} <= {"host-shadow"}


@pytest.mark.parametrize("lane", EVERY_LANE)
def test_one_node_loopback(desk: Desk, node: SshNode, lane: str):
    pods = write_pods(desk.folder / "pods.yaml", {"a": node.pods_entry(**EMULATED)})
    code, result, err = desk.run(f"lanes/{lane}.yaml", pods)
    assert (code, result.get("verdict")) == (0, "pass"), (result, err)
    if node.space:
        assert_clean(node)
    holds_elsewhere(desk, result, lane)


PLACES = [(2, "samples"), (2, "mixed-isa"), (4, "diabetes"), (4, "mixed-isa"), (4, "hierarchy")]
CHOSEN = [
    (2, "samples", "direct"),
    (4, "diabetes", "ssh-tunnel"),
    (4, "mixed-isa", "direct"),
    (4, "hierarchy", "ssh-tunnel"),
]


@pytest.mark.parametrize(
    ("count", "lane", "transport"),
    some(
        ((count, lane, transport) for count, lane in PLACES for transport in ("ssh-tunnel", "direct")),
        lambda at: at in CHOSEN,
    ),
)
def test_many_nodes(desk: Desk, net: Network, count: int, lane: str, transport: str):
    if lane == "mixed-isa" and NEEDS_EMULATOR:
        pytest.skip("Debian's qemu-user-static is not installed")
    direct = transport == "direct"
    entries = {
        f"n{index}": node.pods_entry(**EMULATED, address=net.addresses[index] if direct else None)
        for index, node in enumerate(net.nodes[:count])
    }
    pods = write_pods(desk.folder / "pods.yaml", entries, transport=transport)
    code, result, err = desk.run(f"lanes/{lane}.yaml", pods)
    assert (code, result.get("verdict")) == (0, "pass"), (result, err)
    assert_clean(*net.nodes)
    holds_elsewhere(desk, result, lane)
