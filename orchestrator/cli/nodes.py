"""Verbs that look at a rental's nodes: all of them at once, one answer for each, whatever the others say.

Knows how to ask and how an answer is shown; must not know what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from orchestrator.cli.output import complain, size_text
from orchestrator.errors import Label, OrchError

if TYPE_CHECKING:
    from orchestrator.qualify.fitness import Examined
    from orchestrator.remote.base import NodeFacts, Remote
    from orchestrator.spec.pods import Node, PodsSpec

T = TypeVar("T")
MOST_AT_ONCE: Final = 48
DEFAULT: Final = Path("pods.yaml")


@contextmanager
def opened(nodes: Iterable[Node]) -> Iterator[Mapping[str, Remote]]:
    """Give the way to every node, which connects when it is first asked; let go of all at the end."""
    from orchestrator.remote.ssh import Ssh

    remotes: dict[str, Remote] = {node.name: Ssh(node) for node in nodes}
    try:
        yield remotes
    finally:
        at_once(remotes, lambda name: remotes[name].close())


def at_once(names: Iterable[str], do: Callable[[str], T]) -> dict[str, T | OrchError]:
    """Do something for every name at the same time; gives in order what came of each, or why nothing did."""
    names = tuple(names)

    def tried(name: str) -> T | OrchError:
        try:
            return do(name)
        except OrchError as error:
            return error

    with ThreadPoolExecutor(min(MOST_AT_ONCE, len(names)) or 1) as pool:
        return dict(zip(names, pool.map(tried, names), strict=True))


def each_node(nodes: Mapping[str, Node], do: Callable[[Node, Remote], T]) -> dict[str, T | OrchError]:
    """Do something on every node at once; gives in order what came of each, or why nothing did."""
    with opened(nodes.values()) as remotes:
        return at_once(nodes, lambda name: do(nodes[name], remotes[name]))


def one_node(node: Node, do: Callable[[Node, Remote], T]) -> T:
    """Do something on one node.

    Raises:
        RemoteError: the node refuses, by label, or cannot be reached.
    """
    with opened((node,)) as remotes:
        return do(node, remotes[node.name])


def look(node: Node, remote: Remote) -> Examined:
    """Examine a node as it is declared, its cards too."""
    from orchestrator.qualify.fitness import examine
    from orchestrator.qualify.looks import of_machine

    return replace(examine(remote, node.remote_root, node.emulators), cards=of_machine(remote))


def worst_exit(answers: Mapping[str, object]) -> int:
    """Give the exit code of what nodes answered: refused goes before unreachable."""
    codes = {answer.exit_code for answer in answers.values() if isinstance(answer, OrchError)}
    return min(codes, default=0)


def said_of(name: str, error: OrchError | str) -> str:
    """Give a node's refusal with its name in front, once."""
    return f"{name}: {str(error).replace(f': {name}: ', ': ', 1)}"


def read_rental(path: Path | None) -> PodsSpec:
    """Read the pods file that a command line names, or the one of the working folder.

    Raises:
        RefusedError: it is not there, or is wrong.
    """
    from orchestrator.spec.read import read_pods

    path = path or DEFAULT
    if str(path) in ("local", "simulated") and not path.exists():
        complain(f"--pods {path} is for `orch run`, which has no rental then; here a pods file is wanted")
    elif not path.exists():
        complain(f"there is no {path}: `orch pods add NAME 'ssh ...'` writes one, --pods FILE names another")
    return read_pods(path)


def seen_entry(facts: NodeFacts) -> dict[str, str | int | None]:
    """Give what a node says of itself as a pods file keeps it."""
    memory = facts.memory_bytes
    return {
        "machine": facts.machine,
        "kernel": facts.kernel,
        "cpus": facts.cpus,
        "memory_mib": None if memory is None else memory >> 20,
        "boot_id": facts.boot_id,
    }


def pinned_cards(seen: Examined) -> dict[str, int]:
    """Give the cards of a node as a pods file pins them, UUID to minor; those that lack one are left out."""
    cards = seen.cards.cards if seen.cards else ()
    pairs = {card.uuid.known: card.minor.known for card in cards}
    return {uuid: minor for uuid, minor in pairs.items() if uuid is not None and minor is not None}


