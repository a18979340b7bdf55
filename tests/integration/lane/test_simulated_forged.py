"""A simulated run's bundle, edited consistently so that it claims what did not happen: no step of it passes.

Whoever edits goes all the way in the files: digests, bindings, executables and programs' list are made anew.
The acting side's journal has the digest of whatever moved, and that is what gives each of these away.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_never_happened import edit, journal

from evidence.canonical import dumps, loads
from evidence.digest import sha256_file
from evidence.event import Event
from orchestrator.build.bind import bind
from orchestrator.qualify.judge import judge_step
from orchestrator.qualify.launch import Launch
from orchestrator.qualify.steps import ALL
from orchestrator.qualify.traces import stand_in_traces
from orchestrator.qualify.view import View

Forge = Callable[[Path], None]
BUILD = "steps/build/1"
CUDA = "standin/x86_64-linux/libcuda.so.1"


@pytest.fixture
def forged(passed: Callable[..., tuple[Path, dict[str, Any]]], tmp_path: Path) -> Path:
    """A copy of a simulated lane's bundle, to edit."""
    return Path(
        shutil.copytree(passed("lanes/samples-gpu.yaml", "--pods", "simulated")[0], tmp_path / "forged")
    )


def bound_again(bundle: Path) -> None:
    """Executables as the bundle's programs and bindings give them, in every launch."""
    view = View(bundle)
    for path in bundle.glob("steps/*/*/*/launch.json"):
        found, starts = Launch.read(path.parent), []
        for start in found.starts:
            program = view.program(start.role, start.program)
            assert program is not None
            made = hashlib.sha256(bind(program, start.bound)).hexdigest()
            starts.append(replace(start, executable_sha256=made, node_sha256=made))
        Launch(found.name, tuple(starts)).write(path.parent)


def pinned_again(bundle: Path) -> None:
    """The stand-in's files as they are now, in `cards.json`, in the first event and in every launch."""

    def pin(value: Any) -> None:
        value["files"] = {name: sha256_file(bundle / name) for name in value["files"]}

    def place(value: Any) -> None:
        for file in (file for start in value["starts"] for file in start["files"]):
            if file["source"] != "plan":
                file["sha256"] = sha256_file(bundle / file["source"])

    edit(bundle / "cards.json", pin)
    for path in bundle.glob("steps/*/*/*/launch.json"):
        edit(path, place)
    pinned = sha256_file(bundle / "cards.json")
    journal(
        bundle,
        lambda events: [
            replace(each, data={**each.data, "cards_sha256": pinned}) if "cards_sha256" in each.data else each
            for each in events
        ],
    )


def replaced(pattern: str, old: bytes, new: bytes) -> Forge:
    def change(bundle: Path) -> None:
        paths = [path for path in bundle.glob(pattern) if old in path.read_bytes()]
        assert paths
        for path in paths:
            path.write_bytes(path.read_bytes().replace(old, new))

    return change


def program_takes_place_of(there: str, here: str) -> Forge:
    def change(bundle: Path) -> None:
        shutil.copy(bundle / BUILD / here, bundle / BUILD / there)
        edit(bundle / BUILD / "programs.json", lambda value: value.update({there: value[here]}))
        bound_again(bundle)

    return change


def program_is_another(bundle: Path) -> None:
    path = bundle / BUILD / "programs/worker.elf"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    sha256 = sha256_file(path)
    edit(bundle / BUILD / "programs.json", lambda value: value["programs/worker.elf"].update(sha256=sha256))
    bound_again(bundle)


def shadowed_is_copied(bundle: Path) -> None:
    """The host-shadow launch is the uninterrupted one: its words are the same, so only times are edited."""
    source, target = (bundle / "steps" / name for name in ("uninterrupted/1/run-1", "host-shadow/1/shadowed"))
    for path in source.glob("*/checkpoint/*.manifest.json"):
        value = loads(path.read_bytes())
        value["capture"]["time_ms"] += 400
        (target / path.relative_to(source)).write_bytes(dumps(value))
    for path in source.glob("*/stdout"):
        said = path.read_bytes().replace(b'"shadowed":false', b'"shadowed":true')
        (target / path.relative_to(source)).write_bytes(said)


def library_is_empty(bundle: Path) -> None:
    (bundle / CUDA).write_bytes(b"")
    pinned_again(bundle)


