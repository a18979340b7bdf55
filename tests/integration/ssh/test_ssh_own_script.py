"""A program of the user's own on a node over SSH: pip installs its packages there, as the node says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lab.desk import Desk
from lab.machine import HOME
from lab.node import sshd
from lab.pods import write_pods
from lab.space import need_spaces
from ssh_lanes import sound

from orchestrator.spec.read import read_lane

LANE = Path(__file__).parents[3] / "lanes/own-script.yaml"
PIP_CONF = Path.home() / ".config/pip/pip.conf"


def test_the_lane_passes_over_ssh(desk: Desk, tmp_path: Path):
    need_spaces()
    if not Path("/usr/bin/python3").exists():
        pytest.skip("the node has no python3")
    program = read_lane(LANE).run.program
    given = [f"{name}={os.environ[name]}" for name in program.inherit if name in os.environ]
    files = {".config/pip/pip.conf": PIP_CONF.read_text()} if PIP_CONF.exists() else {}
    config = (f"SetEnv {' '.join(given)}",) if given else ()
    with sshd(tmp_path / "node", config=config, files=files) as node:
        pods = write_pods(desk.folder / "pods.yaml", {"a": node})
        code, result, err = desk.run("lanes/own-script.yaml", pods)
        assert (code, result.get("verdict")) == (0, "pass"), (result, err)
        sound(result)
        assert node.processes() == {}
        assert node.left() == (f"{HOME}/.orch",)
