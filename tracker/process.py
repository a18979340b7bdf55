"""How a process is known again: by pid, boot and start time, so that a reused pid does not pass for it.

Knows /proc, and `ps` and `sysctl` where there is no /proc. Knows no database.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

_STAT_START = 19  # field 22 of /proc/PID/stat, counted from the field after the closing parenthesis
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Process:
    """A process as it can be known later.

    Attributes:
        host_sha256: SHA-256 of the machine's host name: tells "gone" from "on another machine".
        pid: process id.
        boot_id: the boot of its machine, `unknown` where the system tells none.
        start: its start time, in the system's own notation, `unknown` where the system tells none.
    """

    host_sha256: str
    pid: int
    boot_id: str
    start: str


def here(pid: int | None = None) -> Process:
    """Describe a process of this machine; this one by default."""
    number = os.getpid() if pid is None else pid
    return Process(_host(), number, _boot_id(), _start(number) or _UNKNOWN)


def is_here(process: Process) -> bool:
    """Tell whether a process was of this machine, so that its absence means something."""
    return process.host_sha256 == _host()


def is_alive(process: Process) -> bool:
    """Tell whether a process of this machine still runs: same boot, same pid, same start time."""
    return process.boot_id == _boot_id() and (_start(process.pid) or "") == process.start


def _host() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return _said("sysctl", "-n", "kern.bootsessionuuid") or _UNKNOWN


def _start(pid: int) -> str:
    """Give a process's start time, empty if there is no such process (a zombie has ended, too)."""
    if not Path("/proc/self/stat").exists():
        return _said("ps", "-o", "lstart=", "-p", str(pid))
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[_STAT_START]


def _said(*argv: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
