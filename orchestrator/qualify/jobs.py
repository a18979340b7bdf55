"""The roles of a launch as jobs on their nodes: put there, started, looked at, stopped, collected.

Knows nodes and files; writes no journal and must not know what a launch is for. Every call may be repeated.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeVar

from evidence.digest import sha256_bytes
from evidence.names import fault
from orchestrator.build.bind import bind
from orchestrator.errors import Label
from orchestrator.oracle.reference import from_bits
from orchestrator.qualify.command import node as node_side
from orchestrator.qualify.command.digests import files_digest, listing_digest
from orchestrator.qualify.command.invocation import Invocation
from orchestrator.qualify.devices import CALLS
from orchestrator.qualify.launch import FROM_PLAN, Launch, Start, parse_progress
from orchestrator.qualify.session import Attempt, Session
from orchestrator.remote.base import Job, JobState, Remote, RemoteError

T = TypeVar("T")
LOOK_S = 0.004
TAIL_BYTES = 512
STOP_GRACE_S = 1.0
SETTLE_S = 20.0  # for all nodes together to give what they have, when an attempt is given up
OUTPUTS = ("job/stdout", "job/stderr", "progress", "listening")


@dataclass(frozen=True)
class Left:
    """What roles left behind on one node.

    Attributes:
        states: role -> where it stands.
        files: place in the bundle -> bytes.
    """

    states: Mapping[str, JobState]
    files: Mapping[Path, bytes]


@dataclass(frozen=True)
class Jobs:
    """The jobs of one attempt at one step."""

    session: Session
    attempt: Attempt

    def of(self, launch: str, start: Start) -> Job:
        """The job of one role: where it works, what runs there, and for how long at most."""
        root = self.session.roots[self.session.placement[start.role]]
        folder = root / start.role / f"{self.attempt.step}-{self.attempt.number}-{launch}"
        if isinstance(start.binding, Invocation):
            return node_side.job(start, folder, root)
        target = self.session.view.targets_of(start.program)[start.role]
        emulator = self.session.emulators.get((start.role, target))
        binding = start.binding
        return Job(
            folder=folder,
            argv=(*([emulator] if emulator else []), str(folder / "role"), str(folder)),
            deadline_s=(binding.connect_ms + binding.run_ms) // 1000 + 5,
        )

    def each(self, launch: Launch, do: Callable[[Remote, Job], T]) -> dict[str, T]:
        """Role -> what this gives on its node, on all nodes at once.

        Raises:
            RemoteError: a node refuses, or is lost.
            StopLaneError: the lane is to end now.
        """
        tasks = [
            (
                self.session.placement[start.role],
                partial(do, self.session.node(start.role), self.of(launch.name, start)),
            )
            for start in launch.starts
        ]
        done = self.session.crew.each(tasks)
        return {start.role: result for start, result in zip(launch.starts, done, strict=True)}

    def place(self, launch: Launch) -> Launch:
        """Puts executables and files into the work folders; the digests are of what lies on the nodes."""
        tasks = [
            (self.session.placement[start.role], partial(self._place, launch.name, start))
            for start in launch.starts
        ]
        return replace(launch, starts=tuple(self.session.crew.each(tasks)))

    def _place(self, launch: str, start: Start) -> Start:
        node = self.session.node(start.role)
        folder = self.of(launch, start).folder
        is_command = isinstance(start.binding, Invocation)
        found = {}
        for file in start.files:
            data = self._file_bytes(start, file.source)
            is_program = is_command and "/" not in file.name
            found[file.name] = node.put(data, folder / file.name, executable=is_program)
            if found[file.name] != file.sha256:
                raise RemoteError(
                    f"{node.name}: {folder / file.name} is not what was sent (expected {file.sha256})"
                )
        if is_command:
            sent, there = files_digest(start.files), listing_digest(found)
        else:
            executable = bind(self.session.programs[start.role, start.program], start.bound)
            sent, there = sha256_bytes(executable), node.put(executable, folder / "role", executable=True)
        return replace(start, node=node.name, executable_sha256=sent, node_sha256=there)

    def _file_bytes(self, start: Start, source: str) -> bytes:
        """Bytes of a placed file: sample words of the plan that is started, or a file of the bundle."""
        view = self.session.view
        if source == FROM_PLAN:
            return view.samples(start.role, start.program)
        return view.bytes(source) or b""

    def inspect(self, launch: Launch) -> dict[str, JobState]:
        """Role -> where its job stands."""
        return self.each(launch, lambda node, job: node.inspect(job))

    def progress(self, launch: Launch) -> dict[str, tuple[int, float]]:
        """Role -> its last update and the loss that this read, of roles that have made one."""
        tails = self.each(launch, lambda node, job: node_side.tail(node, job.folder, TAIL_BYTES))
        lasts = {start.role: _last(start, tails[start.role]) for start in launch.starts}
        return {role: last for role, last in lasts.items() if last is not None}

    def stop(self, launch: Launch) -> None:
        """Ends our own roles: TERM, a grace, KILL."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.each(launch, partial(_signal, number))
            until = time.monotonic() + STOP_GRACE_S
            while time.monotonic() < until:
                if all(state.status != "running" for state in self.inspect(launch).values()):
                    return
                time.sleep(LOOK_S)

    def collect(self, launch: Launch, states: Mapping[str, JobState]) -> dict[Path, bytes]:
        """What every role left, by its place in the bundle.

        Of a role without an exit code something may still run, its runner's watchdog at least: it is ended.
        """
        tasks = [
            (
                self.session.placement[start.role],
                partial(self._left_behind, launch, start, states[start.role]),
            )
            for start in launch.starts
        ]
        files: dict[Path, bytes] = {}
        for found in self.session.crew.each(tasks):
            files |= found
        return files

    def settle(self, launch: Launch) -> tuple[Left, dict[str, str]]:
        """Stops and collects on every node that answers.

        Returns:
            What was left there, and node -> why nothing came from it.
        """
        by_node: dict[str, list[Start]] = {}
        for start in launch.starts:
            by_node.setdefault(self.session.placement[start.role], []).append(start)
        tasks = [
            (node, partial(self._settle, node, replace(launch, starts=tuple(starts))))
            for node, starts in by_node.items()
        ]
        states: dict[str, JobState] = {}
        files: dict[Path, bytes] = {}
        missing: dict[str, str] = {}
        for node, found in zip(by_node, self.session.crew.settle(tasks, SETTLE_S), strict=True):
            if isinstance(found, RemoteError):
                missing[node] = str(found)
            else:
                states |= found.states
                files |= found.files
        return Left(states, files), missing

    def _settle(self, name: str, launch: Launch) -> Left:
        """One node's part: nothing that is on its way begins, what runs is ended, what is there collected."""
        node = self.session.nodes[name]
        jobs = {start.role: self.of(launch.name, start) for start in launch.starts}
        for job in jobs.values():
            node.prevent(job)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for job in jobs.values():
                node.signal(job, number)
            until = time.monotonic() + STOP_GRACE_S
            while any(node.inspect(job).status == "running" for job in jobs.values()):
                if time.monotonic() > until:
                    break
                time.sleep(LOOK_S)
        states = {role: node.inspect(job) for role, job in jobs.items()}
        files: dict[Path, bytes] = {}
        for start in launch.starts:
            files |= self._left_behind(launch, start, states[start.role])
        return Left(states, files)

    def _left_behind(self, launch: Launch, start: Start, state: JobState) -> dict[Path, bytes]:
        """Outputs, exit code, progress and checkpoint of one role, by their place in the bundle."""
        node, job = self.session.node(start.role), self.of(launch.name, start)
        if state.status != "exited":
            node.end(job.folder)
        folder = self.attempt.folder / launch.name / start.role
        files = {}
        if state.exit is not None:
            files[folder / "exit"] = f"{state.exit}\n".encode()
        if isinstance(start.binding, Invocation):
            left = node_side.collect(node, job.folder, self.session.secrets)
            return files | {folder / name: data for name, data in left}
        is_simulated = start.binding.device is not None and start.binding.device.is_simulated
        for name in (*OUTPUTS, *([CALLS] if is_simulated else [])):
            data = node.get(job.folder / name)
            if data is not None:
                files[folder / PurePosixPath(name).name] = data
        return files | self._checkpoint(launch, start, "")

    def published(self, launch: Launch, version: int) -> dict[Path, bytes]:
        """A version that was published while its roles still run; what is being written is left."""
        tasks = [
            (
                self.session.placement[start.role],
                partial(self._checkpoint, launch, start, f"{version}."),
            )
            for start in launch.starts
        ]
        files: dict[Path, bytes] = {}
        for found in self.session.crew.each(tasks):
            files |= found
        return files

    def _checkpoint(self, launch: Launch, start: Start, begins: str) -> dict[Path, bytes]:
        """What a role has in its checkpoint folder and the bundle has not, of names that begin so."""
        node, job = self.session.node(start.role), self.of(launch.name, start)
        folder = self.attempt.folder / launch.name / start.role / "checkpoint"
        found = {}
        for name in node.list(job.folder / "checkpoint"):
            if wrong := fault(name):
                raise RemoteError(
                    f"{node.name}: a checkpoint's file cannot be kept (got {wrong}, expected a plain name)",
                    Label.NOT_PLAIN,
                )
            if not name.startswith(begins) or (begins and name.endswith(".tmp")):
                continue
            data = None if (folder / name).exists() else node.get(job.folder / "checkpoint" / name)
            if data is not None:
                found[folder / name] = data
        return found


def _last(start: Start, tail: bytes) -> tuple[int, float] | None:
    """The last update in the end of a role's progress, whose first line may be cut in half."""
    if isinstance(start.binding, Invocation):
        return node_side.last_line(tail)
    lines = parse_progress(tail)
    try:
        return (lines[-1].version, from_bits(lines[-1].loss)) if lines and lines[-1].version > 0 else None
    except ValueError:
        return None  # its judge will say so


def _signal(number: int, node: Remote, job: Job) -> None:
    node.signal(job, number)
