"""This machine as a node: the same contract as a rented one, with files and processes at hand.

Role programs are started under `runner.sh`, detached, exactly as on a node far away, so that a killed
controller can find them again.
"""

from __future__ import annotations

import errno
import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import BinaryIO

from evidence.digest import sha256_file
from evidence.files import NotRegularError, open_new, open_regular
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
    counted,
)
from orchestrator.remote.local_lock import LocalLock
from orchestrator.remote.runners import Runners
from orchestrator.remote.writers import await_no_writer

_LOOK_S = 0.001
_END_S = 2.0
_TOOLS = ("sh", "setsid", "sleep", "mkdir", "mv")


class Local:
    """A node that is this machine."""

    def __init__(self, name: str = "local") -> None:
        self.name = name
        self._runners = Runners()
        self._roots: set[Path] = set()
        self._unending: list[subprocess.Popen[bytes]] = []

    def facts(self) -> NodeFacts:
        """What /proc and uname say."""
        memory = proc.memory_bytes()
        limits = [limit for limit in (memory, *proc.cgroup_limits()) if limit is not None]
        return NodeFacts(
            machine=platform.machine(),
            kernel=platform.release(),
            hostname=platform.node(),
            boot_id=proc.boot_id(),
            cpus=len(os.sched_getaffinity(0)),
            memory_bytes=memory,
            quota_bytes=counted(min(limits, default=None)),
        )

    def run(self, argv: Sequence[str], *, deadline_s: float) -> Completed:
        """Runs a short command in a process group of its own, which ends with it."""
        # files, not pipes: what has left the group may keep them open for ever
        with TemporaryFile() as stdout, TemporaryFile() as stderr:
            try:
                process = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    env={**os.environ, "LC_ALL": "C"},
                    start_new_session=True,
                )
            except FileNotFoundError:
                return Completed(127, b"", f"{argv[0]}: not found".encode())
            except OSError as error:
                return Completed(126, b"", f"{argv[0]}: {error.strerror}".encode())
            code: int | None
            try:
                code = process.wait(deadline_s)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                self._leave(process)
            for stream in (stdout, stderr):
                stream.seek(0)
            if code is not None and code < 0:
                code = 128 - code
            return Completed(code, stdout.read(), stderr.read())

    def _leave(self, process: subprocess.Popen[bytes]) -> None:
        """Waits until it is gone; one that hangs in a driver is not gone by any signal, and is let be."""
        self._unending = [each for each in self._unending if each.poll() is None]
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._unending.append(process)

    def make_root(self, root: PurePosixPath, owner: str) -> None:
        """Makes `root` and the folder that it is in, mode 0700, or finds them so."""
        with self._refusals(f"make {root}"):
            fault = own.make(own.LocalFolders(), root, owner)
        if fault:
            raise RemoteError(f"{self.name}: {fault}")
        self._roots.add(Path(root))

    @contextmanager
    def _refusals(self, what: str) -> Iterator[None]:
        """Says what the system refused, in our words."""
        try:
            yield
        except OSError as error:
            label = Label.DISK_SPACE if error.errno in (errno.ENOSPC, errno.EDQUOT) else None
            raise RemoteError(f"{self.name}: cannot {what}: {error.strerror or error}", label) from error
        except notes.NotesError as error:
            raise RemoteError(f"{self.name}: {error}") from error

    def put(self, data: bytes, path: PurePosixPath, *, executable: bool = False) -> str:
        """Writes through a temporary name; the digest is of the file read back."""
        target = Path(path)
        temporary = target.with_name(target.name + ".part")
        with self._refusals(f"write {path}"):
            self._demand_mark(target, "nothing is written")
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with open_new(temporary, 0o700 if executable else 0o600) as file:
                    file.write(data)
                temporary.replace(target)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise
            if executable:
                await_no_writer(target)
            return sha256_file(target)

    def get(self, path: PurePosixPath, *, most: int = MOST_BYTES) -> bytes | None:
        """The bytes of a regular file; links are not followed."""
        with self._reading(path) as file:
            if file is None:
                return None
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise NotPlainError(
                    f"{self.name}: {path} is too large (got {size} bytes, expected {most} at most)"
                )
            return file.read(most)  # it may be growing

    def tail(self, path: PurePosixPath, size: int) -> bytes:
        """The last bytes of a regular file; links are not followed."""
        with self._reading(path) as file:
            if file is None:
                return b""
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            return file.read(size)

    @contextmanager
    def _reading(self, path: PurePosixPath) -> Iterator[BinaryIO | None]:
        try:
            file = os.fdopen(open_regular(Path(path)), "rb")
        except FileNotFoundError:
            yield None
            return
        except NotRegularError as error:
            raise NotPlainError(
                f"{self.name}: {path} cannot be read (got {error.strerror}, expected a plain one)"
            ) from error
        except OSError as error:
            raise RemoteError(f"{self.name}: cannot read {path}: {error.strerror}") from error
        with file:
            yield file

    def list(self, folder: PurePosixPath) -> tuple[str, ...]:
        """Names in the folder, sorted."""
        with self._refusals(f"list {folder}"):
            try:
                return tuple(sorted(entry.name for entry in Path(folder).iterdir()))
            except (FileNotFoundError, NotADirectoryError):
                return ()

    def start(self, job: Job) -> None:
        """Starts the job under the runner and waits until it has its folder."""
        with self._refusals(f"start in {job.folder}"):
            self._demand_mark(Path(job.folder), "nothing is started")
            Path(job.folder).mkdir(parents=True, exist_ok=True)
            if not self._runners.start(job):
                raise RemoteError(f"{self.name}: cannot start in {job.folder}: the runner made no folder")

    def prevent(self, job: Job) -> None:
        """Makes the folder that the runner would have to make. Where there is no root, nothing can start."""
        with self._refusals(f"hold back {job.folder}"):
            if not _is_marked(Path(job.folder)):
                return
            (Path(job.folder) / "job").mkdir(parents=True, exist_ok=True)

    def inspect(self, job: Job) -> JobState:
        """Reads the job's files, then /proc."""
        folder = Path(job.folder) / "job"
        with self._refusals(f"look at {job.folder}"):
            if (state := notes.exited(folder)) is not None:
                return state
            identity = notes.identity(folder)
            if identity is not None and identity.alive:
                alive = True
            else:
                watching = self._runners.of(job)
                # a runner that somebody stopped says nothing more of a program that is gone
                alive = watching is not None and (identity is None or not proc.is_stopped(watching))
            # it may have ended between the two looks
            if (state := notes.exited(folder)) is not None:
                return state
            status = "running" if alive else "lost" if folder.exists() else "absent"
            return notes.state_of(status, None, notes.identity(folder))

    def signal(self, job: Job, number: int) -> None:
        """Signals the group, only while the recorded process still leads it."""
        with self._refusals(f"signal the job in {job.folder}"), suppress(ProcessLookupError):
            identity = notes.identity(Path(job.folder) / "job")
            if identity is not None and identity.alive:
                os.killpg(identity.pid, signal.Signals(number))

    def end(self, folder: PurePosixPath) -> None:
        """KILLs what works there, again and again: between a look and a signal it may have begun others."""
        path, limit = Path(folder), time.monotonic() + _END_S
        with self._refusals(f"end what runs in {folder}"):
            # a root that was found to be ours stays so, even if its mark was taken away meanwhile
            if os.path.lexists(path) and not any(path.is_relative_to(root) for root in self._roots):
                self._demand_mark(path, "nothing is ended")
            while time.monotonic() < limit:
                found = [pid for pid in self.processes_under(folder) if not _is_a_persons(pid)]
                for pid in found:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                self._runners.reap()
                if not found:
                    return
                time.sleep(_LOOK_S)

    def processes_under(self, folder: PurePosixPath) -> tuple[int, ...]:
        """Processes whose working folder is `folder` or lies in it; zombies have none."""
        found = []
        real = Path(folder).resolve()
        for pid in proc.pids():
            with suppress(OSError):
                where = str(Path(f"/proc/{pid}/cwd").readlink())
                if Path(where.removesuffix(" (deleted)")).is_relative_to(real):
                    found.append(pid)
        return tuple(found)

    def used_ports(self) -> frozenset[int]:
        """From /proc/net/tcp and tcp6."""
        return proc.used_ports()

    def ephemeral_ports(self) -> range:
        """From the kernel's own setting."""
        return proc.ephemeral_ports()

    def remove(self, folder: PurePosixPath) -> None:
        """Removes the folder if it, or a folder above it, bears our mark; links are seen through before."""
        path = Path(folder)
        with self._refusals(f"remove {folder}"):
            real = path.parent.resolve() / path.name
            if not os.path.lexists(real):
                return
            self._demand_mark(path, "nothing is removed")
            shutil.rmtree(real)

    def resolve(self, root: PurePosixPath) -> PurePosixPath:
        """Under this user's home folder, unless it is absolute."""
        return PurePosixPath(Path.home()) / root

    def room(self, path: PurePosixPath) -> Room:
        """What statvfs says; file systems without a fixed number of inodes say 0 of 0."""
        with self._refusals(f"look at the file system of {path}"):
            there = next(folder for folder in (Path(path), *Path(path).parents) if folder.is_dir())
            said = os.statvfs(there)
        return Room(counted(said.f_bavail * said.f_frsize), counted(said.f_favail) if said.f_files else None)

    def clock(self) -> Clock:
        """It is the controller's own."""
        return Clock(0, 0)

    def missing_tools(self) -> tuple[str, ...]:
        """What the runner needs; the rest is done by this program itself."""
        return tuple(tool for tool in _TOOLS if shutil.which(tool) is None)

    def lock(self, base: PurePosixPath, run_id: str, owner: str) -> str:
        """Takes it in this process's name."""
        with self._refusals(f"lock {base}"):
            return lock.take(LocalLock(Path(base)), base, run_id, owner)

    def lock_holder(self, base: PurePosixPath) -> str:
        """Reads it."""
        with self._refusals(f"look at the lock of {base}"):
            return lock.described(LocalLock(Path(base)))

    def beat(self, base: PurePosixPath, run_id: str) -> None:
        """Notes the time since the boot."""
        with self._refusals(f"note that we work in {base}"):
            lock.beat(LocalLock(Path(base)), base, run_id)

    def unlock(self, base: PurePosixPath, run_id: str) -> None:
        """Removes it."""
        with self._refusals(f"unlock {base}"):
            lock.give_back(LocalLock(Path(base)), run_id)

    def tunnel(self, to: Remote, port: int) -> Tunnel:
        """Refuses: whoever is here reaches every port here, and nothing else."""
        raise RemoteError(
            f"{self.name}: there is no tunnel from this machine to port {port} of {to.name}"
            " (got this machine, expected a node over SSH)"
        )

    def close(self) -> None:
        """Holds nothing."""

    def _demand_mark(self, path: Path, otherwise: str) -> None:
        if not _is_marked(path):
            raise RemoteError(
                f"{self.name}: {otherwise}: {path} bears no mark of ours, nor does a folder above it"
                f" (got none, expected {own.OWNER_MARK})",
                Label.REMOTE_ROOT,
            )


def _is_marked(path: Path) -> bool:
    """Whether this folder, or one that it truly lies in, bears our mark."""
    real = path.parent.resolve() / path.name
    return path.name != ".." and any(own.is_marked(above) for above in (real, *real.parents))


def _is_a_persons(pid: int) -> bool:
    """Whether a process is somebody's who looks on, such as a shell in our folder, or this very one."""
    return pid == os.getpid() or proc.has_terminal(pid)
