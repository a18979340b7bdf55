"""Runners killed or stopped, work folders removed: the step is tried again, and nothing is left running."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from covering import some
from lane_workshop import Workshop, events

from evidence.verify import verify

OMIT = "{refusals: shown elsewhere, evaluate: shown elsewhere}"
DEADLINES = "{connect: 2s, round: 1s, run: 20s}"


def lane(workshop: Workshop) -> str:
    """A samples lane whose uninterrupted run takes a good part of a second."""
    return workshop.lane("samples", updates="8000", split="4000", deadlines=DEADLINES, omit=OMIT)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.005)


def pid_of(workshop: Workshop, role: str) -> int:
    found: list[int] = []

    def noted() -> bool:
        found.extend(
            event["data"]["pid"]
            for bundle in workshop.bundles()
            for event in events(bundle)
            if event["type"] == "orch.job.started"
            and (event["data"]["launch"], event["data"]["role"]) == ("run-1", role)
        )
        return bool(found)

    until(noted)
    return found[0]


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize(
    ("role", "number"),
    some(
        product(("coordinator", "worker"), (signal.SIGKILL, signal.SIGSTOP)),
        lambda at: (at[0] == "worker") == (at[1] == signal.SIGKILL),
    ),
)
def test_a_role_that_goes_with_its_runner_is_lost_and_tried_again(
    workshop: Workshop, role: str, number: signal.Signals
):
    controller = workshop.start("run", lane(workshop), "--json", "--db", "t.sqlite3")
    pid = pid_of(workshop, role)
    os.kill(parent(pid), number)
    os.kill(pid, signal.SIGKILL)
    out, err = controller.communicate(timeout=120)
    assert controller.returncode == 0, err
    result = json.loads(out)
    bundle = Path(result["bundle"])
    reasons = [e["data"]["reason"] for e in events(bundle) if e["type"] == "orch.attempt.failed"]
    assert reasons == [f"no exit code came back from {role}"]
    assert verify(bundle) == ()
    assert workshop.strays() == []
    assert list(workshop.folder.glob("tmp/orch-*/*")) == []


def test_a_root_that_is_removed_under_its_roles_leaves_the_run_open(workshop: Workshop):
    controller = workshop.start("run", lane(workshop), "--json", "--db", "t.sqlite3")
    pid_of(workshop, "worker")
    (root,) = workshop.folder.glob("tmp/orch-*/*")
    shutil.rmtree(root)
    _, err = controller.communicate(timeout=120)
    assert controller.returncode == 4
    assert "bears no mark of ours" in err
    assert not root.exists()
    assert workshop.strays() == []
    code, result = workshop.run("--resume", "last", "--db", "t.sqlite3")
    assert (code, result.get("verdict")) == (0, "pass"), result
    assert workshop.strays() == []
    assert not root.exists()


def test_a_port_holder_whose_folder_went_with_its_controller_is_not_waited_for(workshop: Workshop):
    controller = workshop.start("run", "lanes/samples.yaml", "--db", "t.sqlite3")
    until(lambda: bool(list(workshop.folder.glob("tmp/orch-*/*/*/*-port-holder/listening"))))
    controller.kill()
    controller.communicate()
    (root,) = workshop.folder.glob("tmp/orch-*/*")
    shutil.rmtree(root)
    code, result = workshop.run("--resume", "last", "--db", "t.sqlite3")
    assert (code, result.get("verdict")) == (0, "pass"), result
    assert workshop.strays() == []


def test_a_port_holder_whose_folder_goes_is_not_waited_for(workshop: Workshop):
    """The controller looks for a file that will never be there, and its holder has no job any more."""
    controller = workshop.start("run", "lanes/samples.yaml", "--db", "t.sqlite3")
    until(lambda: bool(list(workshop.folder.glob("tmp/orch-*/*/*/*-port-holder/job"))))
    (root,) = workshop.folder.glob("tmp/orch-*/*")
    shutil.rmtree(root, ignore_errors=True)
    controller.communicate(timeout=120)
    assert controller.returncode in {1, 4}
    assert workshop.strays() == []


def test_what_is_left_at_the_end_is_noted_and_ended(workshop: Workshop):
    """A process that no job accounts for works in the run's folder: the run fails, and it is not left."""
    controller = workshop.start("run", lane(workshop), "--json", "--db", "t.sqlite3")
    pid_of(workshop, "worker")
    (root,) = workshop.folder.glob("tmp/orch-*/*")
    with subprocess.Popen(["sleep", "600"], cwd=root, start_new_session=True) as stray:
        out, err = controller.communicate(timeout=120)
        assert stray.wait(timeout=60) == -signal.SIGKILL
    assert controller.returncode == 1, err
    result = json.loads(out)
    checks = {check["name"]: check for step in result["steps"][-1:] for check in step["checks"]}
    assert checks["local-processes"]["got"] == str(stray.pid)
    assert checks["local-folder"]["verdict"] == "pass"
    assert not root.exists()
