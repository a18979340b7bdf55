"""What this machine's kernel says: processes, memory, ports. Raises OSError where /proc cannot be read.

Knows /proc and /sys; knows no job and no folder of ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

# "   0: 0100007F:1F90 ...": a busy machine has tens of thousands of such lines, after one without a number
_LOCAL_PORT = re.compile(rb"\n *\d+: [0-9A-F]+:([0-9A-F]{4}) ")

_CGROUPS = PurePosixPath("/sys/fs/cgroup")


def boot_id() -> str:
    """Changes with every boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def uptime_s() -> float:
    """Seconds since the boot; no one can set this clock."""
    return float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])


def pids() -> Iterator[int]:
    """Every process."""
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())


def cmdline(pid: int) -> list[str]:
    """Arguments that a process was started with; empty if there is none."""
    try:
        return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")
    except OSError:
        return []


def start_ticks(pid: int) -> int | None:
    """Start time of a process that is not a zombie, in clock ticks since boot; None if there is none."""
    fields = _status(pid)
    return None if fields is None or fields[0] == "Z" else int(fields[19])


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped a process; one that is traced is not stopped."""
    fields = _status(pid)
    return fields is not None and fields[0] == "T"


def has_terminal(pid: int) -> bool:
    """Whether a process has a controlling terminal."""
    fields = _status(pid)
    return fields is not None and fields[4] != "0"


def _status(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on; None if there is no such process."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return line.rpartition(")")[2].split()


def memory_bytes() -> int | None:
    """Physical memory; None if it is not said."""
    with suppress(OSError):
        return memory_of(Path("/proc/meminfo").read_text(encoding="ascii"))
    return None


def memory_of(text: str) -> int | None:
    """Physical memory by the text of /proc/meminfo; None if it is not said."""
    for line in text.splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def cgroup_limits(
    groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> Iterator[int]:
    """Memory limits of this process's control groups and of those above, version 2 and 1; `max` is none."""
    for file in limit_files(own.read_text(encoding="utf-8"), PurePosixPath(groups)):
        with suppress(OSError):
            text = Path(file).read_text(encoding="ascii").strip()
            if text.isdecimal():
                yield int(text)


def limit_files(own: str, groups: PurePosixPath = _CGROUPS) -> Iterator[PurePosixPath]:
    """Files that hold the limits, by the text of /proc/PID/cgroup; not all of them are there."""
    for line in own.splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            yield from _limits(groups, group, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _limits(groups / "memory", group, "memory.limit_in_bytes")


def _limits(mounted: PurePosixPath, group: str, file: str) -> Iterator[PurePosixPath]:
    """That of a group and of each group above it; in a container the group may lie outside of view."""
    inner = mounted / group.lstrip("/")
    for folder in (inner, *inner.parents):
        if not folder.is_relative_to(mounted):
            return
        yield folder / file


def used_ports(tables: Sequence[Path] = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))) -> frozenset[int]:
    """Local TCP ports of every socket, of both address families."""
    text = b""
    for table in tables:
        with suppress(OSError):
            text += table.read_bytes()
    return ports_of(text)


def ports_of(table: bytes) -> frozenset[int]:
    """Local ports in the text of such tables."""
    return frozenset(int(port, 16) for port in set(_LOCAL_PORT.findall(table)))


def ephemeral_ports() -> range:
    """Ports that the kernel hands to outgoing connections."""
    low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()
    return range(int(low), int(high) + 1)
