"""Looks at the cards of nodes: asked, kept word for word in the bundle, and read again from there by judges.

A card that is not the one pinned is refused before anything is done on its node. Knows which questions are
asked when; `orchestrator.probe` knows what the answers mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath

from evidence.files import write_many
from orchestrator.probe import Inventory, Question, Reading, commands, read
from orchestrator.qualify import devices
from orchestrator.qualify.devices import STAND_IN
from orchestrator.qualify.launch import SWAPPED
from orchestrator.qualify.session import Session
from orchestrator.qualify.view import View
from orchestrator.remote.base import Completed, Remote, RemoteError

FOLDER = "cards"
BRIEF = ("machine", "xml")
"""What is asked before every step: enough to know a card by its UUID and minor."""
_NONE = b"none\n"
_PARTS = ("stdout", "stderr", "exit")


def of_machine(node: Remote, *more: Reading) -> Inventory:
    """The cards of a machine as it tells of them now.

    Args:
        node: the machine.
        more: what was read of it otherwise, as by NVML.

    Raises:
        RemoteError: it refuses, or cannot be reached.
    """
    return read(dict(_asked(node, commands())), more)


def _asked(node: Remote, questions: Iterable[Question]) -> Iterator[tuple[str, Completed]]:
    """What a node says to each: a tool that hung is not asked again, and would leave a process each time."""
    hung = False
    for each in questions:
        if hung and each.is_of_tool:
            yield each.name, Completed(None, b"", b"")
            continue
        said = node.run(each.argv, deadline_s=each.deadline_s)
        hung = hung or (each.is_of_tool and said.exit is None)
        yield each.name, said


def nodes(view: View) -> tuple[str, ...]:
    """Nodes on which a role is bound to a card, in the roles' order."""
    bound = (*devices.cards(view).values(), *devices.cards(view, SWAPPED).values())
    return tuple(dict.fromkeys(card.node for card in bound))


def take(session: Session, folder: Path, *, brief: bool = False, patience_s: float | None = None) -> None:
    """Asks every node that has a bound card, and keeps what was said under an attempt's folder.

    Args:
        session: the run.
        folder: the attempt's.
        brief: whether it is a look before a step.
        patience_s: for all nodes together; those that do not answer in time have said nothing. None waits.

    Raises:
        RemoteError: a node refuses, or is lost.
        StopLaneError: the lane is to end now.
    """
    tasks = [(name, partial(_said, session, name, brief)) for name in nodes(session.view)]
    each = session.crew.each(tasks) if patience_s is None else session.crew.settle(tasks, patience_s)
    for (name, _), said in zip(tasks, each, strict=True):
        if isinstance(said, RemoteError):
            continue
        kept = {folder / FOLDER / name / part: data for part, data in said.items()}
        (folder / FOLDER / name).mkdir(parents=True, exist_ok=True)
        write_many(session.withheld(folder.parent.name, kept))


def _said(session: Session, name: str, brief: bool) -> dict[str, bytes]:  # noqa: FBT001  # one of two looks
    """A node's answers: file name -> bytes."""
    stand_in = session.roots[name] / STAND_IN if devices.is_simulated(session.view) else None
    found = {}
    for asked, said in _asked(session.nodes[name], _questions(stand_in, brief=brief)):
        code = _NONE if said.exit is None else f"{said.exit}\n".encode()
        for part, data in zip(_PARTS, (said.stdout, said.stderr, code), strict=True):
            found[f"{asked}.{part}"] = data
    return found


def _questions(stand_in: PurePosixPath | None, *, brief: bool) -> tuple[Question, ...]:
    return tuple(each for each in commands(stand_in) if not brief or each.name in BRIEF)


def place_stand_in(session: Session) -> None:
    """Puts the stand-in's `nvidia-smi`, cards and inventory where a simulated run's looks find them."""
    view, pinned = session.view, session.view.pinned_cards
    for name in pinned.files if pinned is not None and pinned.is_simulated else ():
        if not name.endswith(devices.LIBRARIES):
            for node in nodes(view):
                data, is_program = view.bytes(name) or b"", name.endswith("/nvidia-smi")
                session.nodes[node].put(data, session.roots[node] / name, executable=is_program)


def inventories(view: View, folder: str, *, brief: bool = False) -> dict[str, Inventory]:
    """What nodes said of their cards in an attempt: node -> inventory; those that said nothing are left out.

    Args:
        view: the bundle.
        folder: the attempt's, as the manifest names it.
        brief: whether it was a look before a step.
    """
    names = tuple(each.name for each in _questions(None, brief=brief))
    found = {}
    for node in nodes(view):
        said = {name: _read(view, f"{folder}/{FOLDER}/{node}/{name}") for name in names}
        if all(said.values()):
            found[node] = read({name: each for name, each in said.items() if each is not None})
    return found


def _read(view: View, name: str) -> Completed | None:
    out, err, code = (view.bytes(f"{name}.{part}") for part in _PARTS)
    if out is None or err is None or code is None:
        return None
    return Completed(None if code == _NONE else int(code), out, err)


def inputs(folder: str, node: str, *, brief: bool = False) -> tuple[str, ...]:
    """The bundle's files that a look at a node left."""
    return tuple(f"{folder}/{FOLDER}/{node}/{each.name}.stdout" for each in _questions(None, brief=brief))
