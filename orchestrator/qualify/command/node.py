"""A program of the user's own on its node: what is put there, and what is brought back of it.

Knows the work folder of such a program; must not know what it was started for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from evidence.names import fault
from orchestrator.qualify.command import progress
from orchestrator.qualify.command.invocation import OUT
from orchestrator.qualify.command.state import STRANGERS
from orchestrator.qualify.launch import Start
from orchestrator.remote.base import Job, Remote

MARGIN_S = 5
_DEADLINE_S = 60.0


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


def collect(node: Remote, folder: PurePosixPath) -> Iterator[tuple[str, bytes]]:
    """What a program left under the name that it was to publish: (name below the work folder, bytes).

    Links, sockets and the like, names that no bundle may hold, and a folder with nothing in it are only
    named, in a file of their own.
    """
    strangers = _find(node, folder, "!", "-type", "f", "!", "-type", "d")
    files = _find(node, folder, "-type", "f")
    if not files and not strangers and _is_there(node, folder / OUT):
        strangers.append(f"{OUT} is an empty folder")
    for name in files:
        data = node.get(folder / name) if fault(name) is None else None
        if data is None:
            strangers.append(name)
        else:
            yield name, data
    if strangers:
        yield STRANGERS, "".join(f"{name}\n" for name in sorted(strangers)).encode()


def _is_there(node: Remote, path: PurePosixPath) -> bool:
    return node.run(["test", "-e", str(path)], deadline_s=_DEADLINE_S).exit == 0


def _find(node: Remote, folder: PurePosixPath, *which: str) -> list[str]:
    """What of that sort was published, by its name below the work folder, sorted."""
    found = node.run(["find", str(folder / OUT), *which], deadline_s=_DEADLINE_S)
    paths = found.stdout.decode("utf-8", "replace").split("\n")
    return sorted(path.removeprefix(f"{folder}/") for path in paths if path)


def last_line(tail: bytes) -> tuple[int, float] | None:
    """Update and loss of the last whole line of progress, of which the first may have been cut in half."""
    lines, _ = progress.parse(tail.partition(b"\n")[2] or tail)
    return (lines[-1].update, lines[-1].value) if lines else None
