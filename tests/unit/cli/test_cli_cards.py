"""`orch validate`, `plan` and `build` of roles with cards: what is asked of them, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from orchestrator.cli.main import main


@pytest.fixture
def run(tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the smallest run with two cards."""
    shutil.copytree(pytestconfig.rootpath / "specs", tmp_path / "specs")
    monkeypatch.chdir(tmp_path)
    return Path("specs/runs/samples-gpu.yaml")


def test_validate_shows_what_cards_are_asked_for_and_hold(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(run), "specs/runs/samples.yaml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{run}: valid"
    assert lines[2].split() == [
        *("coordinator", "NVIDIA", "GeForce", "RTX", "3070"),
        *("1,280", "B", "768.0", "MiB", "7.7", "GiB", "to", "7.8", "GiB"),
    ]
    assert lines[4:] == ["specs/runs/samples.yaml: valid"]
    assert main(["validate", str(run), "--json"]) == 0
    (coordinator, worker) = json.loads(capsys.readouterr().out)["video_memory"][str(run)]
    assert (coordinator["roles"], worker["product"]) == ("coordinator", "NVIDIA GeForce RTX 3090")
    assert coordinator["bytes"] == sum(line["bytes"] for line in coordinator["lines"])
    assert coordinator["allocated_bytes"] == 1280
    assert coordinator["holds"]["550.54"] == (8192 - 227) << 20


def test_a_plan_says_which_roles_have_cards(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(run), "--json"]) == 0
    cards = json.loads(capsys.readouterr().out)
    assert main(["plan", "specs/runs/samples.yaml", "--json"]) == 0
    hosts = json.loads(capsys.readouterr().out)
    assert (cards["plan"], cards["system"]) == (hosts["plan"], hosts["system"])
    assert [role["device"] for role in cards["roles"]] == [
        "nvidia-geforce-rtx-3070",
        "nvidia-geforce-rtx-3090",
    ]
    assert [role["video_memory"] for role in hosts["roles"]] == [None, None]
    assert main(["plan", str(run), "--role", "worker", "--json"]) == 0
    role = json.loads(capsys.readouterr().out)["role"]
    assert role["video_memory"] == cards["roles"][1]["video_memory"]
    assert main(["plan", str(run)]) == 0
    said = capsys.readouterr().out
    assert "x86_64-linux, nvidia-geforce-rtx-3090" in said
    assert "video memory of a role on NVIDIA GeForce RTX 3070: 768.0 MiB" in said


@pytest.mark.parametrize("verb", ["validate", "build"])
def test_a_role_that_does_not_fit_its_card_is_refused_and_nothing_is_built(
    run: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = run.read_text()
    run.write_text(text.replace("worker: 1 GiB", "worker: 1 MiB"))
    arguments = [verb, str(run), *(["-o", "out"] if verb == "build" else [])]
    assert main(arguments) == 1
    said = capsys.readouterr().err
    line = text.count("\n")
    assert f"{run}:{line}:15: capacity-exceeded: video_memory of worker does not hold them" in said
    assert not Path("out").exists()
