"""`orch: pods/v1`: one rental: the nodes, how they are reached, and the cards seen and pinned on them.

Knows addresses and identities as pinned; must not reach for any of them. No secret stands here: a key is
named by its path, a host by its fingerprint.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from orchestrator.errors import Label, Refusal
from orchestrator.spec.document import Document
from orchestrator.spec.faults import FileModel, TextLike, one_of, suggest
from orchestrator.spec.nodesets import NodeSetError, expand
from orchestrator.spec.places import visible
from orchestrator.spec.units import Amount, Money, Price, complain

REMOTE_ROOT = ".orch"

Host = Annotated[
    str,
    TextLike(
        r"([A-Za-z_][A-Za-z0-9_.-]*@)?([A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?"
        r"|\[?[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(%[A-Za-z0-9_.-]+)?\]?)",
        "user@host",
    ),
]
HostKey = Annotated[
    str, TextLike(r"SHA256:[A-Za-z0-9+/]{43}", "a fingerprint such as ssh-keygen -l prints: SHA256:...")
]
CardId = Annotated[str, TextLike(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "a card's UUID: GPU-...")]
Port = Annotated[int, Field(ge=1, le=65535)]
NodeName = Annotated[
    str, TextLike(r"[a-z][a-z0-9_-]{0,62}", "lower-case letters, digits, - and _, beginning with a letter")
]
Text = Annotated[str, Field(min_length=1)]
EmulatedTarget = Literal["x86_64-linux", "aarch64-linux"]


def _moment(value: str) -> str:
    try:
        moment = dt.datetime.fromisoformat(value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]", value):
        expected = "a time with its zone, such as 2026-11-29T09:00:00Z"
        raise complain(Label.VALUE_FORMAT, f"(got `{visible(value)}`, expected {expected})")
    return value


def _literal(value: str) -> str:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        address = None
    if address is None or getattr(address, "scope_id", None) is not None:
        expected = "an IPv4 or IPv6 address without a zone, such as 10.0.0.7"
        raise complain(Label.VALUE_FORMAT, f"(got `{visible(value)}`, expected {expected})")
    return str(address)


class RentalModel(FileModel):
    """When the rental began, and what it may cost."""

    started: Annotated[str, AfterValidator(_moment)] = Field(description="when it began, in quotes")
    cap: Amount = Field(description="what it may cost at most, such as 5.00 USD")


class DefaultsModel(FileModel):
    """What holds for every node that does not say otherwise."""

    key: Text | None = Field(default=None, description="the private key's file")
    port: Port | None = Field(default=None, description="the SSH port; else what ssh itself would take")
    owner: Text | None = Field(default=None, description="whose run this is, on the node")
    remote_root: Text = Field(default=REMOTE_ROOT, description="the folder for everything of ours")


class SeenModel(FileModel):
    """What a machine said of itself when it was last looked at; nothing is refused for it."""

    machine: Text = Field(description="its instruction set, as uname says")
    kernel: Text = Field(description="its kernel's release")
    cpus: Annotated[int, Field(ge=1)] = Field(description="usable processors")
    memory_mib: Annotated[int, Field(ge=0)] | None = Field(default=None, description="physical memory")
    boot_id: Text = Field(description="changes with every boot")


class NodeModel(FileModel):
    """One machine."""

    host: Host = Field(description="user@host, as ssh takes it")
    host_key: HostKey | None = Field(
        default=None, description="the host key's fingerprint, as pinned; else known_hosts has to know it"
    )
    trust: Literal["first-use", "known-hosts", "told"] | None = Field(
        default=None, description="how its host key came to be pinned: as first seen, as known, or as told"
    )
    port: Port | None = Field(default=None, description="the SSH port")
    key: Text | None = Field(default=None, description="the private key's file")
    pod: Text | None = Field(default=None, description="what the provider calls it")
    price: Price | None = Field(default=None, description="what it costs, such as 0.44 USD/h")
    owned: bool = Field(default=False, description="true for a machine that nobody bills by the hour")
    address: Annotated[str, AfterValidator(_literal)] | None = Field(
        default=None, description="where other nodes reach it, for direct transport"
    )
    cards: Mapping[CardId, Annotated[int, Field(ge=0, le=255)]] = Field(
        default={}, description="card UUID to minor number, as seen and pinned"
    )
    emulators: Mapping[EmulatedTarget, Text] = Field(default={}, description="target to emulator's command")
    owner: Text | None = Field(default=None, description="whose run this is, on the node")
    remote_root: Text | None = Field(default=None, description="the folder for everything of ours")
    seen: SeenModel | None = Field(
        default=None, description="what it said of itself, as `orch pods` wrote it"
    )


class PodsFile(FileModel):
    """One rental: nodes, how they are reached, and their cards."""

    orch: Literal["pods/v1"] = Field(description="the kind of this file")
    rental: RentalModel | None = Field(default=None, description="when it began and what it may cost")
    defaults: DefaultsModel = Field(default=DefaultsModel(), description="what holds for every node")
    transport: Literal["loopback", "ssh-tunnel", "direct"] = Field(description="how roles reach each other")
    nodes: Annotated[Mapping[NodeName, NodeModel], Field(min_length=1)] = Field(description="the machines")
    roles: Mapping[str, str] = Field(default={}, description="role or node set to node, or node/card UUID")


@dataclass(frozen=True)
class Node:
    """One machine as pinned, defaults filled in; `cards` is UUID -> minor, `price` is per hour.

    None for user, port, key or host key leaves it to what ssh itself is told on this machine. `seen` has the
    keys of `SeenModel`, or none.
    """

    name: str
    user: str | None
    host: str
    port: int | None
    key: str | None
    host_key: str | None
    pod: str | None
    price: Money | None
    owned: bool
    address: str | None
    cards: Mapping[str, int]
    emulators: Mapping[str, str]
    owner: str | None
    remote_root: str
    trust: str | None = None
    seen: Mapping[str, str | int | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Placement:
    """Where a role goes: a node, and a card of it or None."""

    node: str
    card: str | None


@dataclass(frozen=True)
class PodsSpec:
    """A rental as declared; `roles` is empty where the roles go to nodes in order."""

    path: Path
    document: Document = field(repr=False, compare=False)
    transport: str
    nodes: Mapping[str, Node]
    roles: Mapping[str, Placement]
    started: str | None
    cap: Money | None


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
        try:
            names = expand(key)
        except NodeSetError as error:
            yield document.at(Label.VALUE_FORMAT, f"is no node set {error}", path, on_key=True)
            names = ()
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
        elif card and card not in (cards := nodes[node].get("cards") or {}):
            message = (
                f"node `{visible(node)}` has no such card (got `{visible(card)}`, expected {one_of(cards)})"
            )
            yield document.at(Label.NAME_UNKNOWN, message, path, hint=suggest(card, cards))
        elif card and (card in used or len(names) > 1):
            other = used.get(card, names[0] if names else key)
            message = (
                f"one card is for one role (got {visible(card)} for `{visible(other)}` too, expected it once)"
            )
            yield document.at(Label.NAME_DUPLICATE, message, path)
        if card:
            used.setdefault(card, key)


def build(document: Document, model: PodsFile) -> PodsSpec:
    """Gives the typed rental of a file that nothing is wrong with."""
    rental = model.rental
    return PodsSpec(
        path=document.path,
        document=document,
        transport=model.transport,
        nodes={name: _node(name, node, model.defaults) for name, node in model.nodes.items()},
        roles={name: _placement(place) for key, place in model.roles.items() for name in expand(key)},
        started=rental.started if rental else None,
        cap=rental.cap if rental else None,
    )


def _node(name: str, node: NodeModel, defaults: DefaultsModel) -> Node:
    user, at, host = node.host.rpartition("@")
    return Node(
        name=name,
        user=user if at else None,
        host=host.strip("[]"),
        port=defaults.port if node.port is None else node.port,
        key=node.key or defaults.key,
        host_key=node.host_key,
        pod=node.pod,
        price=node.price,
        owned=node.owned,
        address=node.address,
        cards=dict(node.cards),
        emulators={str(target): command for target, command in node.emulators.items()},
        owner=node.owner or defaults.owner,
        remote_root=node.remote_root or defaults.remote_root,
        trust=node.trust,
        seen=node.seen.model_dump() if node.seen else {},
    )


def _placement(place: str) -> Placement:
    node, _, card = place.partition("/")
    return Placement(node, card or None)
