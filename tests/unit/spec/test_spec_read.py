"""The readers: typed values of the shipped content, and all refusals of wrong files at once."""

import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from orchestrator.errors import Label, RefusedError
from orchestrator.plan.derive import derive
from orchestrator.spec.lane import Deadlines, Limits
from orchestrator.spec.pods import Placement
from orchestrator.spec.read import (
    files,
    kind_of,
    read_device,
    read_lane,
    read_pods,
    read_programme,
    read_project,
    read_run,
    read_system,
    validate,
)
from orchestrator.spec.run import Hierarchy, Ownership
from orchestrator.spec.units import Money

ROOT = Path(__file__).parents[3]
GOOD = ROOT / "tests" / "refusals" / "good"


@pytest.fixture
def good(tmp_path: Path) -> Path:
    shutil.copytree(GOOD, tmp_path / "good")
    return tmp_path / "good"


def changed(path: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    return path


def test_every_content_file_is_right() -> None:
    content = sorted([*ROOT.glob("specs/*/*.yaml"), *ROOT.glob("lanes/*.yaml")])
    assert len(content) >= 11
    assert validate(content) == ()


def test_the_lane_of_the_samples() -> None:
    lane = read_lane(ROOT / "lanes" / "samples.yaml")
    assert (lane.name, lane.gate, lane.updates, lane.split, lane.omit) == ("samples", "samples", 5, 3, {})
    assert lane.deadlines == Deadlines(10_000, 5_000, 300_000, 120_000)
    assert lane.limits == Limits(1200.0, None)
    run, system = lane.run, lane.run.system
    assert (run.topology, tuple(run.roles), tuple(run.samples)) == (
        "pair",
        ("coordinator", "worker"),
        (1, 2),
    )
    assert run.ownership == Ownership("replicated", "replicated", "replicated")
    assert (system.rows, system.width, system.sample) == (3, 2, (("x", 1), ("y", 1)))
    assert [(field.name, field.size, tuple(field.initial)) for field in system.parameters] == [
        ("w", 1, (0.0,))
    ]
    assert [statement.text for statement in system.contribution] == ["e = w * x - y", "g = e * x"]
    assert system.data.read_text() == "x,y\n1.0,1.5\n1.0,1.0\n1.0,0.5\n"


def test_the_run_of_the_diabetes_study() -> None:
    run = read_run(ROOT / "specs" / "runs" / "mixed-isa.yaml")
    assert tuple(run.roles) == ("coordinator", "worker1", "worker2", "worker3")
    assert tuple(run.samples) == (100, 0, 300, 42)
    assert [pairing.target for pairing in run.pairings] == ["x86_64-linux"] + ["aarch64-linux"] * 3
    assert tuple(run.memory) == (None,) * 4
    assert str(run.pairings[3].where).endswith("specs/runs/mixed-isa.yaml:12:27")


def test_a_place_inside_a_statement() -> None:
    system = read_system(ROOT / "specs" / "systems" / "least-squares.yaml")
    statement = system.contribution[1]
    line = system.path.read_text().split("\n")[statement.where.line - 1]
    assert line[statement.where.column - 1] == '"'
    assert line[statement.at(7).column - 1 :].startswith("e * x[i]")


def test_both_notations_give_the_same_values(good: Path) -> None:
    yaml, toml = read_lane(good / "lane.yaml"), read_lane(good / "lane.toml")
    for one, other in ((yaml, toml), (yaml.run, toml.run), (yaml.run.system, toml.run.system)):
        assert one.name == other.name
    assert (yaml.updates, yaml.split, yaml.deadlines, yaml.limits) == (5, 3, toml.deadlines, toml.limits)
    assert (yaml.run.roles, yaml.run.samples) == (toml.run.roles, toml.run.samples)
    assert [statement.text for statement in yaml.run.system.update] == [
        statement.text for statement in toml.run.system.update
    ]


def test_owners_of_columns_may_have_declared_ranges_and_say_nothing_else(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    run = tmp_path / "specs" / "runs" / "coordinates-host.yaml"
    own = 'ownership: {ranges: {coordinator: none, worker1: "3-9", worker3: "0-2"}}'
    changed(run, "topology: star", f"topology: star\n{own}")
    assert tuple(read_run(run).ownership.ranges) == (range(0), range(3, 10), range(0), range(3))


def test_declarations_that_no_plan_realizes_yet_are_right_as_files(good: Path) -> None:
    changed(
        good / "run.yaml",
        "topology: star",
        "topology: {kind: hierarchy, fan_out: 2}\nownership: {optimizer_state: partitioned}",
    )
    changed(good / "run.yaml", "coordinator: {target: x86_64-linux}", "coordinator: {target: command}")
    changed(
        good / "run.yaml",
        '"worker[1-2]": {target: x86_64-linux}',
        '"worker[1-2]": {target: x86_64-linux, device: nvidia-geforce-rtx-3070}',
    )
    changed(good / "run.yaml", "pairings:", "memory: {worker2: 64 MiB}\npairings:")
    run = read_run(good / "run.yaml")
    assert run.topology == Hierarchy(2)
    assert run.ownership == Ownership("replicated", "partitioned", "replicated")
    assert tuple(run.memory) == (None, None, 64 << 20)
    devices = [pairing.device and pairing.device.product for pairing in run.pairings]
    assert devices == [None, "NVIDIA GeForce RTX 3070", "NVIDIA GeForce RTX 3070"]


def test_a_device_profile_tells_every_fact() -> None:
    device = read_device(ROOT / "specs" / "devices" / "nvidia-geforce-rtx-3070.yaml")
    assert device.facts["memory_reserved"].value == {"550.54": 227 << 20, "580.126.20": 352 << 20}
    assert device.facts["compute_capability"].value == "8.6"
    assert device.facts["copy_engines"].value is None
    assert device.facts["copy_engines"].reason
    for fact in device.facts.values():
        assert (fact.value is None) == (fact.reference is None) == (fact.reason is not None)


def test_pods_with_their_defaults(good: Path) -> None:
    pods = read_pods(good / "pods.yaml")
    a, b = pods.nodes["a"], pods.nodes["b"]
    assert (a.user, a.host, a.port, a.key, a.price) == (
        "root", "203.0.113.7", 41022, "~/.ssh/id_ed25519", Money(Decimal("0.44"), "USD")
    )  # fmt: skip
    assert (b.port, b.price, b.emulators, b.remote_root) == (
        None,
        None,
        {"aarch64-linux": "qemu-aarch64-static"},
        a.remote_root,
    )
    assert (a.owned, b.owned) == (False, True)
    assert sorted(a.cards.values()) == [2, 3]
    assert pods.roles["worker1"] == pods.roles["worker2"] == Placement("b", None)
    assert pods.roles["coordinator"].card in a.cards


@pytest.mark.parametrize(
    ("host", "user", "name"),
    [
        ("203.0.113.8", None, "203.0.113.8"),
        ("root@gpu.example", "root", "gpu.example"),
        ('"root@[2001:db8::7]"', "root", "2001:db8::7"),
        ('"2001:db8::7"', None, "2001:db8::7"),
    ],
)
def test_hosts(good: Path, host: str, user: str | None, name: str) -> None:
    node = read_pods(changed(good / "pods.yaml", "root@203.0.113.8", host)).nodes["b"]
    assert (node.user, node.host) == (user, name)


@pytest.mark.parametrize(
    "host", ["-oProxyCommand=x", "root@-x", "a b", "root@", "@host", "a;b", "root@host:22"]
)
def test_hosts_that_are_none(good: Path, host: str) -> None:
    with pytest.raises(RefusedError) as caught:
        read_pods(changed(good / "pods.yaml", "root@203.0.113.8", f'"{host}"'))
    assert [refusal.label for refusal in caught.value.refusals] == [Label.VALUE_FORMAT]


def test_the_programme() -> None:
    programme = read_programme(ROOT / "specs" / "programmes" / "orch.yaml")
    items = {item.id: item for item in programme.items}
    assert list(items) == ["N1", "N2", "N3", "N4", "N10", "N11", "N12", "N13", "N14"]
    assert items["N10"].proof
    assert items["N10"].proof.products == ("NVIDIA GeForce RTX 3070", "NVIDIA GeForce RTX 3090")
    assert {item.milestone for item in programme.items} <= set(programme.milestones)


@pytest.mark.parametrize(
    "lane",
    [
        *("samples", "diabetes", "mixed-isa"),
        *("coordinates", "coordinates-swap", "independent", "samples-gpu", "adam-gpu", "one-card"),
    ],
)
def test_the_programme_pins_what_the_shipped_lanes_are(lane: str) -> None:
    programme = read_programme(ROOT / "specs" / "programmes" / "orch.yaml")
    (proof,) = (item.proof for item in programme.items if item.proof and item.proof.lane == lane)
    plan = derive(read_lane(ROOT / "lanes" / f"{lane}.yaml").run).plan
    assert (proof.system, proof.plan) == (plan.system.digest, plan.digest)


@pytest.mark.parametrize("key", ["system", "plan"])
def test_a_pin_is_a_digest(tmp_path: Path, key: str) -> None:
    text = (ROOT / "specs" / "programmes" / "orch.yaml").read_text()
    pin = next(line for line in text.splitlines() if f" {key}: " in line)
    file = tmp_path / "programme.yaml"
    file.write_text(text.replace(pin, pin[:-1], 1))
    with pytest.raises(RefusedError) as caught:
        read_programme(file)
    (refusal,) = caught.value.refusals
    assert (refusal.label, refusal.where.line) == (Label.VALUE_FORMAT, text.splitlines().index(pin) + 1)


def test_a_project_stands_where_its_file_does(tmp_path: Path) -> None:
    (tmp_path / "orch.toml").write_text('bundles = "out"\ncontent = "/content"\n')
    project = read_project(tmp_path / "orch.toml")
    assert (project.bundles, project.content) == (tmp_path / "out", Path("/content"))
    (tmp_path / "orch.toml").write_text("")
    assert read_project(tmp_path / "orch.toml").bundles == tmp_path / "runs"


def test_kinds_are_told_apart(good: Path) -> None:
    kinds = {path.name: kind_of(path) for path in good.iterdir()}
    assert kinds["lane.toml"] == "lane/v1"
    assert kinds["orch.toml"] is None
    assert kinds["samples.csv"] is None
    assert kind_of(good / "nothing.yaml") is None


def test_the_files_behind_a_lane(good: Path) -> None:
    assert [path.name for path in files(good / "lane.yaml")] == [
        "lane.yaml",
        "run.yaml",
        "system.yaml",
        "samples.csv",
    ]
    changed(good / "system.yaml", "rate: 0.5", "rate: 0")
    with pytest.raises(RefusedError):
        files(good / "lane.yaml")


def test_a_file_that_two_refer_to_is_told_once(good: Path) -> None:
    changed(good / "system.yaml", "rate: 0.5", "rate: 0")
    found = validate([good / "lane.yaml", good / "run.yaml", good / "system.yaml"])
    assert [(refusal.label, refusal.where.path) for refusal in found] == [
        (Label.VALUE_RANGE, str(good / "system.yaml"))
    ]


def test_the_order_is_of_files_and_then_of_places(good: Path) -> None:
    changed(good / "lane.yaml", "split: 3", "split: 0")
    changed(good / "lane.yaml", "name: three", "name: 3")
    changed(good / "run.yaml", "topology: star", "topology: ring")
    (good / "samples.csv").write_text("1,2,x\n")
    found = [
        (Path(refusal.where.path).name, refusal.where.line) for refusal in validate([good / "lane.yaml"])
    ]
    assert found == [("lane.yaml", 2), ("lane.yaml", 5), ("run.yaml", 4), ("samples.csv", 1)]


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (read_lane, "run.yaml"),
        (read_run, "lane.yaml"),
        (read_system, "pods.yaml"),
        (read_pods, "device.yaml"),
    ],
)
def test_a_file_of_another_kind(good: Path, read: object, name: str) -> None:
    assert callable(read)
    with pytest.raises(RefusedError) as caught:
        read(good / name)
    assert [(refusal.label, refusal.where.line) for refusal in caught.value.refusals] == [
        (Label.KIND_UNKNOWN, 1)
    ]


def test_a_reference_through_a_link_means_what_the_system_means(good: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(good)
    (good.parent / "system.yaml").write_text(
        (good / "system.yaml").read_text().replace("samples.csv", "good/samples.csv")
    )
    changed(good / "run.yaml", "system: system.yaml", "system: ../system.yaml")
    assert read_run(tmp_path / "elsewhere" / "link" / "run.yaml").system.name == "line"


def test_the_package_alone_loads_nothing() -> None:
    heavy = {"pydantic", "ruamel.yaml", "tree_sitter", "ClusterShell"}
    program = f"import orchestrator.spec, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[]\n"
