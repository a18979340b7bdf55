"""doctor, logs, stop and clean against real SSH servers, with no terminal and nothing on standard input."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from lab.desk import Desk, assert_clean
from lab.machine import HOME
from lab.node import SshNode, sshd
from lab.pods import write_pods
from lab.space import need_spaces, until

LONG = {"updates": "900000", "split": "3", "deadlines": "{connect: 10s, round: 5s, run: 5m}"}


@pytest.fixture
def desk(tmp_path: Path, cache: Path) -> Desk:
    return Desk(tmp_path / "desk", cache)


@pytest.fixture
def node(tmp_path: Path):
    with sshd(tmp_path / "a") as made:
        yield made


def rental(desk: Desk, **nodes: SshNode) -> str:
    desk.folder.mkdir(exist_ok=True)
    transport = "loopback" if len(nodes) == 1 else "ssh-tunnel"
    return str(write_pods(desk.folder / "pods.yaml", nodes, transport=transport).name)


def begun(desk: Desk, node: SshNode, pods: str, lane: str):
    """A run whose uninterrupted step shows progress."""
    process = desk.start("run", lane, "--pods", pods, "--json")
    root = node.home / ".orch" if node.space else node.folder / "orch"

    def moves() -> bool:
        assert process.poll() is None, process.communicate()
        written = [path.read_bytes().count(b"\n") for path in root.rglob("*-run-1/progress")]
        return len(written) == 2 and min(written) > 2

    until(moves, "progress")
    return process


def test_a_lane_is_doctored_run_and_read(desk, node):
    pods, lane = rental(desk, a=node), desk.lane("diabetes")
    before = node.left()
    done = desk.orch("doctor", "--pods", pods, lane)
    assert done.returncode == 0, done.stderr
    assert f"orch run --pods {pods} {lane}" in done.stdout
    assert node.left() == before
    code, said, complaints = desk.run(lane, Path(pods))
    assert (code, said.get("verdict")) == (0, "pass"), complaints
    logs = desk.orch("logs")
    assert logs.returncode == 0
    assert "coordinator stderr: checkpoint-chunk\n" in logs.stdout  # a control is the last launch
    clean = desk.orch("clean", "--pods", pods)
    assert (clean.returncode, clean.stdout) == (0, "nothing is left\n")
    assert_clean(node)


def test_a_cap_that_is_reached_is_told_before_a_run_meets_it(desk, node):
    began = {"started": "2026-01-01T00:00:00Z", "cap": "1 USD"}
    billed = node.pods_entry(price="1 USD/h", owned=None)
    lane = desk.lane("samples")
    pods = write_pods(desk.folder / "pods.yaml", {"a": billed}, rental=began).name
    looked, ran = desk.orch("doctor", "--pods", pods, lane), desk.orch("run", "--pods", pods, lane)
    assert (looked.returncode, ran.returncode) == (1, 4), (looked, ran)
    for done in (looked, ran):
        assert "limit-spend: the rental's cap, 1 USD at 1 USD/h, is reached" in done.stderr
    assert "a higher `cap`" in looked.stderr


def test_a_running_lane_is_followed_and_stopped(desk, node):
    pods, lane = rental(desk, a=node), desk.lane("samples", **LONG)
    process = begun(desk, node, pods, lane)
    read = json.loads(desk.orch("logs", "--json").stdout)
    assert read["launch"].startswith("uninterrupted/")
    assert all(role["progress"].count("\n") > 2 for role in read["roles"].values())
    follower = desk.start("logs", "-f", "coordinator")
    line = follower.stdout.readline()
    assert line.startswith("coordinator progress: ")
    shown = json.loads(desk.orch("doctor", "--pods", pods, "--json").stdout)
    assert [trouble["label"] for trouble in shown["troubles"]] == ["run-locked"]
    (left,) = [
        each
        for each in json.loads(desk.orch("clean", "--pods", pods, "--json", "--open").stdout)["left"]
        if each["run_id"]
    ]
    assert left["state"] == "running"
    done = desk.orch("stop")
    assert done.returncode == 0, done.stderr
    out = desk.end(process)
    assert out.returncode == 4
    assert json.loads(out.stdout)["verdict"] == "unknown"
    assert desk.end(follower).returncode == 0
    assert_clean(node)


def test_a_lost_controller_is_stopped_in_its_stead(desk, node):
    pods, lane = rental(desk, a=node), desk.lane("samples", **LONG)
    desk.kill(begun(desk, node, pods, lane))
    done = desk.orch("stop", "--json")
    assert done.returncode == 0, done.stderr
    judged = json.loads(desk.orch("judge", "last", "--json").stdout)
    assert judged["verdict"] == "unknown"
    assert_clean(node)


def test_a_lane_whose_pod_is_gone_for_good_is_sealed_without_it(desk, node):
    need_spaces()
    pods, lane = rental(desk, a=node), desk.lane("samples", **LONG)
    desk.kill(begun(desk, node, pods, lane))
    node.kill_all()
    (desk.folder / pods).unlink()
    left_open = desk.orch("stop")
    assert left_open.returncode == 1
    assert "file-missing" in left_open.stderr
    done = desk.orch("stop", "--without-nodes", "--json")
    assert done.returncode == 0, done.stderr
    judged = json.loads(desk.orch("judge", "last", "--json").stdout)
    assert (judged["verdict"], judged["agrees"]) == ("unknown", True)
    assert "node-lost: a: the node is given up" in json.dumps(judged)
    with closing(sqlite3.connect(desk.folder / "tracker.sqlite3")) as tracker:
        assert tracker.execute("SELECT verdict, ended IS NULL FROM runs").fetchall() == [("unknown", 0)]


def test_what_a_lost_controller_left_is_cleaned(desk, node):
    need_spaces()
    pods, lane = rental(desk, a=node), desk.lane("samples", **LONG)
    desk.kill(begun(desk, node, pods, lane))
    node.kill_all()  # the pod was restarted: nothing runs there any more
    node.start_sshd()
    (left,) = [each for each in cleaned(desk, pods) if each["run_id"]]
    assert left["state"] in ("open", "running")
    root = node.seen(left["folder"])
    stranger = root.parent / "01a227a3-3705-7543-8c8c-7c1897723e26"
    stranger.mkdir(mode=0o700)
    (stranger / ".orch-owner").write_text(f"somebody\n{stranger.name}\n")
    states = {each["run_id"]: each["state"] for each in cleaned(desk, pods, "--open") if each["run_id"]}
    assert states == {root.name: "removed", stranger.name: "not ours"}
    assert not root.exists()
    assert stranger.exists()


def cleaned(desk: Desk, pods: str, *more: str) -> list[dict]:
    done = desk.orch("clean", "--pods", pods, "--json", *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["left"]


def test_all_that_is_in_the_way_is_said_at_once(desk, tmp_path):
    need_spaces()
    with (
        sshd(tmp_path / "a", disks={f"{HOME}/.orch": "size=1m,noexec"}) as a,
        sshd(tmp_path / "b", config=("AllowTcpForwarding no",)) as b,
        sshd(tmp_path / "c") as c,
    ):
        c.kill_sshd()
        pods, lane = rental(desk, a=a, b=b, c=c), desk.lane("mixed-isa")
        done = desk.orch("doctor", "--pods", pods, lane, "--json")
        assert done.returncode == 1, done.stderr
        found = [(each["node"], each["label"]) for each in json.loads(done.stdout)["troubles"]]
        assert {
            ("a", "remote-root"),
            ("a", "disk-space"),
            ("b", "tunnel-refused"),
            ("c", "unreachable"),
        } <= set(found)
        assert "target-arch" in {label for _, label in found}
        only_down = rental(desk, c=c)
        assert desk.orch("doctor", "--pods", only_down).returncode == 4


def test_tunnels_are_tried_where_the_tree_needs_them(desk, tmp_path):
    """The last node's roles dial those of one that is not the root's, whose server carries nothing."""
    placement = dict.fromkeys(("coordinator", "worker2", "worker5", "worker6"), "a")
    placement |= {"worker1": "b", "worker3": "c", "worker4": "c"}
    tree, star = desk.lane("hierarchy"), desk.lane("diabetes")
    with (
        sshd(tmp_path / "a") as a,
        sshd(tmp_path / "b", config=("AllowTcpForwarding remote",)) as b,
        sshd(tmp_path / "c") as c,
    ):
        nodes = {"a": a, "b": b, "c": c}
        pods = write_pods(desk.folder / "pods.yaml", nodes, transport="ssh-tunnel", roles=placement).name
        looked = [desk.orch("doctor", "--pods", pods, lane, "--json") for lane in (tree, star)]
        _, said, _ = desk.run(tree, Path(pods))
    assert {done.returncode for done in looked} == {1}
    found = [{each["node"]: each["label"] for each in json.loads(done.stdout)["troubles"]} for done in looked]
    assert found == [{"b": "tunnel-refused", "c": "tunnel-refused"}, {"b": "tunnel-refused"}]
    failed = [
        check["name"]
        for step in said["steps"]
        for check in step["checks"]
        if "tunnel-refused" in str(check["got"])
    ]
    assert failed == ["b-tunnel", "c-tunnel"]  # a lane's preflight asks for the same
