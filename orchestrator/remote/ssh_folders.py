"""Folders and locks on a node over SSH, for the rules in `root.py` and `lock.py`.

Knows how the scripts in `node/` answer about them. Must not know the rules.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Protocol

from orchestrator.remote import root as own
from orchestrator.remote.base import RemoteError
from orchestrator.remote.lock import LOCK_NAME, Holder, LockLook
from orchestrator.remote.root import Standing
from orchestrator.remote.shell import Answer, is_ours

SEPARATOR = "\x1e"
ABSENT = 3

# "drwx------ 2 0 0 ...", with a dot, plus or at sign where there is more to know
_LISTED = re.compile(r"(.)([r-][w-].[r-][w-].[r-][w-].)\S? +\d+ +(\d+) ")
# a name of one line, that any `ls` sorts as we do
_PLAIN = re.compile(r"[A-Za-z0-9_./-]+")
_BITS = (0o400, 0o200, 0o100, 0o040, 0o020, 0o010, 0o004, 0o002, 0o001)
_SPECIAL = {2: 0o4000, 5: 0o2000, 8: 0o1000}


class Asks(Protocol):
    """How a function of the node's is called."""

    def __call__(self, what: str, function: str, *words: str) -> Answer:
        """Raises RemoteError where the node refuses, saying what could not be done."""
        ...


class SshFolders:
    """Folders of a node. Its methods raise RemoteError."""

    def __init__(self, ask: Asks) -> None:
        self._ask = ask
        self._user: int | None = None

    def user(self) -> int:
        """As `id` says; it is asked once."""
        if self._user is None:
            self._user = int(self._ask("see who we are", "orch_user").stdout)
        return self._user

    def make(self, *folders: PurePosixPath) -> None:
        """In one go."""
        if folders:
            self._ask(f"make {folders[-1]}", "orch_make", *map(str, folders))

    def look(self, *folders: PurePosixPath) -> tuple[Standing, ...]:
        """From `ls`, which every node has; `stat` is not POSIX's. One for all where their names are plain."""
        what, names = f"look at {folders[0]}", sorted({str(folder) for folder in folders})
        if all(map(_PLAIN.fullmatch, names)):
            lines = decoded(self._ask(what, "orch_looks_at_all", *names)).splitlines()
            if len(lines) == len(names) and all(map(str.endswith, lines, (f" {name}" for name in names))):
                found = dict(zip(names, map(_standing, lines), strict=True))
                return tuple(found[str(folder)] for folder in folders)
        answer = self._ask(what, "orch_looks", *map(str, folders))
        return tuple(map(_standing, decoded(answer).split(SEPARATOR)[1:]))

    def resolve(self, folder: PurePosixPath) -> PurePosixPath:
        """By the shell's `cd -P`."""
        return PurePosixPath(decoded(self._ask(f"find {folder}", "orch_resolve", str(folder))))

    def names(self, folder: PurePosixPath) -> frozenset[str]:
        """All of them."""
        return names_of(self._ask(f"list {folder}", "orch_list", str(folder)))

    def read(self, path: PurePosixPath) -> bytes | None:
        """The first of a file; a link is refused."""
        answer = self._ask(f"read {path}", "orch_head", str(path), str(own.MOST_OF_A_MARK))
        if answer.code not in (0, ABSENT):
            raise RemoteError(f"{path} cannot be read (got {answer.last_line}, expected a plain file)")
        return None if answer.code == ABSENT else answer.stdout

    def write(self, path: PurePosixPath, data: bytes) -> None:
        """Through a temporary name."""
        self._ask(f"write {path}", "orch_mark", str(path), data.decode())


class SshLock:
    """The lock of one base folder on a node. Its methods raise RemoteError."""

    def __init__(self, ask: Asks, base: PurePosixPath) -> None:
        self._ask = ask
        self._base = base
        self._path = str(base / LOCK_NAME)

    def look(self) -> LockLook:
        """Reads it, with the node's clock and the shell that stands for us."""
        said = decoded(self._ask(f"look at the lock of {self._base}", "orch_lock_look", self._path))
        text, alive, uptime, boot, pid, ticks = said.split(SEPARATOR)[:6]
        return LockLook(
            text=text[1:] if text.startswith("1") else None,
            alive=alive == "1",
            uptime_s=float(uptime),
            boot_id=boot,
            pid=int(pid),
            start_ticks=int(ticks),
        )

    def make(self, text: str) -> bool:
        """Makes it; the shell's `set -C` is what makes that exclusive."""
        if fault := own.make_base(SshFolders(self._ask), self._base):
            raise RemoteError(fault)
        return self._ask(f"lock {self._base}", "orch_lock_make", self._path, text).code == 0

    def replace(self, text: str) -> None:
        """Renames another into its place."""
        self._ask(f"lock {self._base}", "orch_lock_replace", self._path, text)

    def free(self, text: str) -> None:
        """Puts it aside, and back if it turns out to be another by now."""
        self._ask(f"unlock {self._base}", "orch_lock_free", self._path, text)

    def relieve(self, holder: Holder) -> None:
        """Ends the shell of a controller that is gone, which behind a black hole does not know."""
        process = (holder.pid, holder.start_ticks, holder.boot_id)
        if not is_ours(process):
            self._ask("end the shell of an earlier controller", "orch_relieve", *map(str, process))


def decoded(answer: Answer) -> str:
    """Text as the node's file names are: any bytes."""
    return answer.stdout.decode("utf-8", "surrogateescape")


def names_of(answer: Answer) -> frozenset[str]:
    """Names as `orch_list` gives them; nothing else ends a name than a slash."""
    return frozenset(decoded(answer).split("/")[:-1])


def _standing(line: str) -> Standing:
    match = _LISTED.match(line)
    if match is None:
        raise RemoteError(f"`ls` says nothing that can be read (got {line!r}, expected mode and owner)")
    kind, letters, uid = match.groups()
    mode = sum(bit for letter, bit in zip(letters, _BITS, strict=True) if letter not in "-ST")
    mode += sum(bit for place, bit in _SPECIAL.items() if letters[place] in "sStT")
    return Standing(kind == "d", int(uid), mode)
