"""Starts a launch on its nodes, waits, re-attaches after a lost controller, collects.

Knows the journal; must not know what a launch is for. Every call may be repeated: what the journal says was
done is not done again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from evidence.files import write_many
from orchestrator.build.binding import Binding
from orchestrator.errors import Label
from orchestrator.qualify.compose import Wanted, compose
from orchestrator.qualify.endpoints import Endpoint, Ends, Ports, Way
from orchestrator.qualify.jobs import LOOK_S, Jobs
from orchestrator.qualify.launch import Launch, RoleRecord, read_role
from orchestrator.qualify.session import LISTEN_PORTS, Attempt, AttemptLostError, Session
from orchestrator.remote.base import JobState

SECRET_BYTES = 16
REPORT_S = 0.1  # a person cannot read faster
FAR_LOOK_S = 0.2  # between looks at nodes over a network, once a launch has lasted
MARGIN_S = 2.0  # beyond what deadlines allow, for a node that is slow to say so
TUNNELS_LOST = 3  # a tunnel may die so often before its death counts as a try of the step


@dataclass
class _Watch:
    """What was seen of a running launch, so that it is told and done once."""

    began: float = field(default_factory=time.monotonic)
    seen: set[str] = field(default_factory=set)
    published: set[int] = field(default_factory=set)
    is_idle_told: bool = False


@dataclass(frozen=True)
class Launcher:
    """Launches of one attempt at one step."""

    session: Session
    attempt: Attempt

    @property
    def folder(self) -> str:
        """The attempt's folder as the bundle's manifest names it."""
        return self.session.relative(self.attempt.folder)

    @cached_property
    def jobs(self) -> Jobs:
        """Its roles on their nodes."""
        return Jobs(self.session, self.attempt)

    def run(self, wanted: Wanted, *, port_is_taken: bool = False) -> dict[str, RoleRecord]:
        """Starts a launch, or finds the one that an earlier controller started, and waits for its end.

        Args:
            wanted: what to start.
            port_is_taken: whether the port is meant to be in use; else a port that is taken loses the
                attempt, and the next one gets a new port.

        Raises:
            AttemptLostError: it was begun before and its roles cannot be found again, or its port was taken.
            StopLaneError: a limit or a person ended the lane; its roles are stopped and collected.
            RemoteError: a node refuses, or is lost.
        """
        begun = self.begin(wanted)
        records = self.finish(begun)
        self._say_unmet(begun, records)
        said = f"{Label.PORT_IN_USE}\n".encode()
        taken = [role for role, record in records.items() if record.stderr == said]
        if taken and not port_is_taken:
            port = next(start.bound.port for start in begun.starts if start.role == taken[0])
            raise AttemptLostError(f"port {port} of {taken[0]} was taken by someone else")
        return records

    def _say_unmet(self, launch: Launch, records: Mapping[str, RoleRecord]) -> None:
        """Says what to look at where nodes that reach each other without us did not."""
        said = f"{Label.CONNECT_DEADLINE}\n".encode()
        unmet = tuple(role for role, record in records.items() if record.stderr == said)
        if not unmet or not self.session.view.wiring.parents:
            return
        ends = {start.role: _ends(start.bound) for start in launch.starts}
        if advice := self.session.view.wiring.advice(unmet, ends, LISTEN_PORTS):
            self.session.observer.note(advice)

    def begin(self, wanted: Wanted) -> Launch:
        """Uploads, journals, starts. A launch that was begun before is taken up as it was written."""
        self.session.limits.check()
        folder = self.attempt.folder / wanted.name
        if self._journalled("launch.started", wanted.name):
            found = Launch.read(folder)
            if not self._journalled("launch.finished", wanted.name):
                self._reattach(found)
            return found
        view = self.session.view
        self._keep({self.session.bundle / name: data for name, data in wanted.placed.items()})
        ends = view.wiring.ends(self._ports(wanted))
        asked = compose(view, wanted, ends=ends, secret=secrets.token_hex(SECRET_BYTES))
        launch = self.jobs.place(asked)
        launch.write(folder)
        jobs = {start.role: str(self.jobs.of(launch.name, start).folder) for start in launch.starts}
        self.session.emit("launch.started", self.attempt.step, self._about(launch.name, jobs=jobs))
        self.jobs.each(launch, lambda node, job: node.start(job))
        return launch

    def _ports(self, wanted: Wanted) -> Ports:
        """The ports that its roles are bound to; tunnels between their nodes are opened by the way."""
        session, wiring = self.session, self.session.view.wiring
        roles = session.view.roles if wanted.roles is None else wanted.roles
        named = {} if wanted.port is None else {session.view.roles[0]: wanted.port}
        # a parent that is not started has a port too: what dials it must be bound to one
        needed = {*roles, *(wiring.parents[role] for role in roles if role in wiring.parents)}
        asking = [role for role in wiring.listeners if role in needed and role not in named]
        listening = named | session.free_ports(asking)
        place = wiring.placement
        ways = {way: (place[way[1]], listening[way[1]]) for way in self._ways(roles)}
        if not ways:
            return Ports(listening)
        laid = session.wires.lay(self._key(wanted.name), session.crew, session.nodes, ways)
        return Ports(listening, laid)

    def _ways(self, roles: Iterable[str]) -> tuple[Way, ...]:
        """The tunnels that these roles need."""
        ways = self.session.view.wiring.ways
        return tuple(dict.fromkeys(ways[role] for role in roles if role in ways))

    def _key(self, launch: str) -> str:
        return f"{self.folder}/{launch}"

    def finish(self, launch: Launch) -> dict[str, RoleRecord]:
        """Waits until every role has ended, collects what they left, and journals it."""
        folder = self.attempt.folder / launch.name
        if not self._journalled("launch.finished", launch.name):
            states = self._wait(launch)
            for way, why in self.session.wires.lost(self._key(launch.name), _shortest_s(launch)).items():
                self._tunnel_lost(launch, way, why)
            self._keep(self.jobs.collect(launch, states))
            if versions := self.jobs.progress(launch):
                self._advanced(launch, versions)
            self._finished(launch, states)
            self.session.wires.take_up(self._key(launch.name))
        records = {start.role: read_role(folder / start.role, start.role) for start in launch.starts}
        lost = [role for role, record in records.items() if record.exit is None]
        if lost:
            raise AttemptLostError(f"no exit code came back from {', '.join(lost)}")
        if any(record.exit for record in records.values()):
            self._blame_tunnels(launch)
        return records

    def _blame_tunnels(self, launch: Launch) -> None:
        """A role that ended badly while its tunnel died says nothing of the program: the attempt is lost."""
        events = [event for event in self.session.stream.events if event.type == "orch.tunnel.lost"]
        ours = [event for event in events if self._about(launch.name).items() <= event.data.items()]
        if ours:
            before = sum(event.data["step"] == self.attempt.step for event in events)
            why = "; ".join(f"{event.data['node']}: {event.data['reason']}" for event in ours)
            raise AttemptLostError(f"a tunnel was lost: {why}", counts=before > TUNNELS_LOST)

    def _tunnel_lost(self, launch: Launch, way: Way, why: str) -> None:
        node, parent = way
        about = self._about(launch.name, node=node, to=parent, reason=why)
        self.session.emit("tunnel.lost", self.attempt.step, about)

    def abandon(self, reason: str) -> None:
        """Ends and collects every launch that was begun and not collected: nothing goes on alone.

        A node that does not answer leaves its roles to their own deadlines; which one is journalled.
        """
        for event in self.session.stream.events:
            name = str(event.data.get("launch"))
            is_ours = event.type == "orch.launch.started" and self._about(name).items() <= event.data.items()
            if is_ours and not self.ended(name):
                launch = Launch.read(self.attempt.folder / name)
                left, missing = self.jobs.settle(launch)
                self._keep(left.files)
                self._finished(launch, left.states, reason, missing)
        self.session.wires.take_up_all()

    def stop(self, launch: Launch) -> None:
        """Ends our own roles: TERM, a grace, KILL."""
        self.jobs.stop(launch)

    def listening(self, launch: Launch, role: str) -> bool:
        """Waits until a role has bound its port; False if it ended first, is gone, or never gets so far."""
        given_up = self._given_up(launch)
        while time.monotonic() < given_up:
            self.session.limits.check()
            marks = self.jobs.each(launch, lambda node, job: node.get(job.folder / "listening"))
            running = self.jobs.inspect(launch)[role].status == "running"
            if not running or marks[role] is not None:
                return running
            time.sleep(LOOK_S)
        return False

    def ended(self, launch: str) -> bool:
        """Whether the journal says that the launch of this name was collected."""
        return self._journalled("launch.finished", launch)

    def running(self, launch: Launch) -> bool:
        """Whether every role of the launch still runs."""
        return all(state.status == "running" for state in self.jobs.inspect(launch).values())

    def _journalled(self, kind: str, launch: str, **more: object) -> bool:
        wanted = self._about(launch, **more)
        return any(
            event.type == f"orch.{kind}" and wanted.items() <= event.data.items()
            for event in self.session.stream.events
        )

    def _about(self, launch: str, **more: object) -> dict[str, object]:
        return {"step": self.attempt.step, "attempt": self.attempt.number, "launch": launch, **more}

    def _reattach(self, launch: Launch) -> None:
        states = self.jobs.inspect(launch)
        gone = [role for role, state in states.items() if state.status in ("absent", "lost")]
        if gone:
            verb = "is" if len(gone) == 1 else "are"
            reason = f"the controller was gone, and so {verb} {', '.join(gone)}"
            raise AttemptLostError(reason, counts=False)
        ways = self._ways(states)
        for way in ways:
            self._tunnel_lost(launch, way, "the controller that carried it was gone")
        if ways and any(state.status == "running" for state in states.values()):
            raise AttemptLostError("the controller was gone, and its tunnels with it", counts=False)
        pids = {role: str(state.pid) for role, state in states.items()}
        self.session.emit("launch.reattached", self.attempt.step, self._about(launch.name, pids=pids))

    def _given_up(self, launch: Launch) -> float:
        """When a launch that begins now is waited for no longer, of `time.monotonic()`.

        The runner on the node ends a role at its deadline; this is for a runner that cannot.
        """
        longest = max(self.jobs.of(launch.name, start).deadline_s for start in launch.starts)
        return time.monotonic() + longest + _patience_s(launch)

    def _wait(self, launch: Launch) -> dict[str, JobState]:
        """Polls until every role has ended. One that outlives the others' end by its deadlines is stopped.

        A launch that was begun has started every role: one that is absent by now has lost its folder.
        """
        watch = _Watch()
        first_end: float | None = None
        patience = _patience_s(launch)
        last_report = watch.began
        given_up = self._given_up(launch)
        while True:
            states = self.jobs.inspect(launch)
            self._journal_pids(launch, states, watch)
            ended = [state for state in states.values() if state.status != "running"]
            if len(ended) == len(states) or time.monotonic() > given_up:
                return states
            if ended and first_end is None:
                first_end = time.monotonic()
            if first_end is not None and time.monotonic() - first_end > patience:
                self.stop(launch)
                first_end = None
            self.session.limits.check()
            self.session.beat()
            if time.monotonic() - last_report > REPORT_S:
                last_report = time.monotonic()
                self._report(launch, watch)
            self._rest(time.monotonic() - watch.began)

    def _rest(self, lasted_s: float) -> None:
        """Between two looks: shortly on this machine; on others the longer the longer a launch lasts."""
        is_far = self.session.view.pods is not None
        time.sleep(min(FAR_LOOK_S, max(LOOK_S, lasted_s / 20)) if is_far else LOOK_S)

    def _journal_pids(self, launch: Launch, states: Mapping[str, JobState], watch: _Watch) -> None:
        for role, state in states.items():
            if state.pid is None or role in watch.seen:
                continue
            watch.seen.add(role)
            if not self._journalled("job.started", launch.name, role=role):
                ticks = str(state.start_ticks)
                data = self._about(
                    launch.name, role=role, pid=state.pid, start_ticks=ticks, boot_id=state.boot_id
                )
                self.session.emit("job.started", self.attempt.step, data)

    def _report(self, launch: Launch, watch: _Watch) -> None:
        """Tells the observer where the roles stand, and collects a checkpoint as soon as it is published."""
        versions = self.jobs.progress(launch)
        if versions:
            self.session.observer.progress(self.attempt.step, launch.name, versions)
            self._advanced(launch, versions)
        else:
            self._say_if_idle(launch, watch)
        at = launch.starts[0].binding.publish_at
        if at and at not in watch.published and versions and max(made for made, _ in versions.values()) > at:
            watch.published.add(at)
            self._keep(self.jobs.published(launch, at))

    def _advanced(self, launch: Launch, versions: Mapping[str, tuple[int, float]]) -> None:
        """Journals, once, that a launch was seen to make a real update; from then on it is left alone."""
        if not self._journalled("launch.advanced", launch.name):
            updates = {role: version for role, (version, _) in versions.items()}
            about = self._about(launch.name, updates=updates)
            self.session.emit("launch.advanced", self.attempt.step, about)

    def _say_if_idle(self, launch: Launch, watch: _Watch) -> None:
        """Says, once, that a training launch has made no update in the time that its first one may take."""
        lasted_s = time.monotonic() - watch.began
        binding = launch.starts[0].binding
        makes_none = isinstance(binding, Binding) and binding.mode == "evaluate"
        if not makes_none and not watch.is_idle_told and lasted_s > _patience_s(launch):
            watch.is_idle_told = True
            about = f"{self.attempt.step} {launch.name}"
            self.session.observer.note(f"{about}: no update in {lasted_s:.0f} s; its deadlines will end it")

    def _finished(
        self,
        launch: Launch,
        states: Mapping[str, JobState],
        reason: str = "",
        missing: Mapping[str, str] | None = None,
    ) -> None:
        """Journals the end of a launch whose files are durable in the bundle."""
        exits = {}
        for start in launch.starts:
            state = states.get(start.role)
            exits[start.role] = "none" if state is None or state.exit is None else str(state.exit)
        about = self._about(launch.name, exits=exits, reason=reason)
        if missing:
            about["missing"] = dict(missing)
        self.session.emit("launch.finished", self.attempt.step, about)

    def _keep(self, files: Mapping[Path, bytes]) -> None:
        for folder in {path.parent for path in files}:
            folder.mkdir(parents=True, exist_ok=True)
        write_many(self.session.withheld(self.attempt.step, files))


def _ends(bound: Binding) -> Ends:
    """What a role was bound to."""
    return Ends(Endpoint(bound.address, bound.port), Endpoint(bound.parent_address, bound.parent_port))


def _shortest_s(launch: Launch) -> float:
    """The shortest time after which a role takes a silent peer for lost."""
    return min(min(start.binding.round_ms, start.binding.connect_ms) for start in launch.starts) / 1000


def _patience_s(launch: Launch) -> float:
    """How long a role may outlive the end of another: its peers notice within these deadlines."""
    return (
        max(max(start.binding.round_ms, start.binding.connect_ms) for start in launch.starts) / 1000
        + MARGIN_S
    )
