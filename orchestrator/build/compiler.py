"""Runs the pinned compiler: several at a time, each in a folder and a session of its own, none for ever.

Knows how a compiler is found, started, watched and ended, and what its end means; must not know what is
compiled, nor with which flags.
"""

from __future__ import annotations

import hashlib
import os
import re
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path

from orchestrator.errors import Label, OrchError, Refusal, RefusedError, UndecidedError, Where

PACKAGE = "ziglang"
PROGRAM = "program"
DEADLINE_S = 300.0
_LOOK_S = 0.005
_MOST_SAID = 1 << 16
_READS = 16  # at a look: more than a pipe holds, and not for as long as somebody writes
_FOLDER = "orch-build-"
_STALE = re.compile(rf"{_FOLDER}(\d{{1,9}})-")
# said by a compiler that the machine left no room, whatever it was to compile
_NO_ROOM = re.compile(
    r"\b(NoSpaceLeft|OutOfMemory|SystemResources|FdQuotaExceeded)\b|No space left|annot allocate memory"
)


@dataclass(frozen=True)
class Task:
    """One program to make.

    Attributes:
        role: whose it is, for messages.
        arguments: of the compiler, which runs beside the sources and is to write the file `PROGRAM`.
        sources: bytes by name; a name may have one folder in it.
        before: arguments of a compiler that makes there what the first one needs; none if empty.
    """

    role: str
    arguments: tuple[str, ...]
    sources: Mapping[str, bytes]
    before: tuple[str, ...] = ()


def version() -> str:
    """Which compiler this is: part of a program's identity.

    Raises:
        UndecidedError: there is none.
    """
    try:
        return installed_version(PACKAGE)
    except PackageNotFoundError as error:
        raise _undecided(f"the compiler is not installed (got no package {PACKAGE}, expected it)") from error


def identity(task: Task) -> str:
    """SHA-256 of all that a program is a function of: compiler, arguments and sources."""
    key = hashlib.sha256()
    for part in (version(), *task.before, *task.arguments, *task.sources):
        key.update(f"{len(part)}:{part}".encode())
    for data in task.sources.values():
        key.update(hashlib.sha256(data).digest())
    return key.hexdigest()


def compile_all(tasks: Sequence[Task], workers: int, check: Callable[[], None]) -> tuple[bytes, ...]:
    """The programs, in the order of their tasks.

    Args:
        tasks: what to make.
        workers: how many compilers may run at once.
        check: asked again and again while they run; what it raises ends them.

    Raises:
        RefusedError: `compiler`, with what it said of the first task that it refuses.
        UndecidedError: one could not be started, did not end in time, or was ended by a signal.
    """
    waiting = deque(enumerate(tasks))
    running: dict[int, _Compiler] = {}
    made: dict[int, bytes | OrchError] = {}
    if tasks:
        _sweep()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                index, task = waiting.popleft()
                running[index] = _Compiler(task)
            for index in [index for index, compiler in running.items() if compiler.has_ended()]:
                made[index] = running[index].outcome()
                running.pop(index).close()
            check()
            time.sleep(_LOOK_S if running else 0)
    finally:
        for compiler in running.values():
            compiler.close()
    return tuple(_given(made[index]) for index in range(len(tasks)))


def _given(outcome: bytes | OrchError) -> bytes:
    if isinstance(outcome, OrchError):
        raise outcome
    return outcome


class _Compiler:
    """One compiler at work in its folder."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._limit = time.monotonic() + DEADLINE_S
        self._said = b""
        try:
            # the name says whose it is, so that what a killed controller leaves is known as such
            self._folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
        except OSError as error:
            raise self._unstarted(error) from error
        self._left = deque(each for each in (task.before, task.arguments) if each)
        try:
            self._place()
            self._process = self._start(self._left.popleft())
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise self._unstarted(error) from error

    def _place(self) -> None:
        for name, data in self._task.sources.items():
            (self._folder / name).parent.mkdir(exist_ok=True)
            (self._folder / name).write_bytes(data)

    def _start(self, arguments: tuple[str, ...]) -> subprocess.Popen[bytes]:
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._folder),
            # in a folder of its own every file is new: a cache that stays would only grow
            "ZIG_GLOBAL_CACHE_DIR": str(self._folder / "zig"),
            "ZIG_LOCAL_CACHE_DIR": str(self._folder / "zig"),
        }
        return subprocess.Popen(
            [_executable(), "cc", *arguments],
            cwd=self._folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,  # no file: it could not say there that the disk is full
            start_new_session=True,  # Ctrl-C is for us to answer; and all that it starts ends with it
        )

    def _unstarted(self, error: OSError) -> UndecidedError:
        place = f": {error.filename}" if error.filename else ""
        return _undecided(
            f"the compiler cannot be started for {self._task.role}: {error.strerror or error}{place}"
        )

    def has_ended(self) -> bool:
        """Whether it has, by itself or by its deadline. Reads what it says in between."""
        has_ended = self._process.poll() is not None or time.monotonic() >= self._limit
        self._listen()
        if self._process.returncode == 0 and self._left:
            self._go_on()
            return False
        return has_ended

    def _go_on(self) -> None:
        if self._process.stderr is not None:
            self._process.stderr.close()
        try:
            self._process = self._start(self._left.popleft())
        except OSError as error:
            raise self._unstarted(error) from error

    def _listen(self) -> None:
        """Reads what waits in the pipe; never waits for its end, which a child of a killed one may hold."""
        pipe = self._process.stderr
        for _ in range(_READS):
            if pipe is None or not select.select([pipe], [], [], 0)[0]:
                return
            self._said += os.read(pipe.fileno(), _MOST_SAID)[: _MOST_SAID - len(self._said)]

    def outcome(self) -> bytes | OrchError:
        """The program, or why there is none. Only of one that has ended."""
        role, code = self._task.role, self._process.returncode
        if code is None:
            return _undecided(f"the compiler did not end within {DEADLINE_S:g} s for {role}")
        if code < 0:
            return _undecided(f"the compiler was ended by {_signal_name(-code)} while it made {role}")
        if code == 0:
            try:
                return (self._folder / PROGRAM).read_bytes()
            except OSError as error:
                return _undecided(f"the compiler left no program for {role}: {error.strerror}")
        said = self._said.decode("utf-8", "replace").strip()
        if room := _NO_ROOM.search(said):
            return _undecided(
                f"the compiler found no room for {role} (got {room[0]}, expected memory and disk)"
            )
        message = f"the compiler refuses the program of {role}: {said}"
        return RefusedError([Refusal(Label.COMPILER, message, Where(role))])

    def close(self) -> None:
        """Ends it, with all that it started, and removes its folder."""
        if self._process.returncode != 0:
            # one that was killed may have left others in its group; macOS refuses a group of zombies
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _executable() -> str:
    """Where the package has its compiler.

    Raises:
        FileNotFoundError: there is no package.
    """
    found = find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(f"no package {PACKAGE}")
    return str(Path(next(iter(found.submodule_search_locations))) / "zig")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _undecided(what: str) -> UndecidedError:
    return UndecidedError(f"{what}; `orch doctor` tries it on a shipped role")


def _sweep() -> None:
    """Removes build folders whose controllers are gone: nobody else will."""
    with suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
            named = _STALE.match(folder.name)
            if named and _is_ours(folder) and not _is_alive(int(named[1])):
                shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
