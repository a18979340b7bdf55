"""Cards of nodes over SSH: read and pinned, compared, and never taken for real where they are stand-ins."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from lab.desk import Desk
from lab.machine import HOME
from lab.node import SshNode, sshd
from lab.space import need_spaces

from orchestrator.build.standin import Card, build_standin, cards_text

LANE = "lanes/samples-gpu.yaml"
TOOLS = f"{HOME}/tools"
CARDS = tuple(
    Card(
        minor=minor,
        uuid=f"GPU-{minor}0000000-0000-0000-0000-000000000000",
        bus=f"0000:0{place}:00.0",
        cc="8.6",
        memory_mib=8192,
        reserved_mib=300,
        driver="580.126.20",
        name=name,
    )
    for place, minor, name in ((1, 3, "NVIDIA GeForce RTX 3070"), (2, 2, "NVIDIA GeForce RTX 3090"))
)


@pytest.fixture
def desk(tmp_path: Path, cache: Path) -> Desk:
    return Desk(tmp_path / "desk", cache)


def show(node: SshNode, *cards: Card) -> None:
    (node.home / "tools/cards").write_text(cards_text(cards))


def test_pinned_cards_are_compared_and_stand_ins_are_no_cards(
    desk: Desk, tmp_path: Path, cache: Path, pytestconfig: pytest.Config
):
    """A node whose `nvidia-smi` is the stand-in's: two cards, then two others."""
    need_spaces()
    smi = build_standin(pytestconfig.rootpath, cache, "x86_64-linux").nvidia_smi
    with sshd(tmp_path / "a", config=(f"SetEnv PATH={TOOLS}:/usr/bin:/bin",)) as node:
        tools = node.home / "tools"
        tools.mkdir()
        (tools / "smi").write_bytes(smi)
        (tools / "nvidia-smi").write_text(f'#!/bin/sh\ncd {TOOLS} && exec ./smi "$@"\n')
        for name in ("smi", "nvidia-smi"):
            (tools / name).chmod(0o755)
        show(node, *CARDS)
        said = desk.orch(
            "pods",
            "add",
            "a",
            f"ssh {node.user}@{node.host} -p {node.port} -i {node.key}",
            "--owned",
            "--json",
        )
        assert said.returncode == 0, said.stderr
        assert json.loads(said.stdout)["cards"]["simulated"] is True
        pods = (desk.folder / "pods.yaml").read_text()
        assert all(f"{card.uuid}: {card.minor}" in pods for card in CARDS)

        code, result, err = desk.run(LANE, desk.folder / "pods.yaml")
        assert (code, result["verdict"], result["grade"]) == (1, "fail", "simulated"), err
        failed = {
            check["name"]: check for check in result["steps"][0]["checks"] if check["verdict"] == "fail"
        }
        assert list(failed) == ["not-simulated"]
        assert failed["not-simulated"]["got"].startswith("device-simulated: ")
        assert result["steps"][1]["attempts"] == 0

        other = desk.lane("samples-gpu")
        run = desk.folder / "specs" / "runs" / "samples-gpu.yaml"
        run.write_text(run.read_text().replace("worker: 1 GiB", "worker: 1 MiB"))
        looked = desk.orch("doctor", other, "--pods", "pods.yaml")
        assert looked.returncode == 1
        assert "capacity-exceeded: video_memory of worker does not hold them" in looked.stderr

        first, second = CARDS
        show(node, replace(first, minor=second.minor), replace(second, minor=first.minor))
        shown = desk.orch("pods", "show").stdout
        assert f"device-uuid: card {first.uuid} had minor 3 and has minor 2" in shown
        code, result, err = desk.run(LANE, desk.folder / "pods.yaml")
        failed = {
            check["name"]: check for check in result["steps"][0]["checks"] if check["verdict"] == "fail"
        }
        assert code == 1
        assert failed["coordinator-uuid"]["got"].startswith("device-uuid: ")
        assert result["steps"][1]["attempts"] == 0, "nothing is built"
