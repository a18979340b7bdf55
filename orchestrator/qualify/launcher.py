"""Starts a launch on its nodes, waits, re-attaches after a lost controller, collects.

Knows jobs and the journal; must not know what a launch is for. Every call may be repeated: what the journal
says was done is not done again.
"""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from evidence.digest import sha256_bytes
from evidence.files import write_many
from orchestrator.build.bind import bind
from orchestrator.errors import Label
from orchestrator.oracle.reference import from_bits
from orchestrator.qualify.command import node as node_side
from orchestrator.qualify.command.digests import files_digest, listing_digest
from orchestrator.qualify.command.invocation import Invocation
from orchestrator.qualify.compose import Wanted, compose
from orchestrator.qualify.launch import FROM_PLAN, Launch, RoleRecord, Start, parse_progress, read_role
from orchestrator.qualify.session import Attempt, AttemptLostError, Session
from orchestrator.remote.base import Job, JobState, RemoteError

POLL_S = 0.004
TAIL_BYTES = 512
SECRET_BYTES = 16
REPORT_S = 0.1  # a person cannot read faster
STOP_GRACE_S = 1.0
MARGIN_S = 2.0  # beyond what deadlines allow, for a node that is slow to say so


@dataclass(frozen=True)
class Launcher:
    """Launches of one attempt at one step."""

    session: Session
    attempt: Attempt

    @property
    def folder(self) -> str:
        """The attempt's folder as the bundle's manifest names it."""
        return self.session.relative(self.attempt.folder)

    def run(self, wanted: Wanted, *, port_is_taken: bool = False) -> dict[str, RoleRecord]:
        """Starts a launch, or finds the one that an earlier controller started, and waits for its end.

        Args:
            wanted: what to start.
            port_is_taken: whether the port is meant to be in use; else a port that is taken loses the
                attempt, and the next one gets a new port.

        Raises:
            AttemptLostError: it was begun before and its roles cannot be found again, or its port was taken.
            StopLaneError: a limit or a person ended the lane; its roles are stopped and collected.
        """
        begun = self.begin(wanted)
        records = self.finish(begun)
        said = f"{Label.PORT_IN_USE}\n".encode()
        taken = [role for role, record in records.items() if record.stderr == said]
        if taken and not port_is_taken:
            port = begun.starts[0].binding.port
            raise AttemptLostError(f"port {port} of {taken[0]} was taken by someone else")
        return records

    def begin(self, wanted: Wanted) -> Launch:
        """Uploads, journals, starts. A launch that was begun before is taken up as it was written."""
        self.session.limits.check()
        folder = self.attempt.folder / wanted.name
        if self._journalled("launch.started", wanted.name):
            found = Launch.read(folder)
            if not self._journalled("launch.finished", wanted.name):
                self._reattach(found)
            return found
        self._keep({self.session.bundle / name: data for name, data in wanted.placed.items()})
        endpoints = self.session.view.wiring.endpoints(self._ports(wanted))
        secret = secrets.token_hex(SECRET_BYTES)
        asked = compose(self.session.view, wanted, endpoints=endpoints, secret=secret)
        launch = replace(asked, starts=tuple(self._place(asked.name, start) for start in asked.starts))
        launch.write(folder)
        jobs = {start.role: str(self._job(launch.name, start).folder) for start in launch.starts}
        self.session.emit("launch.started", self.attempt.step, self._about(launch.name, jobs=jobs))
        for start in launch.starts:
            self.session.node(start.role).start(self._job(launch.name, start))
        return launch

    def _ports(self, wanted: Wanted) -> dict[str, int]:
        """Node -> the port that its roles are bound to."""
        view = self.session.view
        if wanted.port is not None:
            port = wanted.port
        else:
            port = self.session.free_port(view.roles[0]) if len(view.roles) > 1 else 0
        return {view.wiring.root_node: port}

    def finish(self, launch: Launch) -> dict[str, RoleRecord]:
        """Waits until every role has ended, collects what they left, and journals it."""
        folder = self.attempt.folder / launch.name
        if self._journalled("launch.finished", launch.name):
            return {start.role: read_role(folder / start.role, start.role) for start in launch.starts}
        states = self._wait(launch)
        records = self._close(launch, states)
        lost = [role for role, state in states.items() if state.status != "exited"]
        if lost:
            raise AttemptLostError(f"no exit code came back from {', '.join(lost)}")
        return records

    def abandon(self, reason: str) -> None:
        """Ends and collects every launch that was begun and not collected: nothing goes on alone."""
        for event in self.session.stream.events:
            name = str(event.data.get("launch"))
            is_ours = event.type == "orch.launch.started" and self._about(name).items() <= event.data.items()
            if is_ours and not self.ended(name):
                launch = Launch.read(self.attempt.folder / name)
                for start in launch.starts:
                    self.session.node(start.role).prevent(self._job(name, start))
                self.stop(launch)
                self._close(launch, self._inspect(launch), reason)

    def stop(self, launch: Launch) -> None:
        """Ends our own roles: TERM, a grace, KILL."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for start in launch.starts:
                self.session.node(start.role).signal(self._job(launch.name, start), number)
            deadline = time.monotonic() + STOP_GRACE_S
            while time.monotonic() < deadline:
                if all(state.status != "running" for state in self._inspect(launch).values()):
                    return
                time.sleep(POLL_S)

    def listening(self, launch: Launch, role: str) -> bool:
        """Waits until a role has bound its port; False if it ended first, is gone, or never gets so far."""
        start = next(start for start in launch.starts if start.role == role)
        node, job = self.session.node(role), self._job(launch.name, start)
        given_up = self._given_up(launch)
        while node.inspect(job).status == "running" and time.monotonic() < given_up:
            self.session.limits.check()
            if node.get(job.folder / "listening") is not None:
                return node.inspect(job).status == "running"
            time.sleep(POLL_S)
        return False

    def ended(self, launch: str) -> bool:
        """Whether the journal says that the launch of this name was collected."""
        return self._journalled("launch.finished", launch)

    def running(self, launch: Launch) -> bool:
        """Whether every role of the launch still runs."""
        return all(state.status == "running" for state in self._inspect(launch).values())

    def _journalled(self, kind: str, launch: str, **more: object) -> bool:
        wanted = self._about(launch, **more)
        return any(
            event.type == f"orch.{kind}" and wanted.items() <= event.data.items()
            for event in self.session.stream.events
        )

    def _about(self, launch: str, **more: object) -> dict[str, object]:
        return {"step": self.attempt.step, "attempt": self.attempt.number, "launch": launch, **more}

    def _job(self, launch: str, start: Start) -> Job:
        root = self.session.roots[self.session.placement[start.role]]
        folder = root / start.role / f"{self.attempt.step}-{self.attempt.number}-{launch}"
        if isinstance(start.binding, Invocation):
            return node_side.job(start, folder, root)
        emulator = self.session.emulators.get(start.role)
        program = str(folder / "role")
        binding = start.binding
        return Job(
            folder=folder,
            argv=(*([emulator] if emulator else []), program, str(folder)),
            deadline_s=(binding.connect_ms + binding.run_ms) // 1000 + 5,
        )

    def _place(self, launch: str, start: Start) -> Start:
        """Puts executable and files into the work folder; the digests are of what lies on the node."""
        node = self.session.node(start.role)
        folder = self._job(launch, start).folder
        is_command = isinstance(start.binding, Invocation)
        found = {}
        for file in start.files:
            data = self._file_bytes(start.role, file.source)
            found[file.name] = node.put(data, folder / file.name, executable=is_command)
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

    def _file_bytes(self, role: str, source: str) -> bytes:
        """Bytes of a placed file: the plan's own sample words, or a file of the bundle."""
        view = self.session.view
        return view.samples(role) if source == FROM_PLAN else (view.bytes(source) or b"")

    def _inspect(self, launch: Launch) -> dict[str, JobState]:
        return {
            start.role: self.session.node(start.role).inspect(self._job(launch.name, start))
            for start in launch.starts
        }

    def _reattach(self, launch: Launch) -> None:
        states = self._inspect(launch)
        gone = [role for role, state in states.items() if state.status in ("absent", "lost")]
        if gone:
            verb = "is" if len(gone) == 1 else "are"
            reason = f"the controller was gone, and so {verb} {', '.join(gone)}"
            raise AttemptLostError(reason, counts=False)
        pids = {role: str(state.pid) for role, state in states.items()}
        self.session.emit("launch.reattached", self.attempt.step, self._about(launch.name, pids=pids))

    def _given_up(self, launch: Launch) -> float:
        """When a launch that begins now is waited for no longer, of `time.monotonic()`.

        The runner on the node ends a role at its deadline; this is for a runner that cannot.
        """
        longest = max(self._job(launch.name, start).deadline_s for start in launch.starts)
        return time.monotonic() + longest + _patience_s(launch)

    def _wait(self, launch: Launch) -> dict[str, JobState]:
        """Polls until every role has ended. One that outlives the others' end by its deadlines is stopped.

        A launch that was begun has started every role: one that is absent by now has lost its folder.
        """
        seen: set[str] = set()
        published: set[int] = set()
        first_end: float | None = None
        patience = _patience_s(launch)
        last_report = 0.0
        given_up = self._given_up(launch)
        while True:
            states = self._inspect(launch)
            self._journal_pids(launch, states, seen)
            ended = [state for state in states.values() if state.status != "running"]
            if len(ended) == len(states) or time.monotonic() > given_up:
                return states
            if ended and first_end is None:
                first_end = time.monotonic()
            if first_end is not None and time.monotonic() - first_end > patience:
                self.stop(launch)
                first_end = None
            self.session.limits.check()
            if time.monotonic() - last_report > REPORT_S:
                last_report = time.monotonic()
                self._report(launch, published)
            time.sleep(POLL_S)

    def _journal_pids(self, launch: Launch, states: Mapping[str, JobState], seen: set[str]) -> None:
        for role, state in states.items():
            if state.pid is None or role in seen:
                continue
            seen.add(role)
            if not self._journalled("job.started", launch.name, role=role):
                ticks = str(state.start_ticks)
                data = self._about(
                    launch.name, role=role, pid=state.pid, start_ticks=ticks, boot_id=state.boot_id
                )
                self.session.emit("job.started", self.attempt.step, data)

    def _report(self, launch: Launch, published: set[int]) -> None:
        """Tells the observer where the roles stand, and collects a checkpoint as soon as it is published."""
        versions: dict[str, tuple[int, float]] = {}
        for start in launch.starts:
            folder = self._job(launch.name, start).folder
            # the last lines are enough, and a first one cut in half parses as none
            tail = self.session.node(start.role).tail(folder / "progress", TAIL_BYTES)
            if isinstance(start.binding, Invocation):
                last = node_side.last_line(tail)
                versions |= {start.role: last} if last else {}
                continue
            lines = parse_progress(tail)
            if lines and lines[-1].version > 0:
                versions[start.role] = (lines[-1].version, from_bits(lines[-1].loss))
        if versions:
            self.session.observer.progress(self.attempt.step, launch.name, versions)
        at = launch.starts[0].binding.publish_at
        if at and at not in published and versions and max(version for version, _ in versions.values()) > at:
            published.add(at)
            for start in launch.starts:
                self._keep(self._checkpoint(launch, start, only=f"{at}."))

    def _close(
        self, launch: Launch, states: Mapping[str, JobState], reason: str = ""
    ) -> dict[str, RoleRecord]:
        """Collects what every role left, makes it durable, and only then journals the end.

        Of a role without an exit code something may still run, its runner's watchdog at least: it is ended.
        """
        folder = self.attempt.folder / launch.name
        files: dict[Path, bytes] = {}
        for start in launch.starts:
            if states[start.role].status != "exited":
                self.session.node(start.role).end(self._job(launch.name, start).folder)
            files |= self._left_behind(launch, start, states[start.role])
        self._keep(files)
        exits = {role: "none" if state.exit is None else str(state.exit) for role, state in states.items()}
        data = self._about(launch.name, exits=exits, reason=reason)
        self.session.emit("launch.finished", self.attempt.step, data)
        return {start.role: read_role(folder / start.role, start.role) for start in launch.starts}

    def _left_behind(self, launch: Launch, start: Start, state: JobState) -> dict[Path, bytes]:
        """Outputs, exit code, progress and checkpoint of one role, by their place in the bundle."""
        node, job = self.session.node(start.role), self._job(launch.name, start)
        folder = self.attempt.folder / launch.name / start.role
        files = {}
        for name in ("job/stdout", "job/stderr", "progress", "listening"):
            data = node.get(job.folder / name)
            if data is not None:
                files[folder / PurePosixPath(name).name] = data
        if state.exit is not None:
            files[folder / "exit"] = f"{state.exit}\n".encode()
        if isinstance(start.binding, Invocation):
            return files | {folder / name: data for name, data in node_side.collect(node, job.folder)}
        return files | self._checkpoint(launch, start)

    def _checkpoint(self, launch: Launch, start: Start, *, only: str = "") -> dict[Path, bytes]:
        """What a role has in its checkpoint folder and the bundle has not.

        Args:
            launch: it is running, or has ended.
            start: whose folder.
            only: how names begin; while a role runs, what it is still writing is not collected.
        """
        node, job = self.session.node(start.role), self._job(launch.name, start)
        folder = self.attempt.folder / launch.name / start.role / "checkpoint"
        found = {}
        for name in node.list(job.folder / "checkpoint"):
            if not name.startswith(only) or (only and name.endswith(".tmp")):
                continue
            data = None if (folder / name).exists() else node.get(job.folder / "checkpoint" / name)
            if data is not None:
                found[folder / name] = data
        return found

    def _keep(self, files: Mapping[Path, bytes]) -> None:
        for folder in {path.parent for path in files}:
            folder.mkdir(parents=True, exist_ok=True)
        write_many(self.session.withheld(self.attempt.step, files))


def _patience_s(launch: Launch) -> float:
    """How long a role may outlive the end of another: its peers notice within these deadlines."""
    return (
        max(max(start.binding.round_ms, start.binding.connect_ms) for start in launch.starts) / 1000
        + MARGIN_S
    )