def cards_are_larger(bundle: Path) -> None:
    for path in (bundle / "standin/cards", *bundle.glob("steps/*/*/*/placed/*.cards")):
        path.write_text(path.read_text().replace("memory_mib=8192", "memory_mib=81920"))
    pinned_again(bundle)


def without_calls(control: str) -> Forge:
    def change(bundle: Path) -> None:
        for path in bundle.glob(f"steps/refusals/1/{control}/*/standin-calls"):
            path.unlink()

    return change


def counted(control: str, pattern: str, count: str) -> Forge:
    def change(bundle: Path) -> None:
        for path in bundle.glob(f"steps/refusals/1/{control}/*/standin-calls"):
            path.write_text(re.sub(pattern, count, path.read_text()))

    return change


ANSWERS = "steps/*/1/cards/local/*"
FORGERIES: dict[str, tuple[Forge, str, str]] = {
    "a role ran its program for another product": (
        program_takes_place_of("programs/worker.elf", "foreign-programs/worker.elf"),
        "build",
        "worker-program",
    ),
    "the product control had nothing foreign": (
        program_takes_place_of("foreign-programs/worker.elf", "programs/worker.elf"),
        "build",
        "worker-foreign-program",
    ),
    "another program ran": (program_is_another, "uninterrupted", "journal"),
    "nothing was shadowed": (shadowed_is_copied, "host-shadow", "journal"),
    "another stand-in": (library_is_empty, "evaluate", "journal"),
    "larger cards": (cards_are_larger, "split", "journal"),
    "another driver answered": (
        lambda bundle: [
            replaced(ANSWERS, b"580.126.20", b"580.126.99")(bundle),
            replaced("binding.json", b"580.126.20", b"580.126.99")(bundle),
        ],
        "preflight",
        "journal",
    ),
    "another look at the end": (
        replaced("steps/record/1/cards/local/xml.*", b"N/A", b"1"),
        "record",
        "journal",
    ),
    "a profile knew of more memory": (
        replaced("specs/specs/devices/*3070.yaml", b"8192 MiB", b"81920 MiB"),
        "record",
        "whole-run",
    ),
    "no card was asked for its UUID": (without_calls("device-uuid"), "refusals", "device-uuid-calls"),
    "memory was there, and kernels ran": (
        counted("device-memory", r"launches=\d{19}0", "launches=" + "0" * 19 + "7"),
        "refusals",
        "device-memory-calls",
    ),
    "no card was lost": (counted("device-lost", "error=719", "error=000"), "refusals", "device-lost-calls"),
}


@pytest.mark.parametrize(("forge", "step", "check"), FORGERIES.values(), ids=FORGERIES)
def test_what_no_stand_in_did_is_no_pass(forged: Path, forge: Forge, step: str, check: str):
    forge(forged)
    outcome = judge_step(View(forged), next(each for each in ALL if step == each.NAME))
    assert outcome.verdict == "fail"
    assert check in {each.name for each in outcome.checks if each.verdict == "fail"}


def of_stand_ins(event: Event) -> bool:
    return event.type.startswith("orch.remote.") and "standin" in dumps(event.data).decode()


@pytest.mark.parametrize("kind", ["orch.remote.put", "orch.remote.run", "orch.remote.get"])
def test_a_journal_in_which_a_stand_in_was_at_work_is_a_trace_of_it(forged: Path, kind: str):
    """All else is edited away but for one kind of event."""

    def change(events: list[Event]) -> list[Event]:
        first = replace(events[0], data={**events[0].data, "pods": "local"})
        return [first, *(each for each in events[1:] if each.type == kind or not of_stand_ins(each))]

    shutil.rmtree(forged / "standin")
    journal(forged, change)
    assert next(each for each in stand_in_traces(View(forged)) if each.startswith(f"stream.jsonl: {kind}"))


def test_a_role_may_be_called_as_a_stand_ins_folder_is(copied: Path):
    """Its work folders are no traces."""

    def renamed(event: Event) -> Event:
        return replace(event, data=loads(dumps(event.data).replace(b"/worker/", b"/standin/")))

    journal(copied, lambda events: [renamed(event) for event in events])
    assert b"/standin/" in (copied / "stream.jsonl").read_bytes()
    assert tuple(stand_in_traces(View(copied))) == ()
