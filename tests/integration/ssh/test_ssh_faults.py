"""Things that break on a node while a lane runs there: its disk, its processes, its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.desk import Desk, assert_clean
from lab.network import Network, network
from lab.pods import write_pods
from ssh_lanes import LONG, has, labels, sound, when

DISK = "/root/disk"


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network(tmp_path_factory.mktemp("net"), 2, disks={DISK: "size=90m"}) as made:
        yield made


def pods_of(desk: Desk, net: Network, root: str) -> Path:
    nodes = {
        f"n{index}": node.pods_entry(address=net.addresses[index], remote_root=root)
        for index, node in enumerate(net.nodes)
    }
    return write_pods(desk.folder / "pods.yaml", nodes, transport="direct")


def goes_on(desk: Desk, net: Network) -> None:
    code, result, err = desk.run("", None, "--resume", "last")
    assert (code, result.get("verdict")) == (0, "pass"), (result, err)
    sound(result)
    assert_clean(*net.nodes, kept=("disk/orch",))


def test_a_disk_that_fills_while_roles_run(desk: Desk, net: Network):
    """What the roles write does not fit, nor does what is put there for the next try."""
    lane = desk.lane("samples", **LONG)
    controller = desk.start("run", lane, "--pods", str(pods_of(desk, net, f"{DISK}/orch")), "--json")
    assert when(desk, controller, has("job.started", launch="run-1", role="worker"))
    full = net.nodes[1].fill(DISK)
    done = desk.end(controller)
    full.unlink()
    assert done.returncode == 4, done
    assert labels(done.stderr) == {"disk-space"}, done.stderr
    assert "--resume" in done.stderr
    goes_on(desk, net)
