"""Bundles that claim what did not happen: files and journal changed, then sealed again over a pass.

Whoever runs everything again can make a true bundle; whoever only edits one must be found out by the judge.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lane_workshop import ORCH, Workshop
from test_forged_bundles import seal_again

from evidence.canonical import dumps, loads
from evidence.digest import sha256_bytes
from evidence.event import GENESIS, Event
from evidence.stream import read
from orchestrator.qualify.judge import judge_bundle
from orchestrator.qualify.view import View

Forge = Callable[[Path], None]


def edit(path: Path, change: Callable[[Any], None]) -> None:
    value = loads(path.read_bytes())
    change(value)
    path.write_bytes(dumps(value))


def journal(bundle: Path, change: Callable[[list[Event]], list[Event]]) -> None:
    """Another journal, its chain made anew; the sealing record comes again with the seal."""
    path = bundle / "stream.jsonl"
    previous, data = GENESIS, b""
    for number, event in enumerate(change(list(read(path))), 1):
        line = replace(event, sequence=number, prevhash=previous).line()
        previous, data = sha256_bytes(line), data + line + b"\n"
    path.write_bytes(data)


def launch(bundle: Path, name: str, change: Callable[[Any], None]) -> None:
    edit(bundle / "steps" / name / "launch.json", change)


def binding(name: str, **changed: Any) -> Forge:
    return lambda bundle: launch(bundle, name, lambda value: value["starts"][0]["binding"].update(changed))


def second_run_is_the_first(bundle: Path) -> None:
    steps = bundle / "steps/uninterrupted/1"
    for role in ("coordinator", "worker"):
        shutil.rmtree(steps / "run-2" / role)
        shutil.copytree(steps / "run-1" / role, steps / "run-2" / role)


def nothing_was_corrupted(bundle: Path) -> None:
    def undo(value: Any) -> None:
        fresh = loads((bundle / "steps/evaluate/1/fresh/launch.json").read_bytes())
        for start, whole in zip(value["starts"], fresh["starts"], strict=True):
            start["files"] = whole["files"]

    launch(bundle, "evaluate/1/corrupted", undo)
    shutil.rmtree(bundle / "steps/evaluate/1/corrupted/placed")


def samples_were_right(bundle: Path) -> None:
    for path in (bundle / "steps/refusals/1/data-chunk/placed").iterdir():
        path.write_bytes(path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1]))


def roles_ran_each_others_programs(bundle: Path) -> None:
    programs = bundle / "steps/build/1/programs"
    (programs / "worker.elf").write_bytes((programs / "coordinator.elf").read_bytes())


def a_refused_role_trained(bundle: Path) -> None:
    progress = bundle / "steps/uninterrupted/1/run-1/worker/progress"
    shutil.copy(progress, bundle / "steps/refusals/1/data-chunk/worker/progress")


def another_published(bundle: Path) -> None:
    run = bundle / "steps/uninterrupted/1/run-1"
    (run / "coordinator/checkpoint").rename(run / "worker/checkpoint")


def without(kind: str) -> Forge:
    return lambda bundle: journal(bundle, lambda events: [event for event in events if event.type != kind])


def exits_were_other(bundle: Path) -> None:
    def change(events: list[Event]) -> list[Event]:
        return [
            replace(event, data={**event.data, "exits": dict.fromkeys(event.data["exits"], "139")})
            if event.type == "orch.launch.finished"
            else event
            for event in events
        ]

    journal(bundle, change)


def a_stop_is_left_over(bundle: Path) -> None:
    def change(events: list[Event]) -> list[Event]:
        stop = replace(events[-2], type="orch.lane.stopped", data={"reason": "interrupted by SIGINT"})
        return [*events[:-2], stop, *events[-2:]]

    journal(bundle, change)


def finished_twice(bundle: Path) -> None:
    def change(events: list[Event]) -> list[Event]:
        again = next(event for event in events if event.type == "orch.step.finished")
        return [*events[:-1], again, events[-1]]

    journal(bundle, change)


def emulated_is_called_host(bundle: Path) -> None:
    edit(
        bundle / "steps/preflight/1/nodes.json",
        lambda nodes: nodes["local"].update(machine="aarch64", emulators={"x86_64-linux": "qemu"}),
    )


def a_card_was_bound(bundle: Path) -> None:
    card = {"product": "NVIDIA H200", "uuid": "GPU-1", "minor": 0, "profile": "h200", "driver": "590"}
    edit(bundle / "binding.json", lambda value: value["roles"]["worker"].update(device=card))


def folder_was_not_looked_at(bundle: Path) -> None:
    (bundle / "steps/record/1/left.json").write_bytes(b"{}")


def left_out_afterwards(bundle: Path) -> None:
    lane = View(bundle).lane_copy
    text = lane.read_text()
    lane.write_text(text.replace("omit: {}", "omit: {evaluate: it was never meant}"))
    assert lane.read_text() != text
    shutil.rmtree(bundle / "steps/evaluate")


FORGERIES: dict[str, Forge] = {
    "the second run is a copy of the first": second_run_is_the_first,
    "nothing was corrupted": nothing_was_corrupted,
    "samples were right": samples_were_right,
    "roles ran each other's programs": roles_ran_each_others_programs,
    "a refused role trained": a_refused_role_trained,
    "another role published": another_published,
    "another epoch": binding("split/1/part-2", epoch=7),
    "other deadlines": binding("uninterrupted/1/run-1", round_ms=1),
    "not resumed": binding("refusals/1/checkpoint-chunk", resume=False, restore_sha256=None),
    "no processes": without("orch.job.started"),
    "no launches": without("orch.launch.started"),
    "other exit codes": exits_were_other,
    "a stop is left over": a_stop_is_left_over,
    "finished twice": finished_twice,
    "emulated is called host": emulated_is_called_host,
    "a card was bound": a_card_was_bound,
    "folder was not looked at": folder_was_not_looked_at,
    "a step was left out afterwards": left_out_afterwards,
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_what_never_happened_is_no_pass(copied: Path, forge: Forge):
    forge(copied)
    seal_again(copied)
    judgement = judge_bundle(copied)
    assert judgement.verdict != "pass"
    assert not judgement.agrees


def test_a_judge_says_the_same_in_every_process(copied: Path, workshop: Workshop):
    """Whatever order sets have in it: else a failed bundle would not agree with its own record."""
    binding("uninterrupted/1/run-1", round_ms=1, connect_ms=2)(copied)
    launch(copied, "uninterrupted/1/run-2", lambda value: value["starts"][1]["binding"].update(run_ms=3))
    (copied / "steps/split/1/part-1/launch.json").unlink()
    seal_again(copied)
    said = []
    for seed in ("1", "2", "3"):
        done = subprocess.run(
            [*ORCH, "judge", str(copied), "--json"],
            env={**workshop.environment, "PYTHONHASHSEED": seed},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        said.append(done.stdout)
    assert b'"fail"' in said[0]
    assert said[0] == said[1] == said[2]
