"""`orch inventory` and `orch profile capture` against a real SSH server with an nvidia-smi of its own."""

from __future__ import annotations

import gzip
import json

from lab.desk import Desk
from lab.machine import HOME
from lab.node import sshd
from lab.pods import write_pods
from lab.space import need_spaces

from orchestrator.spec.read import read_device

SMI = f"""\
#!/bin/sh
case "$*" in
"-q -x") cat {HOME}/smi.xml ;;
*compute_cap*) printf 'pci.bus_id, compute_cap\\n00000000:2D:00.0, 8.6\\n' ;;
*query-gpu*) printf 'index, pci.bus_id\\n0, 00000000:2D:00.0\\n' ;;
*) printf 'gpu_bus_id, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\\n' ;;
esac
"""


def test_cards_of_nodes(pytestconfig, tmp_path, cache):
    need_spaces()
    desk = Desk(tmp_path / "desk", cache)
    desk.folder.mkdir(exist_ok=True)
    kept = pytestconfig.rootpath / "tests" / "data" / "nvidia-smi" / "x31_rtx3060_570.xml.gz"
    xml = gzip.decompress(kept.read_bytes()).decode()
    files = {"bin/nvidia-smi": SMI, "smi.xml": xml, ".bashrc": "echo welcome\n"}
    path = (f"SetEnv PATH={HOME}/bin:/usr/bin:/bin",)
    with (
        sshd(tmp_path / "a", busybox=True, config=path, files=files) as a,
        sshd(tmp_path / "b") as b,
    ):
        pods = write_pods(desk.folder / "pods.yaml", {"a": a, "b": b}, transport="ssh-tunnel").name
        looked = desk.orch("inventory", "--pods", pods, "--json")
        written = desk.orch("profile", "capture", "--pods", pods, "--node", "a", "--output", "card.yaml")
        refused = desk.orch("profile", "capture", "--pods", pods, "--node", "b")
        which = desk.orch("profile", "capture", "--pods", pods)
    said = json.loads(looked.stdout)["nodes"]
    (card,) = said["a"]["cards"]
    assert (card["minor"], card["capability"], card["state"]["is"]) == (0, "8.6", "device-busy")
    assert said["a"]["faults"] == []
    assert f"nvidia-smi is {HOME}/bin/nvidia-smi" in said["a"]["notes"]
    assert [fault["label"] for fault in said["b"]["faults"]] == ["device-absent"]
    assert looked.returncode == 1
    assert (written.returncode, written.stderr) == (0, "")
    assert read_device(desk.folder / "card.yaml").product == "NVIDIA GeForce RTX 3060"
    assert (refused.returncode, which.returncode) == (1, 2)
    assert "device-absent" in refused.stderr
    assert "--node NAME is needed: one of a, b" in which.stderr
