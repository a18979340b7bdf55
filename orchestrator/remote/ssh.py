"""A node over SSH: the same contract as this machine, through one shell that lives as long as the connection.

Knows the functions in `node/` and what they answer. How the connection comes about is `connect.py`'s, how
requests are framed `shell.py`'s.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any, Final

from orchestrator.errors import Label
from orchestrator.remote import lock, notes, proc
from orchestrator.remote import root as own
from orchestrator.remote.base import (
    MOST_BYTES,
    Clock,
    Completed,
    Job,
    JobState,
    NodeFacts,
    NotPlainError,
    Remote,
    RemoteError,
    Room,
    Tunnel,
    UnreachableError,
)
from orchestrator.remote.connect import Connected
from orchestrator.remote.runners import PASSED_ON, RUNNER, demand_names
from orchestrator.remote.shell import Answer, quoted
from orchestrator.remote.ssh_facts import (
    HASH,
    TOOLS,
    clock_of,
    facts_of,
    is_full,
    lies_in,
    noted,
    room_of,
    tool_name,
    working_folders,
)
from orchestrator.remote.ssh_folders import ABSENT, SEPARATOR, SshFolders, SshLock, decoded, names_of
from orchestrator.remote.tunnel import open_tunnel
from orchestrator.remote.way import Way
from orchestrator.spec.pods import Node

CONNECT_S: Final = 30.0

_UNMARKED: Final = 2
_MISMATCH: Final = 4
_NO_HASH: Final = 5
_NOT_PLAIN: Final = 6
_BULK_S: Final = 600.0
_END_S: Final = 2.0
_LOOK_S: Final = 0.001
_WRITE: Final = frozenset(
    (
        "orch_put",
        "orch_put_kept",
        "orch_start",
        "orch_make",
        "orch_mark",
        "orch_lock_make",
        "orch_lock_replace",
    )
)
_KEPT_BYTES: Final = 256 << 10
_SHOWN: Final = 80


class Ssh:
    """A node behind an SSH server. Connects when it is first asked for something, and anew when it has to.

    Args:
        node: as pinned.
        connect_s: seconds within which a connection has to come about.
        connected: is told of every connection that was made, and what came before the shell's first answer.

    Attributes:
        door: the address and port that the pods file names.
    """

    def __init__(
        self,
        node: Node,
        *,
        connect_s: float = CONNECT_S,
        connected: Callable[[Connected, bytes], None] = lambda *_: None,
    ) -> None:
        self.name = node.name
        self.door = (node.host, node.port)
        self._way = Way(node, connect_s=connect_s, connected=connected)
        self._roots: set[PurePosixPath] = set()
        self._runner = RUNNER.read_bytes()
        self._runner_name = f".orch-runner-{hashlib.sha256(self._runner).hexdigest()[:16]}.sh"

    def close(self) -> None:
        """Closes the connections; what runs there goes on."""
        self._way.close()

    def _ask(self, what: str, function: str, *words: str, **more: Any) -> Answer:
        """As `Way.ask`; a refusal to write is told from want of room, of which not every shell speaks."""
        try:
            return self._way.ask(what, function, *words, **more)
        except UnreachableError:
            raise
        except RemoteError as error:
            if function not in _WRITE:
                raise
            raise self._unwritten(str(error), words[0]) from error

    def _unwritten(self, why: str, path: PurePosixPath | str) -> RemoteError:
        room = self.room(PurePosixPath(path).parent)
        if not is_full(why, room):
            return RemoteError(why)
        inodes = "unknown" if room.free_inodes is None else room.free_inodes
        got = f"got {room.free_bytes} free bytes, {inodes} free inodes"
        return RemoteError(f"{why} ({got}, expected room); free some there", Label.DISK_SPACE)

    # --- the node itself ---

    def facts(self) -> NodeFacts:
        """What its /proc and `uname` say."""
        what = "look at the node"
        with self._reading(what):
            return facts_of(
                # for people and for JSON, which hold no bytes that are no letters
                lambda function, *words: self._ask(what, function, *words).stdout.decode(
                    "utf-8", "backslashreplace"
                ),
                self._way.hello().boot_id,
            )

    def resolve(self, root: PurePosixPath) -> PurePosixPath:
        """Under HOME as the node's shell has it, unless it is absolute."""
        home = PurePosixPath(self._way.hello().home)
        if not home.is_absolute() and not root.is_absolute():
            raise RemoteError(
                f"{self.name}: the user there has no home folder (got HOME={str(home)!r}, expected a path);"
                " say an absolute `remote_root`",
                Label.REMOTE_ROOT,
            )
        return home / root

    def room(self, path: PurePosixPath) -> Room:
        """From `df`."""
        what = f"look at the file system of {path}"
        with self._reading(what):
            return room_of(decoded(self._ask(what, "orch_df", str(path))))

    def clock(self) -> Clock:
        """From `date`, between two looks at our own."""
        self._way.hello()  # the way there is not part of the round trip
        begun = time.time_ns()
        said = decoded(self._ask("look at the clock", "orch_date"))
        clock = clock_of(said, begun, time.time_ns())
        if clock is None:
            raise RemoteError(
                f"{self.name}: its clock is off by more than can be told (got {said[:_SHOWN]!r} seconds,"
                f" expected about {begun // 10**9}); set it",
                Label.CLOCK,
            )
        return clock

    def missing_tools(self) -> tuple[str, ...]:
        """What the scripts and the runner call, and something that hashes."""
        said = decoded(self._ask("look for tools", "orch_tools", *TOOLS))
        return tuple(map(tool_name, said.split(SEPARATOR)[:-1]))

    def used_ports(self) -> frozenset[int]:
        """From /proc/net/tcp and tcp6."""
        return proc.ports_of(self._ask("look at its ports", "orch_ports").stdout)

    def ephemeral_ports(self) -> range:
        """From the kernel's own setting."""
        what = "look at its ports"
        with self._reading(what):
            low, high = self._ask(what, "orch_ephemeral").stdout.split()
            return range(int(low), int(high) + 1)

    def run(self, argv: Sequence[str], *, deadline_s: float) -> Completed:
        """Runs it in a session of its own, which the deadline ends, there too if we are gone by then."""
        words = [quoted(word) for word in argv]
        done = self._way.use(
            f"end `{argv[0]}`", deadline_s, lambda shell: shell.run(words, deadline_s=deadline_s)
        )
        return Completed(*done)

    # --- folders and files ---

    def make_root(self, root: PurePosixPath, owner: str) -> None:
        """Makes `root` and the folder that it is in, mode 0700, or finds them so."""
        with self._reading(f"make {root}"):
            fault = own.make(SshFolders(self._ask), root, owner)
        if fault:
            raise RemoteError(f"{self.name}: {fault}")
        self._roots.add(root)

    def put(self, data: bytes, path: PurePosixPath, *, executable: bool = False) -> str:
        """Sends it through the shell; it is hashed there, compared, and then renamed into its place."""
        digest = hashlib.sha256(data).hexdigest()
        words = (str(path), digest, str(len(data)), "700" if executable else "600")
        is_kept = len(data) >= _KEPT_BYTES
        if is_kept and self._settled("orch_put_kept", *words).code == 0:
            return digest
        pieces = (data,) if data else ()
        answer = self._settled("orch_put", *words, "1" if is_kept else "", data=pieces)
        if answer.code == _MISMATCH:
            got = answer.last_line
            why = f"{self.name}: {path} is not what was sent (got {got}, expected {digest})"
            raise self._unwritten(why, path)  # some tools do not fail where they could not write
        return digest

    def _settled(self, function: str, path: str, *words: str, data: Iterable[bytes] = ()) -> Answer:
        answer = self._ask(f"write {path}", function, path, *words, deadline_s=_BULK_S, data=data)
        self._demand_mark(answer, path, "nothing is written")
        if answer.code == _NO_HASH:
            raise RemoteError(
                f"{self.name}: nothing there can hash a file (got no tool, expected {HASH})",
                Label.TOOL_MISSING,
            )
        return answer

    def get(self, path: PurePosixPath, *, most: int = MOST_BYTES) -> bytes | None:
        """The bytes of a regular file; links are not followed."""
        what = f"read {path}"
        answer = self._ask(what, "orch_get", str(path), str(most), deadline_s=_BULK_S, most=most)
        if answer.code == ABSENT:
            return None
        self._demand_plain(answer, path, most)
        size, _, data = answer.stdout.partition(b"\n")
        with self._reading(what):
            if answer.code or int(size) != len(data):
                got = f"{len(data)} bytes"
                raise RemoteError(f"{self.name}: cannot read {path} (got {got}, expected {size.decode()})")
        return data

    def _demand_plain(self, answer: Answer, path: PurePosixPath, most: int) -> None:
        if answer.code == _NOT_PLAIN:
            expected = f"a plain file of at most {most} bytes"
            raise NotPlainError(
                f"{self.name}: {path} cannot be read (got {answer.last_line}, expected {expected})"
            )

    def tail(self, path: PurePosixPath, size: int) -> bytes:
        """The last bytes of a regular file; links are not followed."""
        answer = self._ask(f"read {path}", "orch_tail", str(path), str(size), deadline_s=_BULK_S)
        self._demand_plain(answer, path, MOST_BYTES)
        return b"" if answer.code == ABSENT else answer.stdout

    def list(self, folder: PurePosixPath) -> tuple[str, ...]:
        """Names in the folder, sorted."""
        return tuple(sorted(names_of(self._ask(f"list {folder}", "orch_list", str(folder)))))

    def remove(self, folder: PurePosixPath) -> None:
        """Removes the folder if it, or a folder above it, bears our mark; links are seen through before."""
        answer = self._ask(f"remove {folder}", "orch_remove", str(folder), deadline_s=_BULK_S)
        self._demand_mark(answer, folder, "nothing is removed")

    def _demand_mark(self, answer: Answer, path: PurePosixPath | str, otherwise: str) -> None:
        if answer.code == _UNMARKED:
            raise RemoteError(
                f"{self.name}: {otherwise}: {path} bears no mark of ours, nor does a folder above it"
                f" (got none, expected {own.OWNER_MARK})",
                Label.REMOTE_ROOT,
            )

    # --- the lock ---

    def lock(self, base: PurePosixPath, run_id: str, owner: str) -> str:
        """Takes it in the name of the shell there."""
        with self._reading(f"lock {base}"):
            return lock.take(SshLock(self._ask, base), base, run_id, owner)

    def lock_holder(self, base: PurePosixPath) -> str:
        """Reads it."""
        with self._reading(f"look at the lock of {base}"):
            return lock.described(SshLock(self._ask, base))

    def beat(self, base: PurePosixPath, run_id: str) -> None:
        """Notes the node's time since its boot."""
        with self._reading(f"note that we work in {base}"):
            lock.beat(SshLock(self._ask, base), base, run_id)

    def unlock(self, base: PurePosixPath, run_id: str) -> None:
        """Removes it."""
        with self._reading(f"unlock {base}"):
            lock.give_back(SshLock(self._ask, base), run_id)

    # --- jobs ---

    def start(self, job: Job) -> None:
        """Starts the job under the runner, which is put into the root before the first one."""
        demand_names(job)
        set_here = dict(job.environment)
        script = "".join(
            f"{PASSED_ON}{name}={quoted(value)}; export {PASSED_ON}{name};"
            for name, value in set_here.items()
        )
        words = (
            str(job.folder),
            self._runner_name,
            str(job.deadline_s),
            str(job.grace_s),
            " ".join(job.inherit),
            " ".join(set_here),
            script,
            *job.argv,
        )
        answer = self._ask(f"start in {job.folder}", "orch_start", *words)
        if answer.code == ABSENT:
            root = PurePosixPath(decoded(answer))
            self.put(self._runner, root / self._runner_name)
            answer = self._ask(f"start in {job.folder}", "orch_start", *words)
        self._demand_mark(answer, job.folder, "nothing is started")

    def prevent(self, job: Job) -> None:
        """Makes the folder that the runner would have to make."""
        self._ask(f"hold back {job.folder}", "orch_prevent", str(job.folder))

    def inspect(self, job: Job) -> JobState:
        """What its runner noted, and what /proc says of that."""
        folder, what = job.folder / "job", f"look at {job.folder}"
        answer = self._ask(what, "orch_inspect", str(job.folder), str(job.folder).replace("\n", "\1"))
        fields = decoded(answer).split(SEPARATOR)[:-1]
        with self._reading(what):
            exit_before, pid_before, how, exit_after, pid_after = fields
            for exit_text, pid_text in ((exit_before, pid_before), (exit_after, pid_after)):
                if (code := notes.read_exit(noted(exit_text), folder)) is not None:
                    return notes.state_of("exited", code, notes.read_identity(noted(pid_text), folder))
            return notes.state_of(how, None, notes.read_identity(noted(pid_after), folder))

    def signal(self, job: Job, number: int) -> None:
        """Signals the group, only while the recorded process still leads it."""
        what = f"signal the job in {job.folder}"
        answer = self._ask(what, "orch_signal", str(job.folder), str(number))
        with self._reading(what):
            notes.read_identity(noted(decoded(answer).strip(SEPARATOR)), job.folder / "job")

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Takes what no node of ours would answer for what it is: a node that cannot be used."""
        try:
            yield
        except notes.NotesError as error:
            raise RemoteError(f"{self.name}: {error}") from error
        except ValueError as error:
            raise RemoteError(
                f"{self.name}: cannot {what} (got an answer that cannot be read, expected one of ours)",
                Label.SHELL_UNUSABLE,
            ) from error

    def end(self, folder: PurePosixPath) -> None:
        """KILLs what works there, again and again: between a look and a signal it may have begun others."""
        limit = time.monotonic() + _END_S
        # a root that was found to be ours stays so, even if its mark was taken away meanwhile
        if not any(folder.is_relative_to(root) for root in self._roots):
            answer = self._ask(f"end what runs in {folder}", "orch_ours", str(folder))
            self._demand_mark(answer, folder, "nothing is ended")
        while found := self.processes_under(folder):
            pids = map(str, found)
            if not self._ask(f"end what runs in {folder}", "orch_kill", *pids).stdout:
                return
            if time.monotonic() > limit:
                return
            time.sleep(_LOOK_S)

    def processes_under(self, folder: PurePosixPath) -> tuple[int, ...]:
        """Processes whose working folder is `folder` or lies in it; zombies have none."""
        what = f"look at what runs in {folder}"
        said = decoded(self._ask(what, "orch_cwds", str(folder)))
        real, _, listed = said.partition(SEPARATOR)
        with self._reading(what):
            where = working_folders(listed)
        # some `ls` put a question mark where a letter is none of theirs
        unsure = [pid for pid, path in where.items() if "?" in path]
        if unsure:
            paths = decoded(self._ask(what, "orch_cwd", *map(str, unsure)))
            where.update(zip(unsure, paths.split(SEPARATOR), strict=False))
        return tuple(sorted(pid for pid, path in where.items() if lies_in(path, real)))

    # --- tunnels ---

    def tunnel(self, to: Remote, port: int) -> Tunnel:
        """Through the controller: over this node's connection and over that of `to`."""
        if not isinstance(to, Ssh):
            raise RemoteError(
                f"{self.name}: there is no tunnel to {to.name} (got this machine, expected a node over SSH)"
            )
        return open_tunnel(self._way.lines, to._way.lines, port)  # noqa: SLF001  # another one of ours
