"""What the roles of a bundle's newest launch write: from the nodes while it runs, from the bundle afterwards.

Reads only, and takes no lock: whoever runs the lane is not disturbed. Must not know how a text is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from orchestrator.errors import UndecidedError, UsageError

if TYPE_CHECKING:
    from evidence.event import Event
    from orchestrator.remote.base import Remote

FILES: Final = {"stdout": "job/stdout", "stderr": "job/stderr", "progress": "progress"}
_EXIT: Final = "job/exit"
_LOOK_S: Final = 0.2
_MOST_AT_ONCE: Final = 1 << 20
_DEADLINE_S: Final = 30.0
# what follows the bytes that are known already, if it is a file; nothing else is an error of the node's
_REST: Final = '[ -f "$1" ] || exit 0; tail -c +"$2" -- "$1" | head -c "$3"'


@dataclass(frozen=True)
class Newest:
    """The launch that was begun last.

    Attributes:
        folder: of the launch, in the bundle.
        name: `step/attempt/launch`.
        jobs: role -> its work folder on its node.
        nodes: role -> its node's name.
    """

    folder: Path
    name: str
    jobs: Mapping[str, PurePosixPath]
    nodes: Mapping[str, str]


def newest(bundle: Path) -> Newest:
    """Finds the newest launch.

    Raises:
        UsageError: none was begun.
    """
    from orchestrator.qualify.launch import Launch

    started = [event for event in journal(bundle) if event.type == "orch.launch.started"]
    if not started:
        raise UsageError(f"no role of {bundle} has been started yet: there is nothing to read")
    data = started[-1].data
    name = "{step}/{attempt}/{launch}".format_map(data)
    folder = bundle / "steps" / name
    starts = Launch.read(folder).starts
    jobs = {role: PurePosixPath(job) for role, job in data["jobs"].items()}
    return Newest(folder, name, jobs, {start.role: start.node for start in starts})


def is_over(bundle: Path, launch: Newest) -> bool:
    """Says whether the bundle has all that the launch left."""
    return any(
        event.type == "orch.launch.finished"
        and "{step}/{attempt}/{launch}".format_map(event.data) == launch.name
        for event in journal(bundle)
    )


def journal(bundle: Path) -> tuple[Event, ...]:
    """Reads the stream of a bundle that somebody may be writing to."""
    from evidence.stream import StreamError, TornError, scan

    events: list[Event] = []
    try:
        events.extend(event for event, _ in scan(bundle / "stream.jsonl"))
    except TornError:
        pass  # the line is being written
    except (StreamError, OSError) as error:
        raise UndecidedError(f"{bundle}: the stream cannot be read: {error}") from error
    return tuple(events)


@dataclass
class Reader:
    """Gives what is new in every file of the launch, wherever it is now.

    Attributes:
        launch: whose files.
        roles: of whom.
        remotes: node -> the way to it; while it is empty, only the bundle is read.
        known: (role, file) -> bytes that were given.
    """

    launch: Newest
    roles: tuple[str, ...]
    remotes: Mapping[str, Remote]
    known: dict[tuple[str, str], int] = field(default_factory=dict)

    def from_nodes(self) -> Iterator[tuple[str, str, bytes]]:
        """Gives (role, file, bytes) of what the nodes have more."""
        return self._more(self._on_node)

    def from_bundle(self) -> Iterator[tuple[str, str, bytes]]:
        """Gives (role, file, bytes) of what the bundle has more."""
        return self._more(lambda role, name, at: _tail(self.launch.folder / role / name, at))

    def have_ended(self) -> bool:
        """Says whether every role has left its exit code on its node."""
        return all(
            self.remotes[self.launch.nodes[role]].get(self.launch.jobs[role] / _EXIT) is not None
            for role in self.roles
        )

    def _more(self, rest: Callable[[str, str, int], bytes]) -> Iterator[tuple[str, str, bytes]]:
        for role in self.roles:
            for name in FILES:
                is_full = True
                while is_full:  # a file that grows while it is read is read to where it ended once
                    data = rest(role, name, self.known.get((role, name), 0))
                    self.known[role, name] = self.known.get((role, name), 0) + len(data)
                    is_full = len(data) == _MOST_AT_ONCE
                    if data:
                        yield role, name, data

    def _on_node(self, role: str, name: str, at: int) -> bytes:
        path = self.launch.jobs[role] / FILES[name]
        argv = ["sh", "-c", _REST, "sh", str(path), str(at + 1), str(_MOST_AT_ONCE)]
        return self.remotes[self.launch.nodes[role]].run(argv, deadline_s=_DEADLINE_S).stdout


def _tail(path: Path, at: int) -> bytes:
    from evidence.files import open_regular

    try:
        with open(open_regular(path), "rb") as file:  # noqa: PTH123 - a descriptor
            file.seek(at)
            return file.read(_MOST_AT_ONCE)
    except OSError:
        return b""


def follow(bundle: Path, reader: Reader, show: Callable[[str, str, bytes], None]) -> None:
    """Shows what comes until the launch has ended, and then what the bundle has more."""
    while reader.remotes and not is_over(bundle, reader.launch):
        ended = reader.have_ended()
        for role, name, data in reader.from_nodes():
            show(role, name, data)
        if ended:
            break  # also where no controller is left to collect
        time.sleep(_LOOK_S)
    for role, name, data in reader.from_bundle():
        show(role, name, data)
