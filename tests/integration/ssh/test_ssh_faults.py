"""Things that break on a node while a lane runs there: its disk, its processes, its files."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.desk import Desk, assert_clean
from lab.machine import HOME
from lab.network import Network, network
from lab.pods import write_pods
from ssh_lanes import LONG, has, labels, sound, when

DISK = f"{HOME}/disk"


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


def test_a_folder_that_is_removed_while_roles_run_there(desk: Desk, net: Network):
    lane = desk.lane("samples", **LONG)
    controller = desk.start("run", lane, "--pods", str(pods_of(desk, net, ".orch")), "--json")
    assert when(desk, controller, has("job.started", launch="run-1", role="worker"))
    # whoever writes there may make the folder anew meanwhile
    while (base := net.nodes[1].home / ".orch").exists():
        shutil.rmtree(base, ignore_errors=True)
    done = desk.end(controller)
    assert done.returncode == 4, done
    assert labels(done.stderr) == {"remote-root"}, done.stderr
    assert "--resume" in done.stderr
    goes_on(desk, net)


def test_bundles_that_cannot_be_written_any_more(desk: Desk, net: Network):
    lane = desk.lane("samples", **LONG)
    controller = desk.start("run", lane, "--pods", str(pods_of(desk, net, ".orch")), "--json")
    assert when(desk, controller, has("job.started", launch="run-1", role="worker"))
    resource.prlimit(controller.pid, resource.RLIMIT_FSIZE, (4096, 4096))
    done = desk.end(controller)
    assert done.returncode == 4, done
    assert labels(done.stderr) == {"write-failed"}, done.stderr
    goes_on(desk, net)


def test_nodes_that_do_not_let_each_other_in(desk: Desk, net: Network):
    """As behind firewalls: nobody is told, and the controller reaches both."""
    lane = desk.lane("samples", deadlines="{connect: 3s, round: 3s, run: 1m}")
    pods = pods_of(desk, net, ".orch")
    net.part(*net.nodes)
    try:
        code, result, err = desk.run(lane, pods)
    finally:
        net.join(*net.nodes)
    assert (code, result["verdict"]) == (1, "fail"), (result, err)
    assert labels(err) == {"connect-deadline"}, err
    assert "ssh-tunnel" in err
    assert_clean(*net.nodes, kept=("disk/orch",))
