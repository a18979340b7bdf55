"""What binds a run to its pods: forged bundles, other pods on resume, a checkpoint taken to new pods."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lab.desk import Desk, assert_clean, events
from lab.network import Network, network
from lab.pods import write_pods
from ssh_lanes import LONG

from evidence import bundle as bundles
from evidence.canonical import dumps, loads
from evidence.digest import sha256_bytes
from evidence.event import GENESIS, Event
from evidence.stream import Stream, read
from evidence.verify import read_qualification, verify
from orchestrator.qualify.judge import judge_bundle

Forge = Callable[[Path], None]
SAMPLES = "lanes/samples.yaml"
PATIENCE_S = 120


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network(tmp_path_factory.mktemp("net"), 2) as made:
        yield made


@pytest.fixture(scope="module")
def seat(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk"), cache)


def rented(desk: Desk, net: Network, transport: str, *, only: tuple[int, ...] = (0, 1), **more: Any) -> Path:
    nodes = {
        f"n{index}": net.nodes[index].pods_entry(address=net.addresses[index], pod=f"pod-{index}", **more)
        for index in only
    }
    return write_pods(desk.folder / f"{transport}-{len(only)}.yaml", nodes, transport=transport)


@pytest.fixture(scope="module")
def passed(net: Network, seat: Desk) -> Callable[[str], Path]:
    """A passed bundle by transport; made once."""
    made: dict[str, Path] = {}

    def give(transport: str) -> Path:
        if transport not in made:
            code, result, err = seat.run(SAMPLES, rented(seat, net, transport))
            assert (code, result.get("verdict")) == (0, "pass"), (result, err)
            made[transport] = seat.folder / result["bundle"]
        return made[transport]

    return give


def edit(bundle: Path, name: str, change: Callable[[Any], None]) -> None:
    value = loads((bundle / name).read_bytes())
    change(value)
    (bundle / name).write_bytes(dumps(value))


def journal(bundle: Path, change: Callable[[Event], Event | None]) -> None:
    """Another journal, its chain made anew."""
    path = bundle / "stream.jsonl"
    previous, data, number = GENESIS, b"", 0
    for event in read(path):
        if (changed := change(event)) is not None:
            number += 1
            line = replace(changed, sequence=number, prevhash=previous).line()
            previous, data = sha256_bytes(line), data + line + b"\n"
    path.write_bytes(data)


def seal_again(bundle: Path) -> None:
    kept = ("stream", "files")
    told = {name: value for name, value in read_qualification(bundle).items() if name not in kept}
    path = bundle / "stream.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    for name in ("qualification.json", "SHA256SUMS"):
        (bundle / name).unlink()
    with Stream.reopen(path, told["run_id"]) as stream:
        bundles.seal(bundle, stream, "pass", told)
    assert verify(bundle) == ()


def pinned_otherwise(*, node: str = "n1", **changed: Any) -> Forge:
    """Other pins, and a journal that begins with them."""

    def forge(bundle: Path) -> None:
        edit(bundle, "pods.json", lambda value: value["nodes"][node].update(changed))
        sha256 = sha256_bytes((bundle / "pods.json").read_bytes())

        def begun(event: Event) -> Event:
            is_first = event.type == "orch.lane.started"
            return replace(event, data={**event.data, "pods_sha256": sha256}) if is_first else event

        journal(bundle, begun)

    return forge


def bound(launch: str, role: int, **changed: Any) -> Forge:
    name = f"steps/{launch}/launch.json"
    return lambda bundle: edit(bundle, name, lambda value: value["starts"][role]["binding"].update(changed))


def ran_elsewhere(bundle: Path) -> None:
    edit(
        bundle,
        "steps/uninterrupted/1/run-1/launch.json",
        lambda value: value["starts"][1].update(node="n0"),
    )


def placed_elsewhere(bundle: Path) -> None:
    edit(bundle, "binding.json", lambda value: value["roles"]["worker"].update(node="n0"))


def pods_were_others(bundle: Path) -> None:
    edit(bundle, "pods.json", lambda value: value["nodes"]["n1"].update(pod="another"))


def nobody_connected(bundle: Path) -> None:
    journal(bundle, lambda event: None if event.type == "orch.remote.connected" else event)


def the_clock_was_right(bundle: Path) -> None:
    edit(
        bundle,
        "steps/preflight/1/nodes.json",
        lambda value: value["n0"]["clock"].update(offset_ns=3_600_000_000_000),
    )
    edit(bundle, "binding.json", lambda value: value["nodes"]["n0"].update(clock_offset_ns=3_600_000_000_000))


def no_tunnel_carried(bundle: Path) -> None:
    edit(
        bundle,
        "steps/preflight/1/nodes.json",
        lambda value: value["n1"].update(tunnels={"n0": "tunnel-refused: n1: no"}),
    )


FORGERIES: dict[str, tuple[str, Forge]] = {
    "a worker ran on the root's node": ("direct", ran_elsewhere),
    "a worker was placed on the root's node": ("direct", placed_elsewhere),
    "other pods were pinned": ("direct", pods_were_others),
    "another pod from the beginning": ("direct", pinned_otherwise(pod="another")),
    "another host key from the beginning": ("direct", pinned_otherwise(host_key="SHA256:" + "A" * 43)),
    "another address from the beginning": ("direct", pinned_otherwise(node="n0", address="10.9.9.9")),
    "a worker dialled loopback": ("direct", bound("split/1/part-2", 1, parent_address="127.0.0.1")),
    "a worker dialled another port": ("direct", bound("split/1/part-2", 1, parent_port=9)),
    "the root listened elsewhere": ("ssh-tunnel", bound("uninterrupted/1/run-1", 0, address="0.0.0.0")),
    "a tunnel ended elsewhere": ("ssh-tunnel", bound("uninterrupted/1/run-1", 1, parent_address="10.0.0.1")),
    "nobody connected": ("direct", nobody_connected),
    "a clock was an hour off": ("direct", the_clock_was_right),
    "no tunnel carried": ("ssh-tunnel", no_tunnel_carried),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_what_never_happened_is_no_pass(passed: Callable[[str], Path], tmp_path: Path, kind: str):
    transport, forge = FORGERIES[kind]
    copied = tmp_path / "copied"
    shutil.copytree(passed(transport), copied)
    forge(copied)
    seal_again(copied)
    judgement = judge_bundle(copied)
    assert judgement.verdict != "pass"
    assert not judgement.agrees


@pytest.mark.parametrize("transport", ["direct", "ssh-tunnel"])
def test_a_bundle_says_what_it_is_bound_to_and_not_how_it_was_reached(
    passed: Callable[[str], Path], net: Network, transport: str
):
    bundle = passed(transport)
    pods = json.loads((bundle / "pods.json").read_bytes())
    assert [node["pod"] for node in pods["nodes"].values()] == ["pod-0", "pod-1"]
    assert {role["node"] for role in pods["roles"]} == {"n0", "n1"}
    binding = json.loads((bundle / "binding.json").read_bytes())
    assert [role["node"] for role in binding["roles"].values()] == ["n0", "n1"]
    for node in net.nodes:
        assert node.host_key in (bundle / "pods.json").read_text()
        for file in (path for path in bundle.rglob("*") if path.is_file()):
            assert str(node.key).encode() not in file.read_bytes(), file
    kinds = {event["type"] for event in events(bundle)}
    assert {"orch.remote.connected", "orch.remote.put", "orch.launch.advanced"} <= kinds


def interrupted(desk: Desk, pods: Path, launch: str, **lines: str) -> Path:
    """The bundle of a lane whose controller was killed while a launch ran."""
    before = set(desk.bundles())
    controller = desk.start("run", desk.lane("samples", **lines), "--pods", str(pods))
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit:
        assert controller.poll() is None
        for bundle in set(desk.bundles()) - before:
            about = [event["data"] for event in events(bundle) if event["type"] == "orch.job.started"]
            if sum(data["launch"] == launch for data in about) > 1:
                desk.kill(controller)
                return bundle
        time.sleep(0.01)
    raise AssertionError("it never came")


def test_other_pods_are_refused_on_resume_and_the_same_go_on(seat: Desk, net: Network):
    pods = rented(seat, net, "direct")
    bundle = interrupted(seat, pods, "run-1", **LONG)
    others = {
        "another pod": rented(seat, net, "direct", remote_root=None).read_text().replace("pod-1", "pod-9"),
        "other places": json.dumps(
            {**json.loads(pods.read_text()), "roles": {"coordinator": "n1", "worker": "n0"}}
        ),
    }
    for said, text in others.items():
        other = seat.folder / "other.yaml"
        other.write_text(text)
        done = seat.orch("run", "--resume", str(bundle), "--pods", str(other))
        assert done.returncode == 1, (said, done)
        assert "pod-changed: " in done.stderr
        assert "--from" in done.stderr
    code, result, err = seat.run("", None, "--resume", str(bundle))
    assert (code, result.get("verdict")) == (0, "pass"), (result, err)
    assert_clean(*net.nodes)


def test_a_resume_that_reaches_a_node_no_more_names_both_ways_out(seat: Desk, net: Network):
    bundle = interrupted(seat, rented(seat, net, "direct"), "part-2", **{**LONG, "updates": "6000"})
    net.nodes[1].kill_sshd()
    done = seat.orch("run", "--resume", str(bundle))
    net.nodes[1].start_sshd()
    assert done.returncode == 4, done
    assert "unreachable: n1: " in done.stderr
    assert f"`orch run --resume {bundle}`" in done.stderr
    assert f"--from {bundle}:checkpoint@6000`" in done.stderr
    code, result, err = seat.run("", None, "--resume", str(bundle))
    assert (code, result.get("verdict")) == (0, "pass"), (result, err)
    assert_clean(*net.nodes)


def test_a_checkpoint_goes_on_other_pods_after_the_first_were_lost(seat: Desk, net: Network):
    """The controller dies after the split's publication was collected; only one node is left."""
    lines = {"updates": "300", "split": "100", "omit": "{refusals: shown elsewhere}"}
    lane = seat.lane("samples", **lines)
    code, first, err = seat.run(lane, rented(seat, net, "direct"))
    assert code == 0, err
    origin = f"{first['bundle']}:checkpoint@100"
    code, result, err = seat.run(lane, rented(seat, net, "loopback", only=(1,)), "--from", origin)
    assert (code, result.get("verdict")) == (0, "pass"), (result, err)
    bundle = seat.folder / result["bundle"]
    told = read_qualification(bundle)
    assert told["parent"] == {"run_id": first["run_id"], "version": 100, "seal": first["seal"]}
    judged = judge_bundle(bundle)
    assert judged.agrees, judged.differences
    assert result["updates"] == 300
    assert len(result["losses"]) == 200
    assert result["final_loss"] == first["final_loss"]
    assert_clean(*net.nodes)
    # and from there once more, its own parent with it
    code, again, err = seat.run(lane, None, "--pods", "local", "--from", f"{bundle}:checkpoint@200")
    assert (code, again.get("verdict")) == (0, "pass"), (again, err)
    assert again["final_loss"] == first["final_loss"]
    flip = seat.folder / "flipped"
    shutil.copytree(seat.folder / again["bundle"], flip)
    shard = next((flip / "parent/checkpoint").glob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-1] + bytes([shard.read_bytes()[-1] ^ 1]))
    seal_again(flip)
    assert judge_bundle(flip).verdict != "pass"
