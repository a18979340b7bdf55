"""`orch: pods/v1`: one rental: the nodes, how they are reached, and the cards seen and pinned on them.

Knows addresses and identities as pinned; must not reach for any of them. No secret stands here: a key is
named by its path, a host by its fingerprint.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from orchestrator.errors import Label
from orchestrator.spec.document import Document
from orchestrator.spec.faults import FileModel, TextLike
from orchestrator.spec.names import expand
from orchestrator.spec.places import visible
from orchestrator.spec.units import Amount, Money, Price, complain

REMOTE_ROOT = ".orch"
MOST_MINOR = 247  # the last that a driver gives to a card: others are devices of its own
NODE_ONLY = "node-only:"
"""In a role's place, before the minor of a card that is bound by that alone: its UUID is not looked at."""

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


def _folder(value: str) -> str:
    path = PurePosixPath(value)
    if value.startswith("~") or ".." in path.parts or path == PurePosixPath("/"):
        expected = "a folder under HOME such as .orch, or an absolute one such as /data/orch; no ~ and no .."
        raise complain(Label.VALUE_FORMAT, f"(got `{visible(value)}`, expected {expected})")
    return value


def _line(value: str) -> str:
    if not value.isprintable():
        expected = "one line that can be seen"
        raise complain(Label.VALUE_FORMAT, f"(got `{visible(value)}`, expected {expected})")
    return value


Line = Annotated[str, Field(min_length=1), AfterValidator(_line)]
Folder = Annotated[str, Field(min_length=1), AfterValidator(_folder)]


class RentalModel(FileModel):
    """When the rental began, and what it may cost."""

    started: Annotated[str, AfterValidator(_moment)] = Field(description="when it began, in quotes")
    cap: Amount = Field(description="what it may cost at most, such as 5.00 USD")


class DefaultsModel(FileModel):
    """What holds for every node that does not say otherwise."""

    key: Text | None = Field(default=None, description="the private key's file")
    port: Port | None = Field(default=None, description="the SSH port; else what ssh itself would take")
    owner: Line | None = Field(default=None, description="whose run this is, on the node")
    remote_root: Folder = Field(default=REMOTE_ROOT, description="the folder for everything of ours")


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
    pod: Line | None = Field(default=None, description="what the provider calls it")
    price: Price | None = Field(default=None, description="what it costs, such as 0.44 USD/h")
    owned: bool = Field(default=False, description="true for a machine that nobody bills by the hour")
    address: Annotated[str, AfterValidator(_literal)] | None = Field(
        default=None, description="where other nodes reach it, for direct transport"
    )
    cards: Mapping[CardId, Annotated[int, Field(ge=0, le=MOST_MINOR)]] = Field(
        default={}, description="card UUID to minor number, as seen and pinned"
    )
    emulators: Mapping[EmulatedTarget, Text] = Field(default={}, description="target to emulator's command")
    owner: Line | None = Field(default=None, description="whose run this is, on the node")
    remote_root: Folder | None = Field(default=None, description="the folder for everything of ours")
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
    roles: Mapping[str, str] = Field(
        default={}, description="role or node set to node, to node/card UUID, or to node/node-only:MINOR"
    )


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
    """Where a role goes: a node, and a card of it (its UUID, or `node-only:MINOR`) or None."""

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
