"""What the journal says was put on nodes and came back from them, held against the files of a bundle.

Pure. The acting side journals every file with its digest as it moves, and every answer with its own; what
lies in the bundle must be that. Knows native roles: what a program of the user's own left has no fixed names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from evidence.digest import sha256_bytes
from evidence.event import Event
from orchestrator.qualify.launched import Launched
from orchestrator.qualify.view import View

_CHECKPOINT = "checkpoint/"
_ALWAYS = ("stdout", "stderr")


@dataclass
class Transfers:
    """The last digest of every file that moved, by node and path.

    Attributes:
        put: of what lay on the node after it was put there.
        got: of what came back, by its folder: (node, folder) -> name -> SHA-256.
        redacted: files of the bundle in which something was withheld, so that their digest is another.
    """

    put: dict[tuple[str, str], str] = field(default_factory=dict)
    got: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    redacted: set[str] = field(default_factory=set)


def transfers(events: tuple[Event, ...]) -> Transfers:
    """All that moved in a run."""
    found = Transfers()
    for event in events:
        data = event.data
        if event.type == "orch.remote.put" and "sha256" in data:
            found.put[str(data["node"]), str(data["path"])] = str(data["sha256"])
        elif event.type == "orch.remote.get":
            folder, _, name = str(data["path"]).rpartition("/")
            found.got.setdefault((str(data["node"]), folder), {})[name] = str(data["sha256"])
        elif event.type == "orch.redacted":
            found.redacted.update(map(str, data["files"]))
    return found


def differing(launched: Launched, folders: Mapping[str, str], moved: Transfers) -> Iterator[str]:
    """Where a launch of native roles is not what was put and got, one sentence each.

    Args:
        launched: the launch.
        folders: role -> its work folder on its node, as the journal has it.
        moved: all that moved in the run.
    """
    for start in launched.launch.starts:
        folder, name = folders.get(start.role, ""), f"{launched.launch.name} {start.role}"
        placed = {"role": start.node_sha256, **{file.name: file.sha256 for file in start.files}}
        for file, sha256 in placed.items():
            if moved.put.get((start.node, f"{folder}/{file}")) != sha256:
                yield f"{name}: {file} is not what was put there"
        came = _came(moved, start.node, folder)
        for file in sorted({*came, *_there(launched, start.role), *_ALWAYS}):
            place = launched.file(start.role, file)
            is_same = came.get(file) == sha256_bytes(launched.view.bytes(place) or b"")
            if not is_same and place not in moved.redacted:
                yield f"{name}: {file} is not what came back"


def _there(launched: Launched, role: str) -> Iterator[str]:
    """What the bundle has of a role but its exit code, and what is collected while it runs."""
    folder = launched.view.bundle / launched.name / role
    if folder.is_dir():
        yield from (path.name for path in folder.iterdir() if path.is_file() and path.name != "exit")


def _came(moved: Transfers, node: str, folder: str) -> dict[str, str]:
    """What came back of a work folder: name in the bundle -> SHA-256."""
    found = {
        f"{_CHECKPOINT}{name}": sha256
        for name, sha256 in moved.got.get((node, f"{folder}/checkpoint"), {}).items()
    }
    for place in (folder, f"{folder}/job"):
        found |= moved.got.get((node, place), {})
    return found


def unheard(view: View, step: str, folder: str, moved: Transfers) -> Iterator[str]:
    """Kept answers of nodes on their cards that nobody gave in a step's finished attempt, one sentence each.

    Args:
        view: the bundle.
        step: its name.
        folder: of the attempt, as the manifest names it.
        moved: all that moved in the run.
    """
    given = _given(view, step)
    for path in sorted((view.bundle / folder).glob("cards/*/*.stdout")):
        name = path.relative_to(view.bundle).as_posix()
        begin = name.removesuffix("stdout")
        said, complaint, code = (view.bytes(f"{begin}{part}") or b"" for part in ("stdout", "stderr", "exit"))
        answer = (
            path.parent.name,
            code.decode("ascii", "replace").strip(),
            sha256_bytes(said),
            len(complaint),
        )
        if answer not in given and not moved.redacted.intersection((name, f"{begin}stderr")):
            yield f"{path.parent.name} never gave the answer {path.relative_to(view.bundle / folder)}"


def _given(view: View, step: str) -> set[tuple[str, str, str, int]]:
    """Answers of the step's last attempt: node, exit code, digest, and bytes on standard error."""
    found: set[tuple[str, str, str, int]] = set()
    for event in view.events():
        data = event.data
        if event.type == "orch.step.started" and data["step"] == step:
            found = set()
        elif event.type == "orch.remote.run" and "stdout_sha256" in data:
            code = "none" if data["exit"] is None else str(data["exit"])
            found.add((str(data["node"]), code, str(data["stdout_sha256"]), int(data["stderr"])))
        elif event.type == "orch.step.finished" and data["step"] == step:
            return found
    return found
