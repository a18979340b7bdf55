"""A program of the user's own on its node: what is put there, and what is brought back of it.

Knows the work folder of such a program; must not know what it was started for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from evidence.names import fault, printable
from orchestrator.qualify.command import progress
from orchestrator.qualify.command.invocation import OUT, PROGRESS
from orchestrator.qualify.command.state import STRANGERS
from orchestrator.qualify.launch import Start
from orchestrator.redact import Secrets
from orchestrator.remote.base import MOST_BYTES, Job, NotPlainError, Remote

MARGIN_S = 5
MOST_FILES = 10_000
_DEADLINE_S = 60.0
_OUTPUTS = {"job/stdout": "stdout", "job/stderr": "stderr", PROGRESS: PROGRESS}
_HALF_WRITTEN = re.compile(r"\..*\.part")  # as `evidence.files.part_name` calls what is being written


def job(start: Start, folder: PurePosixPath, root: PurePosixPath) -> Job:
    """The job of a start in its work folder, under the run's folder on the node."""
    called = start.called
    return Job(
        folder=folder,
        argv=called.words(folder, root),
        deadline_s=called.run_ms // 1000 + MARGIN_S,
        environment=called.variables(folder, root),
        inherit=called.inherit,
    )


def collect(node: Remote, folder: PurePosixPath, secrets: Secrets) -> Iterator[tuple[str, bytes]]:
    """What a program wrote, and left under the name that it was to publish: (name in the bundle, bytes).

    Links, sockets and the like, names that no bundle may hold (with a secret in them, say), what is too much
    to be held, and a folder with nothing in it are only named, in a file of their own.
    """
    odd = ("(", "!", "-type", "f", "!", "-type", "d", ")", "-o", "-name", "*\n*")
    strangers, _ = _find(node, folder, *odd)
    files, is_all = _find(node, folder, "-type", "f")
    if files and not is_all:
        strangers.append(f"{OUT} has a folder that cannot be read")
    if not files and not strangers and _is_there(node, folder / OUT):
        strangers.append(f"{OUT} is an empty folder")
    if len(files) > MOST_FILES:
        strangers.append(f"{len(files)} files, of which {MOST_FILES} are looked at")
    published = {name: name for name in files[:MOST_FILES]}
    left = MOST_BYTES
    for place, name in {**_OUTPUTS, **published}.items():
        try:
            data = node.get(folder / place, most=left) if _is_kept(name, secrets) else None
        except NotPlainError:
            strangers.append(f"{place} (no regular file, or more than {left} bytes)")
            continue
        if data is not None:
            left -= len(data)
            yield name, data
        elif place in published:
            strangers.append(name)
    if strangers:
        yield STRANGERS, "".join(f"{printable(name)}\n" for name in sorted(strangers)).encode()


def _is_kept(name: str, secrets: Secrets) -> bool:
    """Whether a bundle can hold a file of this name; its own half-written ones have one of theirs."""
    is_ours = _HALF_WRITTEN.fullmatch(PurePosixPath(name).name) is not None
    return not is_ours and fault(name) is None and secrets.text(name) == name


def _is_there(node: Remote, path: PurePosixPath) -> bool:
    return node.run(["test", "-e", str(path)], deadline_s=_DEADLINE_S).exit == 0


def _find(node: Remote, folder: PurePosixPath, *which: str) -> tuple[list[str], bool]:
    """What of that sort was published, by its name below the work folder, sorted; and whether that is all.

    The lines of a name that has several are no names; whoever looks for such a name finds it.
    """
    found = node.run(["find", str(folder / OUT), *which], deadline_s=_DEADLINE_S)
    paths = found.stdout.decode("utf-8", "surrogateescape").split("\n")
    names = [path.removeprefix(f"{folder}/") for path in paths]
    return sorted(name for name in names if name == OUT or name.startswith(f"{OUT}/")), found.exit == 0


def tail(node: Remote, folder: PurePosixPath, size: int) -> bytes:
    """The end of what a program says of its progress; nothing if it made something else of the file."""
    try:
        return node.tail(folder / PROGRESS, size)
    except NotPlainError:
        return b""


def last_line(tail: bytes) -> tuple[int, float] | None:
    """Update and loss of the last whole line of progress, of which the first may have been cut in half."""
    lines, _ = progress.parse(tail.partition(b"\n")[2] or tail)
    return (lines[-1].update, lines[-1].value) if lines else None
