"""A controller killed at any point: the lane goes on from its journal, and nothing is done twice."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pytest
from covering import each
from lane_workshop import Workshop, events

from evidence.stream import read
from evidence.verify import verify

KILLS = 32
LONGEST = 72  # events of an undisturbed samples lane
OMIT = "{refusals: shown elsewhere, evaluate: shown elsewhere}"


def lines(workshop: Workshop) -> int:
    bundles = workshop.bundles()
    return (bundles[0] / "stream.jsonl").read_bytes().count(b"\n") if bundles else 0


def kill_at(workshop: Workshop, sequence: int, delay_s: float) -> None:
    """SIGKILL to the controller some time after its stream has this many events."""
    controller = workshop.start("run", "lanes/samples.yaml", "--db", "tracker.sqlite3")
    while controller.poll() is None and lines(workshop) < sequence:
        time.sleep(0.0005)
    time.sleep(delay_s)
    controller.kill()
    controller.communicate()


def journal_is_sound(bundle: Path) -> None:
    finished = Counter(
        (event["data"]["step"]) for event in events(bundle) if event["type"] == "orch.step.finished"
    )
    assert set(finished.values()) == {1}, finished
    done: set[str] = set()
    launched: set[tuple[str, int, str]] = set()
    for event in read(bundle / "stream.jsonl"):
        if event.type == "orch.step.finished":
            done.add(event.data["step"])
        elif event.type == "orch.step.started":
            assert event.data["step"] not in done, "a finished step was begun again"
        elif event.type == "orch.launch.started":
            key = (event.data["step"], event.data["attempt"], event.data["launch"])
            assert key not in launched, "a launch was started twice"
            launched.add(key)


@pytest.mark.parametrize("seed", each(4, range(KILLS)))
def test_the_lane_completes_after_a_kill(workshop: Workshop, seed: int):
    chance = random.Random(seed)
    # every stretch of the stream gets its kill, at a random moment within it
    sequence = 1 + (seed * LONGEST) // KILLS
    kill_at(workshop, sequence, chance.random() * 0.06)
    (bundle,) = workshop.bundles()
    code, result = workshop.run("--resume", "last", "--db", "tracker.sqlite3")
    assert (code, result.get("verdict")) == (0, "pass"), result
    assert Path(result["bundle"]).name == bundle.name
    assert workshop.bundles() == [bundle]
    assert verify(bundle, seal=result["seal"]) == ()
    journal_is_sound(bundle)
    assert workshop.strays() == []


@pytest.mark.parametrize("at", [("run-1", "job.started"), ("part-2", "launch.started")], ids=lambda at: at[0])
def test_a_hierarchy_whose_state_is_dealt_out_completes_after_a_kill(workshop: Workshop, at: tuple[str, str]):
    """Its roles go on alone, inner ones too, or the step is begun again with the whole set of parts."""
    launch, kind = at
    lane = workshop.lane("hierarchy", updates="400", split="200", omit="{refusals: shown elsewhere}")
    controller = workshop.start("run", lane, "--db", "tracker.sqlite3")
    while controller.poll() is None and not any(
        event["type"] == f"orch.{kind}" and event["data"]["launch"] == launch
        for bundle in workshop.bundles()
        for event in events(bundle)
    ):
        time.sleep(0.002)
    assert controller.poll() is None
    controller.kill()
    controller.communicate()
    (bundle,) = workshop.bundles()
    code, result = workshop.run("--resume", "last", "--db", "tracker.sqlite3")
    assert (code, result.get("verdict")) == (0, "pass"), result
    assert verify(bundle, seal=result["seal"]) == ()
    journal_is_sound(bundle)
    assert workshop.strays() == []


@pytest.mark.parametrize("seed", each(4, range(4)))
def test_a_lane_killed_again_and_again_completes(workshop: Workshop, seed: int):
    chance = random.Random(1000 + seed)
    kill_at(workshop, 2 + chance.randrange(10), 0)
    (bundle,) = workshop.bundles()
    for _ in range(6):
        before = lines(workshop)
        controller = workshop.start("run", "--resume", "last", "--db", "tracker.sqlite3")
        while controller.poll() is None and lines(workshop) < before + chance.randrange(3, 12):
            time.sleep(0.0005)
        controller.kill()
        controller.communicate()
    code, result = workshop.run("--resume", "last", "--db", "tracker.sqlite3")
    assert (code, result.get("verdict")) == (0, "pass"), result
    assert verify(bundle) == ()
    journal_is_sound(bundle)
    assert workshop.strays() == []


def test_roles_that_still_run_are_taken_up_again(workshop: Workshop):
    """The controller dies in a launch that takes seconds: the same processes finish the step."""
    long_lane = workshop.lane("samples", updates="15000", split="7500", omit=OMIT)
    controller = workshop.start("run", long_lane, "--db", "tracker.sqlite3")

    def started() -> list[dict[str, object]]:
        bundles = workshop.bundles()
        return [
            event["data"]
            for event in (events(bundles[0]) if bundles else ())
            if event["type"] == "orch.job.started" and event["data"]["launch"] == "run-1"
        ]

    while len(started()) < 2:
        assert controller.poll() is None, controller.communicate()
        time.sleep(0.01)
    controller.kill()
    controller.communicate()
    (bundle,) = workshop.bundles()
    pids = {str(data["role"]): str(data["pid"]) for data in started()}
    assert workshop.strays(), "the roles go on without their controller"
    code, result = workshop.run("--resume", "last", "--db", "tracker.sqlite3")
    assert (code, result.get("verdict")) == (0, "pass"), result
    again = [event["data"] for event in events(bundle) if event["type"] == "orch.launch.reattached"]
    assert [(data["launch"], data["pids"]) for data in again] == [("run-1", pids)]
    attempts = {step["name"]: step["attempts"] for step in result["steps"]}
    assert attempts["uninterrupted"] == 1
    assert workshop.strays() == []


def test_a_second_controller_is_kept_out(workshop: Workshop):
    controller = workshop.start("run", "lanes/samples.yaml", "--db", "tracker.sqlite3")
    while controller.poll() is None and lines(workshop) < 3:
        time.sleep(0.001)
    second = workshop.orch("run", "--resume", "last", "--db", "tracker.sqlite3")
    assert second.returncode == 1
    assert "run-locked" in second.stderr
    _, err = controller.communicate(timeout=120)
    assert controller.returncode == 0, err


def test_a_torn_line_is_set_aside_and_said(workshop: Workshop):
    kill_at(workshop, 20, 0)
    (bundle,) = workshop.bundles()
    stream = bundle / "stream.jsonl"
    stream.write_bytes(stream.read_bytes() + b'{"data":{"half":')
    code, result = workshop.run("--resume", "last", "--db", "tracker.sqlite3")
    assert (code, result["verdict"]) == (0, "pass")
    assert (bundle / "stream.torn-1").read_bytes() == b'{"data":{"half":'
    assert any(event["type"] == "orch.stream.torn" for event in events(bundle))
    assert verify(bundle) == ()


def test_a_broken_chain_is_not_gone_on_with(workshop: Workshop):
    kill_at(workshop, 20, 0)
    (bundle,) = workshop.bundles()
    stream = bundle / "stream.jsonl"
    kept = stream.read_bytes().splitlines(keepends=True)
    stream.write_bytes(b"".join(kept[:5] + kept[6:]))
    done = workshop.orch("run", "--resume", "last", "--db", "tracker.sqlite3")
    assert done.returncode == 1
    assert "stream.jsonl:6:1: file-unreadable" in done.stderr


def test_a_finished_run_is_only_reported(workshop: Workshop):
    _, first = workshop.run("lanes/samples.yaml", "--db", "tracker.sqlite3")
    before = (Path(first["bundle"]) / "stream.jsonl").read_bytes()
    code, again = workshop.run("--resume", "last", "--db", "tracker.sqlite3")
    assert (code, again["seal"], again["run_id"]) == (0, first["seal"], first["run_id"])
    assert (Path(first["bundle"]) / "stream.jsonl").read_bytes() == before
