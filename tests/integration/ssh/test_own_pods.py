"""A program of the user's own on nodes behind a real sshd: setup on each, files there and back, two roles."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab.desk import Desk, assert_clean
from lab.network import network
from lab.pods import write_pods

from orchestrator.qualify.judge import judge_bundle

SCRIPT = """#!/bin/sh
set -eu
if [ -n "$ORCH_CHECKPOINT_IN" ]; then
    line="^number [0-9]* from $ORCH_ROLE whole$"
    grep -q "$line" "$ORCH_CHECKPOINT_IN/number" || { echo damaged >&2; exit 3; }
fi
made=${ORCH_CHECKPOINT_OUT%/*}/made
mkdir "$made"
echo "number $ORCH_UPDATES from $ORCH_ROLE whole" >"$made/number"
mv "$made" "$ORCH_CHECKPOINT_OUT"
"""
RUN = """orch: run/v1
name: counting
roles: ["teller[1-2]"]
program:
  argv: [./count.sh]
  files: [count.sh]
  setup: [[touch, "{setup}/made"], [test, -f, "{setup}/made"]]
  checkpoint: files
  refuses: {checkpoint-chunk: {exit: 3, stderr: damaged}}
pairings: {"teller[1-2]": {target: command}}
"""
LANE = """orch: lane/v1
name: counting
run: run.yaml
updates: 4
split: 2
deadlines: {connect: 5s, round: 5s, run: 60s}
"""


@pytest.mark.parametrize("transport", ["direct", "ssh-tunnel"])
def test_two_roles_on_two_nodes(transport: str, tmp_path: Path) -> None:
    desk = Desk(tmp_path, tmp_path / "cache")
    (desk.folder / "count.sh").write_text(SCRIPT)
    (desk.folder / "run.yaml").write_text(RUN)
    (desk.folder / "lane.yaml").write_text(LANE)
    with network(tmp_path / "net", 2) as net:
        nodes = {
            f"n{index}": net.nodes[index].pods_entry(address=net.addresses[index], pod=f"pod-{index}")
            for index in (0, 1)
        }
        pods = write_pods(desk.folder / "pods.yaml", nodes, transport=transport)
        code, result, err = desk.run("lane.yaml", pods)
        assert (code, result.get("verdict")) == (0, "pass"), (result, err)
        bundle = desk.folder / result["bundle"]
        assert {path.name for path in (bundle / "steps/build/1/setup-1").iterdir() if path.is_dir()} == {
            "teller1",
            "teller2",
        }
        assert judge_bundle(bundle).agrees
        for node in net.nodes:
            assert_clean(node)
