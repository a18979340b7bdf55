"""This machine as a node: the same contract as a rented one, with files and processes at hand.

Role programs are started under `runner.sh`, detached, exactly as on a node far away, so that a killed controller
can find them again.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from evidence.digest import sha256_file

from orchestrator.remote.base import Completed, Job, JobState, NodeFacts, RemoteError

OWNER_MARK = ".orch-owner"
RUNNER = Path(__file__).with_name("runner.sh")


class Local:
    """A node that is this machine."""

    def __init__(self, name: str = "local") -> None:
        self.name = name
        # runners that this controller started, so that they are reaped and leave no zombie
        self._runners: list[subprocess.Popen[bytes]] = []

    def facts(self) -> NodeFacts:
        """What /proc and uname say."""
        memory = _meminfo_total()
        limits = [limit for limit in (memory, *_cgroup_limits()) if limit is not None]
        return NodeFacts(
            machine=platform.machine(),
            kernel=platform.release(),
            hostname=platform.node(),
            boot_id=_boot_id(),
            cpus=len(os.sched_getaffinity(0)),
            memory_bytes=memory,
            quota_bytes=min(limits, default=None),
        )

    def run(self, argv: Sequence[str], *, deadline_s: float) -> Completed:
        """Runs a short command; `exit` is None if the deadline ended it."""
        try:
            done = subprocess.run(  # noqa: PLW1510  # the exit code is the caller's to read
                list(argv),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=deadline_s,
                env={**os.environ, "LC_ALL": "C"},
            )
        except FileNotFoundError:
            return Completed(127, b"", f"{argv[0]}: not found".encode())
        except subprocess.TimeoutExpired as late:
            return Completed(None, late.stdout or b"", late.stderr or b"")
        return Completed(done.returncode, done.stdout, done.stderr)

    def make_root(self, root: PurePosixPath, owner: str) -> None:
        """Makes `root`, mode 0700; refuses one that is another user's, or a link."""
        path = Path(root)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = path.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
                raise RemoteError(
                    f"{self.name}: {root} is not a folder of this user (got uid {status.st_uid}, expected {os.getuid()})"
                )
            (path / OWNER_MARK).write_text(owner + "\n", encoding="utf-8")
        except OSError as error:
            raise RemoteError(f"{self.name}: cannot make {root}: {error.strerror}") from error

    def put(self, data: bytes, path: PurePosixPath, *, executable: bool = False) -> str:
        """Writes through a temporary name; the digest is of the file read back."""
        target = Path(path)
        temporary = target.with_name(target.name + ".part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(data)
            temporary.chmod(0o700 if executable else 0o600)
            temporary.replace(target)
            return sha256_file(target)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise RemoteError(f"{self.name}: cannot write {path}: {error.strerror}") from error

    def get(self, path: PurePosixPath) -> bytes | None:
        """The bytes of a regular file; links are not followed."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RemoteError(f"{self.name}: cannot read {path}: {error.strerror}") from error
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise RemoteError(f"{self.name}: cannot read {path}: not a regular file")
            return file.read()

    def list(self, folder: PurePosixPath) -> tuple[str, ...]:
        """Names in the folder, sorted."""
        try:
            return tuple(sorted(os.listdir(folder)))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def start(self, job: Job) -> None:
        """Starts the job under the runner, in a session of its own."""
        Path(job.folder).mkdir(parents=True, exist_ok=True)
        self._runners = [runner for runner in self._runners if runner.poll() is None]
        argv = ["sh", str(RUNNER), str(job.folder), str(job.deadline_s), str(job.grace_s), *job.argv]
        devnull = subprocess.DEVNULL
        self._runners.append(
            subprocess.Popen(argv, stdin=devnull, stdout=devnull, stderr=devnull, start_new_session=True)  # noqa: S606
        )

    def inspect(self, job: Job) -> JobState:
        """Reads the job's files, then /proc."""
        folder = Path(job.folder) / "job"
        exit_code = _read(folder / "exit")
        pid, ticks, boot_id = _identity(folder)
        if exit_code is not None:
            return JobState("exited", int(exit_code), pid, ticks, boot_id)
        if pid is None:
            # between the folder and the pid file the runner is alive, or it was killed right there
            return JobState(
                "running"
                if folder.exists() and self._runner_alive(job)
                else "lost"
                if folder.exists()
                else "absent"
            )
        alive = boot_id == _boot_id() and (_start_ticks(pid) == ticks or self._runner_alive(job))
        if not alive and (code := _read(folder / "exit")) is not None:  # it ended between the two looks
            return JobState("exited", int(code), pid, ticks, boot_id)
        return JobState("running" if alive else "lost", None, pid, ticks, boot_id)

    def _runner_alive(self, job: Job) -> bool:
        """Whether the shell that watches this job still runs: it alone has the folder as its third argument."""
        self._runners = [runner for runner in self._runners if runner.poll() is None]
        wanted = [b"sh", os.fsencode(RUNNER), os.fsencode(job.folder)]
        return any(_cmdline(pid)[:3] == wanted for pid in _pids())

    def signal(self, job: Job, number: int) -> None:
        """Signals the group, only while the recorded process still leads it."""
        pid, ticks, boot_id = _identity(Path(job.folder) / "job")
        if pid is not None and boot_id == _boot_id() and _start_ticks(pid) == ticks:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.Signals(number))

    def processes_under(self, folder: PurePosixPath) -> tuple[int, ...]:
        """Processes whose working folder is `folder` or lies in it; zombies have none."""
        found = []
        for pid in _pids():
            with suppress(OSError):
                where = os.readlink(f"/proc/{pid}/cwd")
                if PurePosixPath(where.removesuffix(" (deleted)")).is_relative_to(folder):
                    found.append(pid)
        return tuple(found)

    def used_ports(self) -> frozenset[int]:
        """From /proc/net/tcp and tcp6."""
        ports = set()
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            with suppress(OSError):
                for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                    ports.add(int(line.split()[1].rpartition(":")[2], 16))
        return frozenset(ports)

    def ephemeral_ports(self) -> range:
        """From the kernel's own setting."""
        low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()
        return range(int(low), int(high) + 1)

    def remove(self, folder: PurePosixPath) -> None:
        """Removes the folder if it, or a folder above it, bears our mark."""
        path = Path(folder)
        if not any((above / OWNER_MARK).is_file() for above in (path, *path.parents)):
            raise RemoteError(
                f"{self.name}: {folder} bears no mark of ours (got none, expected {OWNER_MARK}); nothing was removed"
            )
        shutil.rmtree(path, ignore_errors=False)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None


def _identity(folder: Path) -> tuple[int | None, int | None, str]:
    text = _read(folder / "pid")
    if not text:
        return None, None, ""
    pid, ticks, boot_id = text.split()
    return int(pid), int(ticks), boot_id


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())


def _cmdline(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _start_ticks(pid: int) -> int | None:
    """Start time of a process that is not a zombie, in clock ticks since boot; None if there is none."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def _meminfo_total() -> int | None:
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) * 1024
    return None


def _cgroup_limits() -> Iterator[int]:
    """Memory limits of this process's control groups, version 2 and 1; `max` is no limit."""
    for path in (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")):
        text = None
        with suppress(OSError):
            text = path.read_text(encoding="ascii").strip()
        if text and text.isdecimal():
            yield int(text)
