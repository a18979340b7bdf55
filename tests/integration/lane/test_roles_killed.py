"""Roles killed or stopped in the middle of a lane: the step fails by label, and no process is left."""

from __future__ import annotations

import json
import os
import signal
import time
from itertools import product
from pathlib import Path

import pytest
from covering import some
from lane_workshop import Workshop, events

from evidence.verify import verify


def lane(workshop: Workshop) -> str:
    """A diabetes lane of many updates and short deadlines."""
    deadlines = "{connect: 3s, round: 1s, run: 2m}"
    return workshop.lane("diabetes", updates="400000", split="200000", deadlines=deadlines)


def pid_of(workshop: Workshop, role: str) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for bundle in workshop.bundles():
            for event in events(bundle):
                data = event["data"]
                if event["type"] == "orch.job.started" and (data["launch"], data["role"]) == ("run-1", role):
                    return int(data["pid"])
        time.sleep(0.01)
    raise AssertionError(f"{role} did not begin")


@pytest.mark.parametrize(
    ("role", "number"),
    # each role is taken once, either way by turns
    some(
        product(("coordinator", "worker1", "worker3"), (signal.SIGKILL, signal.SIGSTOP)),
        lambda at: (at[0] == "worker1") == (at[1] == signal.SIGKILL),
    ),
)
def test_one_role_gone_ends_the_round_for_everyone(workshop: Workshop, role: str, number: signal.Signals):
    controller = workshop.start("run", lane(workshop), "--json", "--db", "t.sqlite3")
    pid = pid_of(workshop, role)
    time.sleep(0.3)
    os.kill(pid, number)
    out, err = controller.communicate(timeout=60)
    assert controller.returncode == 1, err
    result = json.loads(out)
    bundle = Path(result["bundle"])
    said = {
        path.parent.name: path.read_text() for path in bundle.glob("steps/uninterrupted/1/run-1/*/stderr")
    }
    assert set(said) == {"coordinator", "worker1", "worker2", "worker3"}
    gone = said.pop(role)
    assert gone == ""
    allowed = {"peer-lost\n"} if number == signal.SIGKILL else {"peer-lost\n", "round-deadline\n"}
    assert set(said.values()) <= allowed, said
    assert not list(bundle.glob("steps/uninterrupted/1/run-1/*/checkpoint/*")), "nothing is half committed"
    assert not list(bundle.glob("steps/uninterrupted/1/run-1/*/stdout")) or all(
        path.read_bytes() == b"" for path in bundle.glob("steps/uninterrupted/1/run-1/*/stdout")
    )
    verdicts = {step["name"]: step["verdict"] for step in result["steps"]}
    assert (verdicts["uninterrupted"], verdicts["split"], verdicts["record"]) == ("fail", "unknown", "pass")
    assert verify(bundle) == ()
    assert workshop.strays() == []
