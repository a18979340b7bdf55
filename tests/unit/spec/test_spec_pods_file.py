"""`pods.yaml` is changed without losing what a person wrote in it."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator.errors import Label, RefusedError
from orchestrator.spec.pods_file import add_node, change_node
from orchestrator.spec.read import read_pods

KEY = "SHA256:" + "a" * 43
OTHER = "SHA256:" + "b" * 43
SEEN = {"machine": "x86_64", "kernel": "6.1", "cpus": 2, "memory_mib": None, "boot_id": "1e10"}
ENTRY = {"host": "root@203.0.113.7", "port": 41022, "host_key": KEY, "owned": True, "seen": SEEN}
SECOND = {**ENTRY, "port": 41023}
RENTAL = {"started": "2026-11-29T09:00:00Z", "cap": "5.00 USD"}
WRITTEN = """\
# of the lab
orch: pods/v1   # kind

# about the way
transport: ssh-tunnel
nodes:
  # the first
  a: {host: root@h, owned: true}   # cheap

  # the second
  b:
    host: root@h2  # there
    owned: true
    # its last line

# where roles go
roles: {worker: a}
# end
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pods.yaml"


def test_a_first_node_makes_the_file(path):
    spec = add_node(path, "a", {**ENTRY, "price": "0.44 USD/h"}, rental=RENTAL)
    assert spec == read_pods(path)
    node = spec.nodes["a"]
    assert (spec.path, spec.transport, spec.started, str(spec.cap)) == (
        path,
        "loopback",
        RENTAL["started"],
        "5.00 USD",
    )
    assert (node.user, node.host, node.port, node.host_key) == ("root", "203.0.113.7", 41022, KEY)
    assert node.seen == SEEN
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["pods.yaml"]


def test_comments_order_and_style_stay(path):
    path.write_text(WRITTEN, encoding="utf-8")
    add_node(path, "c", {**ENTRY, "price": "0.44 USD/h"}, rental=RENTAL)
    change_node(path, "a", {"host_key": OTHER})
    change_node(path, "b", {"host_key": OTHER, "seen": SEEN})
    change_node(path, "c", {"host_key": OTHER, "seen": {**SEEN, "cpus": 4}})
    text = path.read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    for line in WRITTEN.splitlines():
        if "#" in line:
            assert any(line[line.index("#") :] in each for each in lines), line
    assert lines.index("# about the way") + 1 == lines.index("transport: ssh-tunnel")
    assert lines.index("# where roles go") + 1 == lines.index("roles: {worker: a}")
    assert lines[-1] == "# end"
    spec = read_pods(path)
    assert list(spec.nodes) == ["a", "b", "c"]
    assert {node.host_key for node in spec.nodes.values()} == {OTHER}
    assert spec.nodes["c"].seen["cpus"] == 4


def test_json_is_yaml_too(path):
    path.write_text(
        json.dumps({"orch": "pods/v1", "transport": "loopback", "nodes": {"a": ENTRY}}), encoding="utf-8"
    )
    add_node(path, "b", SECOND)
    assert list(read_pods(path).nodes) == ["a", "b"]


@pytest.mark.parametrize(("address", "transport"), [(None, "ssh-tunnel"), ("10.0.0.7", "direct")])
def test_a_second_node_needs_a_way_to_the_first(path, address, transport):
    entry = {**ENTRY, **({"address": address} if address else {})}
    assert add_node(path, "a", entry).transport == "loopback"
    assert add_node(path, "b", {**entry, "port": 41023}).transport == transport


def test_what_a_person_chose_is_kept(path):
    add_node(path, "a", ENTRY)
    path.write_text(
        path.read_text().replace("loopback", "direct").replace("owned", "address: 10.0.0.7\n    owned")
    )
    before = path.read_bytes()
    with pytest.raises(RefusedError) as refused:
        add_node(path, "b", SECOND)
    (refusal,) = refused.value.refusals
    assert (refusal.label, refusal.key, refusal.where.path) == (
        Label.FIELD_MISSING,
        "nodes.b.address",
        str(path),
    )
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["orch: pods/v1\nnodes: [\n", "orch: pods/v1\n", "a: &b 1\n", ""])
def test_a_file_that_is_wrong_is_refused_and_stays(path, text):
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RefusedError):
        add_node(path, "a", ENTRY)
    assert path.read_text(encoding="utf-8") == text


def test_what_would_be_wrong_is_refused_and_makes_no_file(path):
    with pytest.raises(RefusedError) as refused:
        add_node(path, "A node", ENTRY)
    assert {each.where.path for each in refused.value.refusals} == {str(path)}
    assert not path.exists()


def test_another_notation_is_written_by_hand(tmp_path):
    with pytest.raises(RefusedError) as refused:
        add_node(tmp_path / "pods.toml", "a", ENTRY)
    assert refused.value.refusals[0].label == Label.KIND_UNKNOWN


def test_a_folder_that_cannot_be_written():
    with pytest.raises(RefusedError) as refused:
        add_node(Path("/proc/pods.yaml"), "a", ENTRY)  # where not even root makes a file
    assert refused.value.refusals[0].label == Label.WRITE_FAILED


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(RefusedError) as refused:
        add_node(tmp_path / "absent" / "pods.yaml", "a", ENTRY)
    assert refused.value.refusals[0].label == Label.WRITE_FAILED


def test_a_link_stays_a_link(path, tmp_path):
    (tmp_path / "kept").mkdir()
    path.symlink_to(tmp_path / "kept" / "pods.yaml")
    add_node(path, "a", ENTRY)
    assert path.is_symlink()
    assert list(read_pods(path).nodes) == ["a"]


def test_many_at_once_lose_nothing(path):
    names = [f"n{i}" for i in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: add_node(path, name, {**ENTRY, "pod": name, "remote_root": name}), names))
    assert sorted(read_pods(path).nodes) == sorted(names)


@pytest.mark.parametrize(
    "text", ["1e5", "true", "null", "~", "0x10", "2026-11-29", "a: b", "a #b", '"', "'", "é", "-x"]
)
def test_any_text_comes_back_as_it_is(path, text):
    add_node(path, "a", {**ENTRY, "pod": text})
    assert read_pods(path).nodes["a"].pod == text
