"""What a node's own tools say of it over SSH: `uname`, `df`, `date`, `ls`, /proc. Knows their forms alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Final

from orchestrator.remote import proc
from orchestrator.remote.base import MOST_COUNTED, Clock, NodeFacts, Room, counted
from orchestrator.remote.ssh_folders import SEPARATOR

HASH: Final = "sha256sum, openssl, shasum, busybox, python3 or perl"
TOOLS: Final = (
    *("cat", "chmod", "date", "df", "env", "id", "ln", "ls", "mkdir", "mv", "rm", "sed", "setsid", "sh"),
    *("sleep", "tail", "tr", "uname"),
)

_SMALL: Final = 64 << 10  # what is left of a full disk, since nothing fits exactly
_FULL: Final = re.compile(r"No space left on device|[Qq]uota exceeded")
_SECOND_NS: Final = 10**9
_ROW = re.compile(r"\s(\d+|-)\s+(\d+|-)\s+(-?\d+|-)\s+(\d+%|-)\s+/")
_CWD = re.compile(r"^l.* /proc/(\d+)/cwd(?: -> |$)", re.MULTILINE)
_FILES = ("status", "meminfo", "cgroup", "osrelease", "hostname")


def facts_of(ask: Callable[..., str], boot_id: str) -> NodeFacts:
    """Gives a node's facts; `ask` calls a function there and gives its text."""
    paths = (
        "/proc/self/status",
        "/proc/meminfo",
        "/proc/self/cgroup",
        "/proc/sys/kernel/osrelease",
        "/proc/sys/kernel/hostname",
    )
    texts = dict(zip(_FILES, texts_of(ask("orch_texts", *paths)), strict=True))
    memory = proc.memory_of(texts["meminfo"])
    files = [str(file) for file in proc.limit_files(texts["cgroup"])]
    limits = [text.strip() for text in texts_of(ask("orch_texts", *files))] if files else []
    known = [int(limit) for limit in limits if limit.isdecimal()] + ([] if memory is None else [memory])
    allowed = re.search(r"^Cpus_allowed:\s*([0-9a-f,]+)", texts["status"], re.MULTILINE)
    return NodeFacts(
        machine=ask("orch_uname").strip(),
        kernel=texts["osrelease"].strip(),
        hostname=texts["hostname"].strip(),
        boot_id=boot_id,
        cpus=int(allowed[1].replace(",", ""), 16).bit_count() if allowed else 1,
        memory_bytes=counted(memory),
        quota_bytes=counted(min(known, default=None)),
    )


def texts_of(said: str) -> list[str]:
    """Gives files' texts as `orch_texts` gives them; empty for one that is not there."""
    return [text[1:] for text in said.split(SEPARATOR)[:-1]]


def room_of(said: str) -> Room:
    """Reads `df -Pk` and `df -Pi`."""
    kilobytes, _, inodes = said.partition(SEPARATOR)
    free, total = _available(kilobytes), _ROW.search(inodes)
    has_inodes = total is not None and total[1] not in {"0", "-"}
    return Room(
        None if free is None else counted(free << 10), counted(_available(inodes)) if has_inodes else None
    )


def is_full(why: str, room: Room) -> bool:
    """Says whether something could not be written for want of room: as it is said, or as it looks."""
    by_look = any(
        free is not None and free < least
        for free, least in ((room.free_bytes, _SMALL), (room.free_inodes, 1))
    )
    return by_look or _FULL.search(why) is not None


def _available(table: str) -> int | None:
    row = _ROW.search(table)
    return max(0, int(row[3])) if row and row[3] != "-" else None


def clock_of(said: str, begun_ns: int, ended_ns: int) -> Clock | None:
    """Reads seconds since 1970, nine digits more if `date` has them; None if it is none of these days."""
    match = re.match(r"(\d{1,15})(?:\.(\d{9}))?", said)
    if match is None:
        return None
    resolution_ns = 1 if match[2] else _SECOND_NS
    node_ns = int(match[1]) * _SECOND_NS + int(match[2] or 0) + resolution_ns // 2
    trip_ns = ended_ns - begun_ns
    offset_ns = node_ns - (begun_ns + trip_ns // 2)
    if abs(offset_ns) > MOST_COUNTED:  # a hundred days: no JSON number holds it
        return None
    return Clock(offset_ns, trip_ns // 2 + resolution_ns // 2 + 1)


def tool_name(said: str) -> str:
    """Gives a missing tool as a person would say it."""
    return f"a tool for SHA-256 ({HASH})" if said == "hash" else said


def noted(field: str) -> str | None:
    """Gives a note's text as `orch_note` gives it; None if there is none."""
    return field[1:].strip() if field.startswith(("1", "2")) else None


def working_folders(listed: str) -> dict[int, str]:
    """Reads process ids and where they work, as `ls` says; nowhere, for zombies. A path may hold newlines."""
    begins = list(_CWD.finditer(listed))
    ends = [*(match.start() - 1 for match in begins[1:]), len(listed) - 1]
    return {int(match[1]): listed[match.end() : end] for match, end in zip(begins, ends, strict=True)}


def lies_in(path: str, folder: str) -> bool:
    """Says whether a folder, which may be gone by now, is another one or lies in it."""
    return PurePosixPath(path.removesuffix(" (deleted)")).is_relative_to(folder)
