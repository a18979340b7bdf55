"""A lane ended from outside: by a person, by its limits, by a machine that lacks what it needs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from lane_workshop import ORCH, Workshop, events

from evidence.verify import verify
from orchestrator.qualify.judge import judge_bundle


def endless(workshop: Workshop, *, duration: str = "20m") -> str:
    """A samples lane that would go on for minutes."""
    limits = f"{{duration: {duration}}}"
    return workshop.lane("samples", updates="9000000", split="3000000", limits=limits)


def wait_for(workshop: Workshop, launch: str) -> Path:
    """Until a launch's roles have made their first updates; the bundle."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for bundle in workshop.bundles():
            if any(
                event["type"] == "orch.job.started" and event["data"]["launch"] == launch
                for event in events(bundle)
            ) and list(workshop.folder.glob(f"tmp/orch-*/*/*/*-{launch}/progress")):
                return bundle
        time.sleep(0.01)
    raise AssertionError(f"{launch} did not begin")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_interrupt_stops_collects_and_seals_as_unknown(workshop: Workshop, number: signal.Signals):
    controller = workshop.start("run", endless(workshop), "--json", "--db", "t.sqlite3")
    bundle = wait_for(workshop, "run-1")
    controller.send_signal(number)
    begun = time.monotonic()
    out, err = controller.communicate(timeout=60)
    assert time.monotonic() - begun < 60  # it would go on for minutes
    assert controller.returncode == 4, err
    result = json.loads(out)
    verdicts = {step["name"]: (step["verdict"], step["reason"]) for step in result["steps"]}
    assert verdicts["uninterrupted"] == ("unknown", f"interrupted by {number.name}")
    assert verdicts["split"] == ("unknown", f"not run: interrupted by {number.name}")
    assert verdicts["record"][0] == "pass"
    assert list(bundle.glob("steps/uninterrupted/1/run-1/*/progress")), "what was there was collected"
    assert verify(bundle, seal=result["seal"]) == ()
    assert judge_bundle(bundle).agrees
    assert workshop.strays() == []


def test_two_interrupts_leave_at_once_and_the_run_can_be_taken_up(workshop: Workshop):
    controller = workshop.start("run", endless(workshop), "--db", "t.sqlite3")
    bundle = wait_for(workshop, "run-1")
    os.kill(controller.pid, signal.SIGSTOP)
    controller.send_signal(signal.SIGINT)
    controller.send_signal(signal.SIGTERM)
    os.kill(controller.pid, signal.SIGCONT)
    controller.communicate(timeout=60)
    assert controller.returncode == 130
    assert not (bundle / "qualification.json").exists()
    assert workshop.strays(), "roles are left to their own deadlines"
    resumed = workshop.start("run", "--resume", "last", "--json", "--db", "t.sqlite3")
    while not any(event["type"] == "orch.launch.reattached" for event in events(bundle)):
        assert resumed.poll() is None
        time.sleep(0.01)
    resumed.send_signal(signal.SIGINT)
    out, _ = resumed.communicate(timeout=30)
    assert (resumed.returncode, json.loads(out)["verdict"]) == (4, "unknown")
    assert workshop.strays() == []


def test_the_duration_limit_stops_the_lane_by_its_label(workshop: Workshop):
    begun = time.monotonic()
    done = workshop.orch("run", endless(workshop, duration="6s"), "--json", "--db", "t.sqlite3")
    assert done.returncode == 4
    assert time.monotonic() - begun < 60  # it would go on for minutes
    result = json.loads(done.stdout)
    stopped = [step["reason"] for step in result["steps"] if step["reason"].startswith("limit-duration:")]
    assert len(stopped) == 1
    assert verify(Path(result["bundle"])) == ()
    assert workshop.strays() == []


def test_a_tracker_that_cannot_be_written_loses_nothing(workshop: Workshop):
    (workshop.folder / "t.sqlite3").write_bytes(b"not a database" * 100)
    done = workshop.orch("run", "lanes/samples.yaml", "--json", "--db", "t.sqlite3")
    assert done.returncode == 0
    assert "tracker ingest" in done.stderr
    assert verify(Path(json.loads(done.stdout)["bundle"])) == ()


def test_a_folder_for_bundles_that_cannot_be_written_is_refused(workshop: Workshop):
    (workshop.folder / "file").write_text("in the way")
    done = workshop.orch("run", "lanes/samples.yaml", "--bundles", "file/runs", "--db", "t.sqlite3")
    assert done.returncode == 1
    assert "bundles cannot be written here" in done.stderr


def test_a_missing_emulator_is_refused_with_the_name_of_its_package(workshop: Workshop, tmp_path: Path):
    """The lane with AArch64 roles on a machine without the emulator: refused before a byte is built."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "setsid", "sleep", "mkdir", "mv", "printf"):
        found = next(Path(folder) / name for folder in ("/bin", "/usr/bin") if (Path(folder) / name).exists())
        (tools / name).symlink_to(found)
    environment = {**workshop.environment, "PATH": str(tools)}
    done = subprocess.run(
        [*ORCH, "run", "lanes/mixed-isa.yaml", "--json", "--db", "t.sqlite3"],
        cwd=workshop.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    (preflight, build) = result["steps"][:2]
    got = [check["got"] for check in preflight["checks"] if check["verdict"] == "fail"]
    assert len(got) == 3
    assert all(text.startswith("emulator-missing: ") and "qemu-user-static" in text for text in got)
    assert (build["verdict"], build["attempts"]) == ("unknown", 0)
