"""A lane's whole time, beside that of its programs alone.

The lane is `orch run` from its start to its end, with programs in the cache from a run before. Its programs
alone are the very executables of such a run, with the same files beside them, launched in the same order and
waited for, launch by launch, with nothing around them: no runner, no journal, no judge. What the journal says
that its launches took, from `launch.started` to `launch.finished`, is shown too: what that has more than the
programs alone is starting, polling and collecting.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.content import CONTENT, orch
from benchmarks.measure import Row, quietly, row, take_turns
from evidence.event import Event
from evidence.stream import read

TURNS = 5
LONGER_UPDATES, LONGER_SPLIT = 4000, 2400
AIM = "1.3"
FIRST_SIGNAL_EXIT = 128


def run(folder: Path) -> tuple[Row, ...]:
    lane = CONTENT / "lanes/diabetes.yaml"
    text = lane.read_text(encoding="utf-8")
    shutil.copytree(CONTENT / "specs", folder / "specs")
    longer = folder / "lanes" / "longer.yaml"
    longer.parent.mkdir()
    changes = (
        ("updates: 60", f"updates: {LONGER_UPDATES}"),
        ("split: 36", f"split: {LONGER_SPLIT}"),
    )
    for old, new in changes:
        if old not in text:
            raise ValueError(f"{lane} has no {old!r}")
        text = text.replace(old, new)
    longer.write_text(text, encoding="utf-8")
    return *_compare(folder, lane, "60 updates"), *_compare(folder, longer, f"{LONGER_UPDATES} updates")


def _compare(folder: Path, lane: Path, name: str) -> tuple[Row, ...]:
    whole, alone, journal = f"a lane of {name}", "its programs alone", "its launches, by its journal"
    runner = _Runner(folder, lane)
    launches = tuple(_launches(runner.run(keep=True)))

    def run_lane() -> Mapping[str, float]:
        begun = time.perf_counter()
        bundle = runner.run()
        return {whole: time.perf_counter() - begun, journal: _journalled(bundle)}

    turns = take_turns((run_lane, lambda: {alone: _replay(folder / "replay", launches)}), TURNS)
    return row(turns, whole, alone, AIM), row(turns, whole, journal)


@dataclass(frozen=True)
class _Runner:
    """`orch run` of one lane, with everything that it writes under one folder."""

    folder: Path
    lane: Path

    def run(self, *, keep: bool = False) -> Path:
        """Run the lane; gives its bundle."""
        bundles, database = self.folder / "runs", f"sqlite:///{self.folder}/tracker.sqlite3"
        argv = [*orch(), "run", str(self.lane), "--json", "--bundles", str(bundles), "--db", database]
        folders = {"TMPDIR": str(self.folder), "XDG_CACHE_HOME": str(self.folder / "cache")}
        said = quietly([*argv, *(["--keep"] if keep else [])], self.folder, **folders)
        return Path(json.loads(said)["bundle"])


@dataclass(frozen=True)
class _Launch:
    """One launch as the journal has it: when it began and ended, and its roles' folders and exit codes."""

    name: tuple[str, ...]
    started: Event
    finished: Event

    @property
    def exits(self) -> Mapping[str, int]:
        return {role: int(code) for role, code in self.finished.data["exits"].items()}

    @property
    def folders(self) -> Mapping[str, Path]:
        return {role: Path(folder) for role, folder in self.started.data["jobs"].items()}


def _launches(bundle: Path) -> Iterator[_Launch]:
    started: dict[tuple[str, ...], Event] = {}
    for event in read(bundle / "stream.jsonl"):
        name = tuple(str(event.data.get(key)) for key in ("step", "attempt", "launch"))
        if event.type == "orch.launch.started":
            started[name] = event
        elif event.type == "orch.launch.finished":
            yield _Launch(name, started[name], event)


def _journalled(bundle: Path) -> float:
    """Seconds in which at least one launch was open: one control's launches overlap."""
    total = until = 0
    for launch in sorted(_launches(bundle), key=lambda launch: launch.started.monotonicns):
        total += max(launch.finished.monotonicns - max(launch.started.monotonicns, until), 0)
        until = max(launch.finished.monotonicns, until)
    return total / 1e9


def _replay(folder: Path, launches: tuple[_Launch, ...]) -> float:
    """Start and wait for every launch's programs in fresh folders, in the journal's order; seconds."""
    for launch in launches:
        for role, before in launch.folders.items():
            work = folder.joinpath(*launch.name, role)
            work.mkdir(parents=True)
            for name in ("role", "samples"):
                shutil.copy(before / name, work / name)
            if (before / "restore").is_dir():
                shutil.copytree(before / "restore", work / "restore")
    moments = sorted(
        moment
        for launch in launches
        for moment in (
            (launch.started.sequence, "start", launch),
            (launch.finished.sequence, "finish", launch),
        )
    )
    running: dict[tuple[str, ...], dict[str, subprocess.Popen[bytes]]] = {}
    begun = time.perf_counter()
    for _, what, launch in moments:
        work = folder.joinpath(*launch.name)
        if what == "start":
            for other in running:
                _await_listener(folder.joinpath(*other))
            running[launch.name] = {role: _start(work / role) for role in launch.folders}
        else:
            _finish(launch, running.pop(launch.name))
    seconds = time.perf_counter() - begun
    shutil.rmtree(folder)
    return seconds


def _start(work: Path) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen([str(work / "role"), str(work)], stdin=quiet, stdout=quiet, stderr=quiet)


def _await_listener(work: Path) -> None:
    """A launch that begins while another is open needs the other's port to be taken."""
    while not any(work.glob("*/listening")):
        time.sleep(0.0005)


def _finish(launch: _Launch, processes: Mapping[str, subprocess.Popen[bytes]]) -> None:
    for role, process in processes.items():
        expected = launch.exits[role]
        if expected > FIRST_SIGNAL_EXIT:  # the lane ended it
            process.terminate()
            expected = FIRST_SIGNAL_EXIT - expected
        if (code := process.wait()) != expected:
            raise ChildProcessError(f"{launch.name} {role}: exit code {code} alone, {expected} in the lane")
