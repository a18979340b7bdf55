"""One launch: every role of a run (or some of them) started once, from files and a binding.

Knows how a launch is written down (`launch.json`) and what it leaves in the bundle; must not know what it
proves: that is its step's judge's to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence.canonical import dumps, loads
from evidence.files import write_whole
from orchestrator.build.binding import Binding
from orchestrator.qualify.command.invocation import Invocation

_VERSION = re.compile(r"[0-9]{1,15}", re.ASCII)
OWN = "own"  # the role's program of this lane's plan
SWAPPED = "swapped"  # the same, for the instruction set that the resumed part of the split run has
WITNESS = "witness"  # the same role's program over the words that show the order of additions
OTHER = "other"  # the same role's program of another plan: the frame-identity control
FOREIGN = "foreign"  # the same role's program of the same plan, for a product that no card is
FROM_PLAN = "plan"  # a samples file that holds exactly the plan's words


@dataclass(frozen=True)
class PlacedFile:
    """A file that lay in the work folder when the program started.

    Attributes:
        name: in the work folder (`samples`, `restore/manifest.json`).
        sha256: of its bytes.
        source: bundle file that it was copied from, or `plan`.
    """

    name: str
    sha256: str
    source: str


@dataclass(frozen=True)
class Start:
    """One role's part of a launch.

    Attributes:
        role: its name.
        program: `own`, `swapped`, `witness`, `other` or `foreign`.
        binding: the deployment bound in; of a user's own program, how it is called.
        files: what lay beside the executable.
        node: where it ran.
        executable_sha256: of the bound executable, as made here.
        node_sha256: of the executable as read back on the node.
    """

    role: str
    program: str
    binding: Binding | Invocation
    files: tuple[PlacedFile, ...]
    node: str = ""
    executable_sha256: str = ""
    node_sha256: str = ""

    @property
    def bound(self) -> Binding:
        """The deployment of a native role.

        Raises:
            TypeError: it is a program of the user's own.
        """
        if isinstance(self.binding, Invocation):
            raise TypeError(f"{self.role} is no native role")
        return self.binding

    @property
    def called(self) -> Invocation:
        """How a program of the user's own is called.

        Raises:
            TypeError: it is a native role.
        """
        if not isinstance(self.binding, Invocation):
            raise TypeError(f"{self.role} is a native role")
        return self.binding

    def as_json(self) -> dict[str, Any]:
        """As in `launch.json`."""
        return {
            "role": self.role,
            "program": self.program,
            "binding": self.binding.as_json(),
            "files": [
                {"name": file.name, "sha256": file.sha256, "source": file.source} for file in self.files
            ],
            "node": self.node,
            "executable_sha256": self.executable_sha256,
            "node_sha256": self.node_sha256,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Start:
        """The inverse of `as_json`."""
        return cls(
            role=value["role"],
            program=value["program"],
            binding=_binding(value["binding"]),
            files=tuple(PlacedFile(file["name"], file["sha256"], file["source"]) for file in value["files"]),
            node=value["node"],
            executable_sha256=value["executable_sha256"],
            node_sha256=value["node_sha256"],
        )


def _binding(value: dict[str, Any]) -> Binding | Invocation:
    return Invocation.from_json(value) if "argv" in value else Binding.from_json(value)


@dataclass(frozen=True)
class Launch:
    """A named set of starts."""

    name: str
    starts: tuple[Start, ...]

    def write(self, folder: Path) -> None:
        """Writes `launch.json` into the launch's folder of the bundle."""
        folder.mkdir(parents=True, exist_ok=True)
        content = {
            "schema": "orch-launch/v1",
            "launch": self.name,
            "starts": [start.as_json() for start in self.starts],
        }
        write_whole(folder / "launch.json", dumps(content))

    @classmethod
    def read(cls, folder: Path) -> Launch:
        """Reads `launch.json`.

        Raises:
            OSError, ValueError, KeyError, TypeError: it is not there, or not whole.
        """
        content = loads((folder / "launch.json").read_bytes())
        return cls(content["launch"], tuple(Start.from_json(start) for start in content["starts"]))


@dataclass(frozen=True)
class ProgressLine:
    """One line of a role's `progress`: version, state digest, and the loss that its update read, as bits."""

    version: int
    state: str
    loss: str


@dataclass(frozen=True)
class RoleRecord:
    """What one role left behind.

    Attributes:
        role: its name.
        exit: exit code; None if its program's end was not seen.
        stdout: all of it.
        stderr: all of it.
        progress: the whole lines.
        is_progress_whole: whether nothing follows the last whole line.
        folder: where this lies.
    """

    role: str
    exit: int | None
    stdout: bytes
    stderr: bytes
    progress: tuple[ProgressLine, ...]
    is_progress_whole: bool
    folder: Path

    @property
    def checkpoint(self) -> tuple[str, ...]:
        """What it left in its checkpoint folder: shards, and at the root manifests."""
        folder = self.folder / "checkpoint"
        return tuple(sorted(path.name for path in folder.iterdir())) if folder.is_dir() else ()


def read_role(folder: Path, role: str) -> RoleRecord:
    """Reads a role's folder of a launch. A file that is not there reads as empty."""
    progress = _bytes(folder / "progress")
    return RoleRecord(
        role=role,
        exit=_exit(_bytes(folder / "exit")),
        stdout=_bytes(folder / "stdout"),
        stderr=_bytes(folder / "stderr"),
        progress=parse_progress(progress),
        is_progress_whole=not progress or progress.endswith(b"\n"),
        folder=folder,
    )


def _exit(data: bytes) -> int | None:
    """The exit code in the one form that is written; None for anything else."""
    text = data.decode("ascii", "replace").removesuffix("\n")
    return int(text) if text.isdecimal() and len(text) <= 3 and data == f"{int(text)}\n".encode() else None  # noqa: PLR2004  # 0 to 255


def parse_progress(data: bytes) -> tuple[ProgressLine, ...]:
    """The whole lines of a progress file; one cut by a kill is left out, a malformed one is version -1."""
    lines = []
    for line in data.split(b"\n")[:-1]:
        fields = line.decode("ascii", "replace").split(" ")
        if len(fields) == 3 and _VERSION.fullmatch(fields[0]):  # noqa: PLR2004  # version, state, loss
            lines.append(ProgressLine(int(fields[0]), fields[1], fields[2]))
        else:
            lines.append(ProgressLine(-1, "", ""))
    return tuple(lines)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return b""
