"""A checkpoint read as tensors, with everything that is wrong with it, whoever published it.

A native set's fields are tensors of one dimension. A program of the user's own has its own tensors, named
after their role too where several publish; a state of its own form is a tensor of bytes for each file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.oracle.manifest import CheckpointError
from orchestrator.oracle.reference import encoded
from orchestrator.oracle.survey import Fault, Outline, outline, survey
from orchestrator.qualify.command.state import State
from orchestrator.qualify.command.tensors import NotFiniteError, Tensor, Tensors, TensorsError
from orchestrator.qualify.sets import OwnSet, Set


@dataclass(frozen=True)
class Reading:
    """A checkpoint as read.

    Attributes:
        tensors: name -> tensor, in the order of the state.
        outline: of a native set; None for a program of the user's own.
        faults: all that is wrong; nothing of the tensors is to be believed then.
        is_decided: whether the `state` digest was recomputed.
    """

    tensors: Tensors
    outline: Outline | None
    faults: tuple[Refusal, ...]
    is_decided: bool = True


def outline_of(found: Set) -> tuple[Outline, tuple[Refusal, ...]]:
    """What the manifests of a set say, and what is wrong with them; no shard is read.

    Raises:
        RefusedError: nothing can be said of it.
    """
    try:
        said = outline(found.manifest.name, found.read, found.system)
    except CheckpointError as error:
        raise RefusedError([_unreadable(found, error)]) from error
    return said, tuple(_refusal(found, each) for each in said.faults)


def reading(found: Set | OwnSet) -> Reading:
    """Reads all of it."""
    if isinstance(found, OwnSet):
        return _own(found.states)
    try:
        said = survey(found.manifest.name, found.read, found.system)
    except CheckpointError as error:
        return Reading({}, None, (_unreadable(found, error),))
    tensors = {
        name: Tensor(said.outline.word.dtype, (len(words),), encoded(words))
        for name, words in said.words.items()
    }
    faults = tuple(_refusal(found, each) for each in said.faults)
    return Reading(tensors, said.outline, faults, said.is_decided)


def _unreadable(found: Set, error: CheckpointError) -> Refusal:
    return Refusal(error.label, str(error).removeprefix(f"{error.label}: "), Where(str(found.manifest)))


def _refusal(found: Set, fault: Fault) -> Refusal:
    path = found.path(fault.file) or found.manifest.with_name(fault.file)
    return Refusal(fault.label, fault.message, Where(str(path)))


def _own(states: Mapping[str, State]) -> Reading:
    tensors: dict[str, Tensor] = {}
    faults: list[Refusal] = []
    for role, state in states.items():
        begin = f"{role}/" if len(states) > 1 else ""
        try:
            tensors |= {f"{begin}{name}": each for name, each in _of_state(state).items()}
        except TensorsError as error:
            label = Label.NON_FINITE if isinstance(error, NotFiniteError) else Label.CHECKPOINT_CHUNK
            message = str(error).removeprefix(f"{label}: ")
            faults.append(Refusal(label, message, Where(str(_at(state)))))
    return Reading(tensors, None, tuple(faults))


def _of_state(state: State) -> Tensors:
    if state.kind == "tensors":
        return state.tensors()
    return {name or "state": Tensor("U8", (len(data),), data) for name, data in state.files.items()}


def _at(state: State) -> Path:
    return state.view.bundle / min(state.names.values())