def card_changes(node: Node, seen: Examined) -> Iterator[str]:
    """Say which pinned cards are others by now, and which are there and not pinned."""
    now = pinned_cards(seen)
    for uuid, minor in node.cards.items():
        if now.get(uuid) != minor:
            at = f"has minor {now[uuid]}" if uuid in now else "is not there"
            yield f"{Label.DEVICE_UUID}: card {uuid} had minor {minor} and {at}"
    for uuid in (uuid for uuid in now if uuid not in node.cards):
        yield f"card {uuid}, minor {now[uuid]}, is not pinned"


def changes(node: Node, seen: Examined) -> tuple[str, ...]:
    """Say what a node says otherwise than when it was last looked at."""
    now = seen_entry(seen.facts)
    found = [
        f"{key} was {node.seen[key]} and is {value}"
        for key, value in now.items()
        if key != "boot_id" and node.seen.get(key) not in (None, value)
    ]
    if node.seen.get("boot_id") not in (None, now["boot_id"]):
        found.append("it was booted anew")
    return (*found, *card_changes(node, seen))


def examined_json(seen: Examined) -> dict[str, Any]:
    """Give a look at a node as the object that `--json` prints."""
    from orchestrator.qualify.fitness import faults

    return {
        **seen_entry(seen.facts),
        "quota_bytes": seen.facts.quota_bytes,
        "remote_root": str(seen.root),
        "free_bytes": seen.room.free_bytes,
        "free_inodes": seen.room.free_inodes,
        "clock_offset_ns": seen.clock.offset_ns,
        "clock_error_ns": seen.clock.error_ns,
        "lock": seen.lock,
        "emulators": dict(seen.emulators),
        "cards": seen.cards.as_json() if seen.cards else None,
        "faults": [
            {"label": str(each.label), "message": each.message, "hint": each.hint} for each in faults(seen)
        ],
    }


def examined_rows(seen: Examined) -> list[tuple[str, str]]:
    """Give a look at a node as a person reads it."""
    from orchestrator.qualify.fitness import faults

    facts, room = seen.facts, seen.room
    memory = (
        "memory not known" if facts.memory_bytes is None else f"{size_text(facts.memory_bytes)} of memory"
    )
    free = "free room not known" if room.free_bytes is None else f"{size_text(room.free_bytes)} free"
    missing = ", ".join(seen.missing)
    return [
        ("machine", f"{facts.machine}, Linux {facts.kernel}, {facts.cpus} processors, {memory}"),
        (
            "folder",
            f"{seen.root}, {free}; {seen.place.fault or 'nothing forbids writing and executing there'}",
        ),
        ("tools", f"no {missing}" if missing else "all that are needed"),
        ("clock", clock_text(seen.clock.offset_ns, seen.clock.error_ns)),
        *(
            (f"emulator for {target}", answer or "does not answer")
            for target, answer in seen.emulators.items()
        ),
        *([("lock", seen.lock)] if seen.lock else []),
        *cards_rows(seen),
        *(("fault", str(fault)) for fault in faults(seen)),
    ]


def cards_rows(seen: Examined) -> Iterator[tuple[str, str]]:
    """Give the cards of a node, one a row, with all that is wrong with their list."""
    inventory = seen.cards
    if inventory is None:
        return
    simulated = ", simulated" if inventory.is_simulated else ""
    for card in inventory.cards:
        yield "card", f"minor {card.minor}, {card.product}, {card.uuid}{simulated}"
    if not inventory.cards:
        yield "cards", "; ".join(fault.message for fault in inventory.faults) or "none"
        return
    yield "driver", str(inventory.driver)
    for fault in inventory.faults:
        yield "cards", str(fault)


def clock_text(offset_ns: int, error_ns: int) -> str:
    """Say how far a node's clock is from this machine's; nothing where that is within the error."""
    if abs(offset_ns) <= error_ns:
        return f"as here, to {error_ns / 1e6:.1f} ms"
    side = "ahead of" if offset_ns > 0 else "behind"
    return f"{abs(offset_ns) / 1e9:.3f} s {side} this machine's, to {error_ns / 1e6:.1f} ms"
