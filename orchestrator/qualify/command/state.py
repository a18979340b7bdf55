"""What one role published, as files of the bundle; and how two such states differ.

Knows the two ways in which a run may say that its checkpoints are compared: as tensors, or byte by byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.qualify.command import tensors
from orchestrator.qualify.command.invocation import OUT
from orchestrator.qualify.view import View

STRANGERS = "strangers"  # bundle file with the names of what was published and is no file


@dataclass(frozen=True)
class State:
    """A published state.

    Attributes:
        view: the bundle.
        names: name below the published one -> file of the bundle; the name of a single file is empty.
        kind: `tensors` or `files`.
    """

    view: View
    names: Mapping[str, str]
    kind: str

    @property
    def files(self) -> dict[str, bytes]:
        """Name below the published one -> bytes."""
        return {name: self.view.bytes(file) or b"" for name, file in self.names.items()}

    def tensors(self) -> dict[str, tensors.Tensor]:
        """Its tensors.

        Raises:
            TensorsError: it is no set of tensors, or a word is not finite.
        """
        return tensors.read(self.files)

    def fault(self) -> str:
        """Why it is no state that can be compared; empty if it is one."""
        if self.kind != "tensors":
            return ""
        try:
            self.tensors()
        except tensors.TensorsError as error:
            return str(error)
        return ""


def published(view: View, launch: str, role: str) -> State | None:
    """What a role of a launch published; None if nothing is there under the published name.

    Args:
        view: the bundle.
        launch: folder of the launch, as the manifest names it.
        role: its name.
    """
    if view.command is None:
        raise TypeError("only a program of the user's own publishes states of this kind")
    at = view.bundle / launch / role / OUT
    if _is_plain(at):
        paths = {"": at}
    else:
        found = sorted(filter(_is_plain, at.rglob("*"))) if at.is_dir() and not at.is_symlink() else []
        paths = {path.relative_to(at).as_posix(): path for path in found}
    names = {name: path.relative_to(view.bundle).as_posix() for name, path in paths.items()}
    return State(view, names, view.command.program.checkpoint) if names else None


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def restored(view: View, launch: str) -> dict[str, str]:
    """What every role of a launch published, as a later one is given it; empty if one published nothing."""
    found: dict[str, str] = {}
    last = Path(OUT).name
    for role in view.roles:
        state = published(view, launch, role)
        if state is None:
            return {}
        found |= {f"{role}/{last}/{name}".rstrip("/"): file for name, file in state.names.items()}
    return found


def difference(expected: State, got: State) -> str:
    """What differs first: a tensor's word, or a file's byte; empty if the states are the same.

    Raises:
        TensorsError: one of them is no set of tensors.
    """
    if expected.kind == "tensors":
        return tensors.difference(expected.tensors(), got.tensors())
    left, right = expected.files, got.files
    for name in sorted({*left, *right}):
        shown = name or "the file"
        if name not in left or name not in right:
            return f"{shown} is {'new' if name not in left else 'not there'}"
        if left[name] != right[name]:
            at = tensors.first_byte(left[name], right[name])
            one, other = (data[at : at + 1].hex() or "its end" for data in (right[name], left[name]))
            return f"{shown} at byte {at}: {one}, expected {other}"
    return ""
