"""What tests of lanes on real nodes ask of a run: its verdict, its labels, its journal, what it left."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.desk import Desk, assert_clean, events
from lab.node import SshNode

from evidence.verify import verify
from orchestrator.errors import Label
from orchestrator.qualify.judge import judge_bundle

PATIENCE_S = 120
# what is left of a lane where it is the node or the way to it that is looked at
SHORT = {"omit": "{refusals: shown elsewhere, evaluate: shown elsewhere}"}
# updates that take a good part of a second: a round through a tunnel takes some fifty times as long
LONG = {**SHORT, "updates": "4000", "split": "2000"}
TUNNELLED = {**SHORT, "updates": "1000", "split": "500"}
EMULATED = {"emulators": {"aarch64-linux": "qemu-aarch64-static"}}
NEEDS_EMULATOR = shutil.which("qemu-aarch64-static") is None


def labels(text: str) -> set[str]:
    """The labels that some output names as such."""
    return {str(label) for label in Label if re.search(rf"(?<![a-z-]){label}: ", text)}


def passes(desk: Desk, lane: str, pods: Path, *nodes: SshNode) -> dict[str, Any]:
    """The lane passes, its bundle verifies and judges alike, and nothing is left on the nodes."""
    code, result, err = desk.run(lane, pods)
    assert (code, result.get("verdict")) == (0, "pass"), (result, err)
    sound(result)
    assert_clean(*nodes)
    return result


def sound(result: dict[str, Any]) -> Path:
    """The bundle verifies by its seal, judging repeats the verdict, and the journal does nothing twice."""
    bundle = Path(result["bundle"])
    assert verify(bundle, seal=result["seal"]) == ()
    judged = judge_bundle(bundle)
    assert judged.agrees, judged.differences
    journal_is_sound(bundle)
    return bundle


def journal_is_sound(bundle: Path) -> None:
    """No finished step was begun again, and no launch started twice."""
    finished: Counter[str] = Counter()
    launched: Counter[tuple[str, int, str]] = Counter()
    for event in events(bundle):
        kind, data = event["type"], event["data"]
        if kind == "orch.step.started":
            assert finished[data["step"]] == 0, "a finished step was begun again"
        elif kind == "orch.step.finished":
            finished[data["step"]] += 1
        elif kind == "orch.launch.started":
            launched[data["step"], data["attempt"], data["launch"]] += 1
    assert set(finished.values()) <= {1}, finished
    assert set(launched.values()) <= {1}, launched


def refused(desk: Desk, lane: str, pods: Path, label: str, *, code: int = 1) -> str:
    """The lane ends with exactly this label; gives all that was said."""
    got, result, err = desk.run(lane, pods)
    said = err + json.dumps(result)
    assert got == code, (got, said)
    assert labels(said) == {label}, said
    return said


def when(
    desk: Desk, controller: subprocess.Popen[str], condition: Callable[[list[dict[str, Any]]], bool]
) -> bool:
    """Waits until the newest bundle's events meet a condition; False if the controller ended first."""
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit:
        over = controller.poll() is not None
        bundles = desk.bundles()
        if bundles and condition(events(bundles[-1])):
            return True
        if over:
            return False
        time.sleep(0.002)
    raise AssertionError("it never came")


def has(kind: str, **data: Any) -> Callable[[list[dict[str, Any]]], bool]:
    """Whether there is an event of this type with these data."""

    def condition(found: list[dict[str, Any]]) -> bool:
        return any(
            event["type"] == f"orch.{kind}" and data.items() <= event["data"].items() for event in found
        )

    return condition
