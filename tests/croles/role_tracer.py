"""A role under ptrace: every system call that it makes is seen, and one of them is its last, or fails.

Calls by which a role waits come as often as the machine likes. A row of them counts as one, and so does a row
of single looks at the clock, so that the n-th call is the same one in every run.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_TRACEME, _POKEUSER, _SYSCALL, _SETOPTIONS, _GET_SYSCALL_INFO = 0, 6, 24, 0x4200, 0x420E
_GOOD_STOPS_AND_EXITKILL = 1 | 1 << 20
_SYSCALL_STOP = signal.SIGTRAP | 0x80
_ENTRY = 1
_RAX, _ORIG_RAX = 8 * 10, 8 * 15
NAMES = {
    0: "read", 1: "write", 3: "close", 5: "fstat", 13: "sigaction", 19: "readv", 20: "writev", 24: "yield",
    41: "socket", 42: "connect", 49: "bind", 50: "listen", 54: "setsockopt", 55: "getsockopt", 74: "fsync",
    80: "chdir", 228: "clock", 231: "exit", 257: "openat", 258: "mkdirat", 263: "unlinkat", 264: "renameat",
    271: "ppoll", 288: "accept4",
}  # fmt: skip
WAITING = ("yield", "clock", "ppoll", "readv")


class _Info(ctypes.Structure):
    _fields_ = (
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("at", ctypes.c_uint64),
        ("stack", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("arguments", ctypes.c_uint64 * 6),
    )


@dataclass(frozen=True)
class Call:
    """One call, or a row of calls of waiting (which are called `wait`).

    Attributes:
        name: as the kernel calls it.
        path: of the file that it is about, as far as it is about one: as the role names it, or for an open
            file its name alone. A rename has the new path.
    """

    name: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.path}".rstrip()


@dataclass
class Traced:
    """What is to happen to a role, and what it called from its first line of progress on.

    Attributes:
        kill_at: number of the call that it does not come to; None for none.
        fail_at: number of the call that is not made but fails.
        error: with this error.
        calls: all that were seen.
    """

    kill_at: int | None = None
    fail_at: int | None = None
    error: int = errno.EIO
    calls: list[Call] = field(default_factory=list)
    _begun: bool = False

    def next(self, call: Call) -> int | None:
        """The call's number, once the training has begun; None before, and within a row of waiting."""
        self._begun = self._begun or (call.name, call.path) == ("openat", "progress")
        if not self._begun or (self.calls and call.name == "wait" and self.calls[-1].name == "wait"):
            return None
        self.calls.append(call)
        return len(self.calls) - 1


def ptrace(request: int, pid: int, address: int = 0, data: int = 0) -> int:
    ctypes.set_errno(0)
    result = _libc.ptrace(request, pid, address, data)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request:#x}")
    return result


def _trace_me() -> None:
    ptrace(_TRACEME, 0)


def start(command: list[str], **options: object) -> subprocess.Popen[bytes]:
    """Starts a program that waits to be traced by this thread."""
    return subprocess.Popen(command, preexec_fn=_trace_me, **options)  # noqa: PLW1509 - it asks the kernel alone


def trace(process: subprocess.Popen[bytes], traced: Traced) -> None:
    """Lets it run to its end, which is left to `process.wait` as usual where nothing killed it."""
    pid = process.pid
    _, status = os.waitpid(pid, 0)
    assert os.WIFSTOPPED(status), status
    ptrace(_SETOPTIONS, pid, 0, _GOOD_STOPS_AND_EXITKILL)
    failing = False
    while True:
        with contextlib.suppress(ProcessLookupError):  # killed, and about to be seen as that
            ptrace(_SYSCALL, pid)
        _, status = os.waitpid(pid, 0)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
            return
        if os.WSTOPSIG(status) != _SYSCALL_STOP:
            continue
        info = _Info()
        ptrace(_GET_SYSCALL_INFO, pid, ctypes.sizeof(info), ctypes.addressof(info))
        if info.op == _ENTRY:
            failing = _entered(pid, info, traced)
        elif failing:
            ptrace(_POKEUSER, pid, _RAX, -traced.error & (1 << 64) - 1)
            failing = False


def _entered(pid: int, info: _Info, traced: Traced) -> bool:
    """Whether the call is to fail."""
    name = NAMES.get(info.number, str(info.number))
    path = ""
    if name in ("openat", "mkdirat", "unlinkat", "renameat"):
        path = _text(pid, info.arguments[3 if name == "renameat" else 1])
    elif name in ("write", "fsync"):
        path = Path(f"/proc/{pid}/fd/{info.arguments[0]}").readlink().name
    number = traced.next(Call("wait" if name in WAITING else name, path))
    if number is None:
        return False
    if number == traced.kill_at:
        os.kill(pid, signal.SIGKILL)
    if number == traced.fail_at:
        ptrace(_POKEUSER, pid, _ORIG_RAX, (1 << 64) - 1)
        return True
    return False


def _text(pid: int, address: int) -> str:
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(256).partition(b"\0")[0].decode()


def can_trace() -> bool:
    """Whether this machine lets a program trace its children."""
    if os.uname().machine != "x86_64":
        return False
    try:
        process = start(["/bin/true"])
    except (subprocess.SubprocessError, OSError):
        return False
    trace(process, Traced())
    return process.returncode == 0
