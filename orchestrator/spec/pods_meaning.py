"""What is wrong with a rental though every value of it is right: nodes, prices, cards and places together.

Knows the document alone; must not know the typed rental, which is built only when nothing is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.errors import Label, Refusal
from orchestrator.spec.document import Document
from orchestrator.spec.faults import one_of, suggest
from orchestrator.spec.names import expand
from orchestrator.spec.nodesets import NodeSetError
from orchestrator.spec.places import visible
from orchestrator.spec.pods import MOST_MINOR, NODE_ONLY, REMOTE_ROOT


def meaning(document: Document) -> tuple[Refusal, ...]:
    """Refuses what no single value shows: nodes that cannot be joined, missing caps, wrong places."""
    nodes = document.get("nodes")
    nodes = (
        {name: node for name, node in nodes.items() if isinstance(node, dict)}
        if isinstance(nodes, dict)
        else {}
    )
    return (
        *_transport(document, nodes),
        *_folders(document, nodes),
        *_rental(document, nodes),
        *_cards(document, nodes),
        *_roles(document, nodes),
    )


def _transport(document: Document, nodes: Mapping[str, Any]) -> Iterator[Refusal]:
    transport = document.get("transport")
    if transport == "loopback" and len(nodes) > 1:
        message = f"loopback joins the roles of one node (got {len(nodes)} nodes, expected 1)"
        hint = "use ssh-tunnel, or direct with an address for each node"
        yield document.at(Label.VALUE_CHOICE, message, ("transport",), hint=hint)
    for name, node in nodes.items() if transport == "direct" else ():
        if node.get("address") is None:
            message = (
                "`address` is missing (got nothing, expected where other nodes reach it: transport is direct)"
            )
            yield document.at(Label.FIELD_MISSING, message, ("nodes", name, "address"))


def _folders(document: Document, nodes: Mapping[str, Any]) -> Iterator[Refusal]:
    """Two nodes in one folder of one machine would undo each other's work."""
    defaults = document.get("defaults")
    defaults = defaults if isinstance(defaults, dict) else {}
    taken: dict[tuple[str, ...], str] = {}
    for name, node in nodes.items():
        user, _, host = str(node.get("host", name)).rpartition("@")
        port = node.get("port", defaults.get("port"))
        folder = str(node.get("remote_root", defaults.get("remote_root", REMOTE_ROOT)))
        place = (host.strip("[]").lower(), str(port), "" if folder.startswith("/") else user, folder)
        if (other := taken.setdefault(place, name)) != name:
            got = f"got {visible(folder)} of {visible(host)} for `{visible(other)}` too, expected it once"
            hint = "name another machine, or another remote_root"
            message = f"two nodes are one folder of one machine ({got})"
            yield document.at(Label.NAME_DUPLICATE, message, ("nodes", name), hint=hint, on_key=True)


def _rental(document: Document, nodes: Mapping[str, Any]) -> Iterator[Refusal]:
    priced = [name for name, node in nodes.items() if node.get("price") is not None]
    if priced and document.get("rental") is None:
        message = f"`rental` is missing (got a price for {visible(priced[0])}, expected started and cap)"
        yield document.at(Label.FIELD_MISSING, message, ("rental",))
    for name in (name for name, node in nodes.items() if node.get("price") is None):
        if nodes[name].get("owned") is not True:
            message = f"`price` is missing (got none for {visible(name)}, expected what an hour of it costs)"
            hint = "a machine that nobody bills by the hour says `owned: true`"
            yield document.at(Label.FIELD_MISSING, message, ("nodes", name, "price"), hint=hint)
    cap = str(document.get("rental", "cap")).split(" ")[-1]
    for name in priced if document.get("rental", "cap") is not None else ():
        currency = str(nodes[name]["price"]).removesuffix("/h").split(" ")[-1]
        if currency != cap:
            expected = f"{visible(cap)} as the cap"
            message = f"the price is in another currency (got {visible(currency)}, expected {expected})"
            yield document.at(Label.VALUE_CHOICE, message, ("nodes", name, "price"))


def _cards(document: Document, nodes: Mapping[str, Any]) -> Iterator[Refusal]:
    seen: dict[str, str] = {}
    for name, node in nodes.items():
        cards = node.get("cards")
        minors: dict[int, str] = {}
        for card, minor in cards.items() if isinstance(cards, dict) else ():
            path = ("nodes", name, "cards", card)
            if card in seen:
                message = f"a card is in one node (got it on {visible(seen[card])} too, expected it once)"
                yield document.at(Label.NAME_DUPLICATE, message, path, on_key=True)
            elif type(minor) is int and minor in minors:
                message = f"two cards of a node have one minor number (got {minor} again, expected each once)"
                yield document.at(Label.NAME_DUPLICATE, message, path)
            seen.setdefault(card, name)
            if type(minor) is int:
                minors.setdefault(minor, card)


def _roles(document: Document, nodes: Mapping[str, Any]) -> Iterator[Refusal]:
    roles = document.get("roles")
    used: dict[str, str] = {}
    named: set[str] = set()
    for key, place in roles.items() if isinstance(roles, dict) else ():
        path = ("roles", key)
        names: Sequence[str] = ()
        try:
            names = expand(key)
        except NodeSetError as error:
            yield document.at(Label.VALUE_FORMAT, f"is no node set {error}", path, on_key=True)
        for name in (name for name in names if name in named):
            message = f"role `{name}` goes to two places (got it again, expected it once)"
            yield document.at(Label.NAME_DUPLICATE, message, path, on_key=True)
            break
        named.update(names)
        if not isinstance(place, str):
            continue
        node, _, card = place.partition("/")
        if node not in nodes:
            message = f"there is no node `{visible(node)}` (got `{visible(place)}`, expected {one_of(nodes)})"
            yield document.at(Label.NAME_UNKNOWN, message, path, hint=suggest(node, nodes))
        elif card.startswith(NODE_ONLY) and not _is_minor(card.removeprefix(NODE_ONLY)):
            expected = f"expected {NODE_ONLY}0 to {NODE_ONLY}{MOST_MINOR}"
            yield document.at(
                Label.VALUE_FORMAT, f"no minor number (got `{visible(card)}`, {expected})", path
            )
        elif (
            card and not card.startswith(NODE_ONLY) and card not in (cards := nodes[node].get("cards") or {})
        ):
            message = (
                f"node `{visible(node)}` has no such card (got `{visible(card)}`, expected {one_of(cards)})"
            )
            yield document.at(Label.NAME_UNKNOWN, message, path, hint=suggest(card, cards))
        elif card and (place in used or len(names) > 1):
            other = used.get(place, names[0] if names else key)
            message = (
                f"one card is for one role (got {visible(card)} for `{visible(other)}` too, expected it once)"
            )
            yield document.at(Label.NAME_DUPLICATE, message, path)
        if card:
            used.setdefault(place, key)


def _is_minor(text: str) -> bool:
    return re.fullmatch("0|[1-9][0-9]{0,2}", text) is not None and int(text) <= MOST_MINOR
