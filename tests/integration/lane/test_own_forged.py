"""Bundles of a program of one's own, edited and sealed again: what they then claim never happened."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lane_workshop import Workshop
from test_forged_bundles import seal_again
from test_never_happened import edit, exits_were_other, journal, launch, without
from test_own_files import lane

from evidence.digest import sha256_bytes
from orchestrator.qualify.judge import judge_bundle

Forge = Callable[[Path], None]
STATE = "teller1/checkpoint/state"
SETUP = (
    "  checkpoint: files",
    "  setup: [[mkdir, '{setup}/a'], [test, -d, '{setup}/a']]\n  checkpoint: files",
)


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Bundles that passed, of a run and of one that goes on from it; made once."""
    workshop = Workshop(tmp_path_factory.mktemp("own"), tmp_path_factory.mktemp("cache"))
    lane(workshop)
    spec = workshop.folder / "run.yaml"
    spec.write_text(spec.read_text().replace(*SETUP))
    code, first = workshop.run("lane.yaml")
    assert code == 0, first
    more = workshop.folder / "lane.yaml"
    more.write_text(more.read_text().replace("updates: 6", "updates: 9").replace("split: 4", "split: 7"))
    code, second = workshop.run("lane.yaml", "--from", f"{first['bundle']}:checkpoint@4")
    assert code == 0, second
    return Path(first["bundle"]), Path(second["bundle"])


def flip(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def called(name: str, **changed: Any) -> Forge:
    return lambda bundle: launch(bundle, name, lambda value: value["starts"][0]["binding"].update(changed))


def file(name: str, change: Callable[[Path], None]) -> Forge:
    return lambda bundle: change(bundle / "steps" / name)


def a_script_was_another(bundle: Path) -> None:
    """The very words of the script that ran, in its copy."""
    script = bundle / "specs/count.py"
    script.write_bytes(script.read_bytes() + b"# honest\n")


def sent(name: str) -> Forge:
    def change(value: Any) -> None:
        value["starts"][0].update(executable_sha256="0" * 64, node_sha256="0" * 64)

    return lambda bundle: launch(bundle, name, change)


def refused_without_a_change(bundle: Path) -> None:
    placed = bundle / "steps/refusals/1/changed-byte/placed/teller1/state"
    for path in placed.iterdir():
        shutil.copyfile(bundle / "steps/refusals/1/base" / STATE / path.name, path)


def refused_in_other_words(bundle: Path) -> None:
    for role in ("teller1", "teller2"):
        (bundle / "steps/refusals/1/truncated" / role / "stderr").write_bytes(b"oh")


def a_control_was_left_out(bundle: Path) -> None:
    shutil.rmtree(bundle / "steps/refusals/1/truncated")
    about = ("launch", "truncated")
    journal(bundle, lambda events: [event for event in events if about not in event.data.items()])


def only_one_update(bundle: Path) -> None:
    for role in ("teller1", "teller2"):
        source = bundle / "steps/refusals/1/base" / role
        for name in ("run-1", "run-2"):
            target = bundle / "steps/uninterrupted/1" / name / role
            shutil.rmtree(target)
            shutil.copytree(source, target)


def parent(change: Callable[[Any], None], **named: Any) -> Forge:
    """Another parent, and a journal that begins with it."""

    def forge(bundle: Path) -> None:
        edit(bundle / "parent/parent.json", change)
        sha256 = sha256_bytes((bundle / "parent/parent.json").read_bytes())
        journal(
            bundle,
            lambda events: [
                replace(events[0], data={**events[0].data, "parent_sha256": sha256, **named}),
                *events[1:],
            ],
        )

    return forge


def another_state(bundle: Path) -> None:
    flip(bundle / "parent/checkpoint/teller1/state/log")


def listed_again(bundle: Path) -> None:
    """Another state, named by its own digest."""
    another_state(bundle)
    name = "checkpoint/teller1/state/log"
    digest = sha256_bytes((bundle / "parent" / name).read_bytes())
    parent(lambda value: value["files"].update({name: digest}))(bundle)


def begun_at_the_beginning(bundle: Path) -> None:
    """Nothing says any more that it went on from somewhere."""
    shutil.rmtree(bundle / "parent")

    def change(events: list[Any]) -> list[Any]:
        data = {key: value for key, value in events[0].data.items() if not key.startswith("parent")}
        return [replace(events[0], data=data), *events[1:]]

    journal(bundle, change)


FORGERIES: dict[str, tuple[int, Forge]] = {
    "another script": (0, a_script_was_another),
    "other words": (0, called("uninterrupted/1/run-1", argv=["true"])),
    "another environment": (0, called("uninterrupted/1/run-1", environment=[])),
    "more inherited": (0, called("split/1/part-2", inherit=["LD_PRELOAD"])),
    "not resumed": (0, called("split/1/part-2", resume=False)),
    "no limit": (0, called("refusals/1/cut", file_blocks=-1)),
    "another limit": (0, called("refusals/1/cut", file_blocks=1)),
    "another deadline": (0, called("uninterrupted/1/run-1", run_ms=1)),
    "another target": (0, called("uninterrupted/1/run-1", target=5)),
    "other files": (0, sent("uninterrupted/1/run-1")),
    "other setup files": (0, sent("build/1/setup-1")),
    "another setup command": (0, called("build/1/setup-1", argv=["true"])),
    "setup failed": (0, file("build/1/setup-2/teller1/exit", lambda path: path.write_bytes(b"1\n"))),
    "a setup command was left out": (0, lambda bundle: shutil.rmtree(bundle / "steps/build/1/setup-2")),
    "a run's state": (0, file(f"uninterrupted/1/run-2/{STATE}/log", flip)),
    "a run's progress": (0, file("uninterrupted/1/run-2/teller2/progress", flip)),
    "a resumed state": (0, file(f"split/1/part-2/{STATE}/numbers.json", flip)),
    "the state at the split": (0, file(f"split/1/part-1/{STATE}/log", flip)),
    "what was published again": (0, file(f"evaluate/1/fresh/{STATE}/sum", flip)),
    "a refusal's words": (0, refused_in_other_words),
    "a refusal's end": (0, file("refusals/1/truncated/teller1/exit", lambda path: path.write_bytes(b"0\n"))),
    "nothing was changed": (0, refused_without_a_change),
    "a control was left out": (0, a_control_was_left_out),
    "only one update": (0, only_one_update),
    "no processes": (0, without("orch.job.started")),
    "no launches": (0, without("orch.launch.started")),
    "other exit codes": (0, exits_were_other),
    "another state to go on from": (1, another_state),
    "another state, listed": (1, listed_again),
    "another parent": (
        1,
        lambda bundle: edit(bundle / "parent/parent.json", lambda it: it.update(run_id="x")),
    ),
    "a later version": (1, parent(lambda value: value.update(version=5))),
    "no parent": (1, begun_at_the_beginning),
}


@pytest.mark.parametrize(("which", "forge"), FORGERIES.values(), ids=FORGERIES)
def test_what_never_happened_is_no_pass(
    passed: tuple[Path, Path], tmp_path: Path, which: int, forge: Forge
) -> None:
    bundle = tmp_path / passed[which].name
    shutil.copytree(passed[which], bundle)
    assert judge_bundle(bundle).agrees
    forge(bundle)
    seal_again(bundle)
    judgement = judge_bundle(bundle)
    assert judgement.verdict != "pass"
    assert not judgement.agrees
