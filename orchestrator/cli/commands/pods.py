"""`orch pods`: write a rental down as it is found, look at it again, and accept what has changed."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrator.cli.arguments import add_json
from orchestrator.cli.meeting import Met, meet
from orchestrator.cli.nodes import (
    DEFAULT,
    changes,
    clock_text,
    each_node,
    examined_json,
    examined_rows,
    look,
    read_rental,
    said_of,
    worst_exit,
)
from orchestrator.cli.output import complain, print_json, say, size_text, table
from orchestrator.errors import Label, OrchError, Refusal, RefusedError, UsageError, Where

if TYPE_CHECKING:
    from orchestrator.qualify.fitness import Examined
    from orchestrator.spec.pods import Node, PodsSpec
    from orchestrator.spec.ssh_line import SshLine

_TRUST: Final = {
    "first-use": "pinned as it was first seen: compare it with what the provider shows",
    "known-hosts": "the one that known_hosts has",
    "told": "the one that was named",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `add`, `show` and `pin`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="add|show|pin")
    add = actions.add_parser(
        "add", help="connect once, pin the host key and the cards, and write the node down"
    )
    show = actions.add_parser("show", help="look at all nodes again, and say what changed")
    pin = actions.add_parser("pin", help="accept a node as it is now, another host key and other cards too")
    add.add_argument("name", metavar="NAME", help="what to call the node: a, b, gpu-1")
    add.add_argument(
        "line", metavar="SSH", type=_quoted, help="the SSH command that the provider shows, in quotes"
    )
    _add_options(add)
    pin.add_argument("name", metavar="NAME", help="the node")
    for action in (add, pin):
        action.add_argument(
            "--accept-host-key", metavar="FINGERPRINT", help="the only host key to accept: SHA256:..."
        )
    for action in (add, show, pin):
        action.add_argument("--pods", type=Path, metavar="FILE", help=f"the pods file (default: {DEFAULT})")
        add_json(action)


def _add_options(add: argparse.ArgumentParser) -> None:
    add.add_argument("--price", metavar="'0.44 USD/h'", help="what an hour costs")
    add.add_argument("--cap", metavar="'5 USD'", help="what the rental may cost in all")
    add.add_argument("--owned", action="store_true", help="nobody bills this machine by the hour")
    add.add_argument("--pod", metavar="ID", help="what the provider calls it")
    add.add_argument("--address", metavar="A", help="where the other nodes reach it, for transport direct")
    add.add_argument("--remote-root", metavar="DIR", help="the folder for everything of ours there")
    add.add_argument(
        "--emulator",
        metavar="TARGET=COMMAND",
        action="append",
        default=[],
        help="an emulator that is there, such as aarch64-linux=qemu-aarch64-static",
    )


def _quoted(line: str) -> str:
    """Refuse the first word of a command that a shell has taken apart."""
    if line.strip() == "ssh":
        raise argparse.ArgumentTypeError("quote the whole command: 'ssh user@host -p PORT -i KEY'")
    return line


def run(args: argparse.Namespace) -> int:
    """Do one of the three."""
    actions = {"add": _add, "show": _show, "pin": _pin}
    return actions[args.action](args)


def _add(args: argparse.Namespace) -> int:
    """Refuse what is wrong already, connect, and only then write."""
    from orchestrator.spec.pods_file import add_node, check_node
    from orchestrator.spec.ssh_line import parse

    path: Path = args.pods or DEFAULT
    line = parse(args.line)
    entry = _entry(args, line)
    rental = _rental(args, path)
    met = meet(check_node(path, args.name, entry, rental).nodes[args.name], args.accept_host_key)
    spec = add_node(path, args.name, {**entry, **met.entry}, rental)
    if args.json:
        print_json({**_met_json(spec, args.name, met), "ignored": list(line.ignored)})
        return 0
    if line.ignored:
        complain(f"left out, since it changes nothing here: {', '.join(line.ignored)}")
    more = []
    if started := rental.get("started"):
        more.append(("rental", f"counted from now on, {started}: correct `started` if it began before"))
    if len(spec.nodes) > 1:
        more.append(("roles", f"reach each other by {spec.transport}"))
    _report(spec, args.name, met, more)
    say(f"\nnext:\n  orch doctor --pods {path} LANE\n  orch run --pods {path} LANE")
    return 0


def _entry(args: argparse.Namespace, line: SshLine) -> dict[str, Any]:
    """Give what the command line says of the node, in the order of the file."""
    if args.owned == (args.price is not None):
        raise UsageError(
            "one of the two is needed: --price '0.44 USD/h', what an hour costs; --owned if nobody bills it"
        )
    key = line.key
    if key is not None and not key.startswith(("/", "~")):
        key = os.path.abspath(key)  # noqa: PTH100 - links stay
    emulators = dict(_pair(each) for each in args.emulator)
    entry = {
        "host": line.target,
        "port": line.port,
        "key": key,
        "pod": args.pod,
        "price": args.price,
        "owned": args.owned or None,
        "address": args.address,
        "remote_root": args.remote_root,
        "emulators": emulators or None,
    }
    return {name: value for name, value in entry.items() if value is not None}


def _pair(text: str) -> tuple[str, str]:
    target, equals, command = text.partition("=")
    if not (equals and target and command):
        raise UsageError(f"--emulator: got `{text}`, expected TARGET=COMMAND")
    return target, command


def _rental(args: argparse.Namespace, path: Path) -> dict[str, str]:
    """Give what is to stand under `rental`: a first price needs when it began and what it may cost."""
    began = path.exists() and read_rental(path).started is not None
    if args.price is None and args.cap is None:
        return {}
    if began:
        return {"cap": args.cap} if args.cap is not None else {}
    if args.cap is None:
        raise UsageError("--cap '5 USD' is needed with the first price: what the rental may cost in all")
    return {"started": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "cap": args.cap}


def _met_json(spec: PodsSpec, name: str, met: Met) -> dict[str, Any]:
    return {
        "pods": str(spec.path),
        "node": name,
        "transport": spec.transport,
        "host_key": met.fingerprint,
        "host_key_type": met.kind,
        "trust": met.trust,
        **examined_json(met.seen),
    }


def _report(spec: PodsSpec, name: str, met: Met, more: Sequence[tuple[str, str]] = ()) -> None:
    rows = [("host key", f"{met.kind} {met.fingerprint}, {_TRUST[met.trust]}"), *examined_rows(met.seen)]
    say(table(("", ""), [*rows, ("written", f"{spec.path}, node {name}"), *more]))


def _show(args: argparse.Namespace) -> int:
    spec = read_rental(args.pods)
    answers = each_node(spec.nodes, look)
    found = {
        name: () if isinstance(answer, OrchError) else changes(spec.nodes[name], answer)
        for name, answer in answers.items()
    }
    if args.json:
        nodes = [_shown_json(spec.nodes[name], answer, found[name]) for name, answer in answers.items()]
        print_json({"pods": str(spec.path), "transport": spec.transport, "nodes": nodes})
        return worst_exit(answers)
    rows = [_shown(spec.nodes[name], answer, found[name]) for name, answer in answers.items()]
    say(table(("node", "state", "machine", "cpus", "memory", "free", "clock"), rows))
    for name, answer in answers.items():
        if isinstance(answer, OrchError):
            complain(said_of(name, answer))
        else:
            _tell(name, answer, found[name])
    return worst_exit(answers)


def _tell(name: str, seen: Examined, found: tuple[str, ...]) -> None:
    """Say what changed, and all that would make a lane fail there."""
    from orchestrator.qualify.fitness import faults

    for change in found:
        say(f"{name}: {change}")
    if found:
        say(f"{name}: `orch pods pin {name}` accepts that")
    for fault in faults(seen):
        complain(f"{name}: {fault}")


def _state(answer: Examined | OrchError, found: tuple[str, ...]) -> str:
    """Give one word for a node: its label if it is refused, else whether it is as it was."""
    if isinstance(answer, OrchError):
        return str(getattr(answer, "label", None) or "refused")
    return "changed" if found else "as it was"


def _shown(node: Node, answer: Examined | OrchError, found: tuple[str, ...]) -> tuple[str, ...]:
    state = _state(answer, found)
    if isinstance(answer, OrchError):
        return (node.name, state, "", "", "", "", "")
    facts, room = answer.facts, answer.room
    memory = "" if facts.memory_bytes is None else size_text(facts.memory_bytes)
    free = "" if room.free_bytes is None else size_text(room.free_bytes)
    clock = clock_text(answer.clock.offset_ns, answer.clock.error_ns)
    return (node.name, state, f"{facts.machine}, Linux {facts.kernel}", str(facts.cpus), memory, free, clock)


def _shown_json(node: Node, answer: Examined | OrchError, found: tuple[str, ...]) -> dict[str, Any]:
    begun = {"node": node.name, "state": _state(answer, found).replace(" ", "-"), "changes": list(found)}
    if isinstance(answer, OrchError):
        return {**begun, "message": str(answer)}
    return {**begun, **examined_json(answer)}


def _pin(args: argparse.Namespace) -> int:
    """Take the node as it is now; its host key has to be the one that was told, if one was."""
    from orchestrator.spec.pods_file import change_node

    spec = read_rental(args.pods)
    node = _named(spec, args.name)
    met = meet(node, args.accept_host_key, anew=True)
    if args.accept_host_key is None and met.fingerprint == node.host_key and node.trust is not None:
        met = replace(met, trust=node.trust)
    found = list(changes(node, met.seen))
    if node.host_key != met.fingerprint:
        found.insert(0, f"host_key was {node.host_key or 'not pinned'} and is {met.fingerprint}")
    spec = change_node(spec.path, node.name, {"cards": {}, **met.entry} if node.cards else met.entry)
    if args.json:
        print_json({**_met_json(spec, node.name, met), "changes": found})
        return 0
    for change in found or ["nothing has changed"]:
        say(f"{node.name}: {change}")
    _report(spec, node.name, met)
    return 0


def _named(spec: PodsSpec, name: str) -> Node:
    """Give a node by its name.

    Raises:
        RefusedError: there is none.
    """
    from orchestrator.spec.faults import one_of, suggest
    from orchestrator.spec.places import visible

    if name in spec.nodes:
        return spec.nodes[name]
    message = f"there is no such node (got `{visible(name)}`, expected {one_of(spec.nodes)})"
    hint = suggest(name, spec.nodes)
    raise RefusedError([Refusal(Label.NAME_UNKNOWN, message, Where(str(spec.path)), "nodes", hint)])
