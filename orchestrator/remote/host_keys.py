"""Which key a host must have, and whether it has it: the rental's pin, else the user's known_hosts.

Knows fingerprints and key types. Nothing is ever accepted because it came first: that is for `orch pods add`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import paramiko

from orchestrator.errors import Label
from orchestrator.remote.base import RemoteError
from orchestrator.remote.ssh_config import SSH_PORT, Settings

# what paramiko and the wire call each type of key
_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "ssh-ed25519": ("ssh-ed25519",),
    "ecdsa": ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"),
}


@dataclass(frozen=True)
class HostKey:
    """A host's key as people compare it.

    Attributes:
        type: such as `ssh-ed25519`.
        fingerprint: as `ssh-keygen -l` prints it: `SHA256:...`.
    """

    type: str
    fingerprint: str


class UnexpectedKeyError(Exception):
    """The host showed a key that it must not have; ends the connection before anybody logs in."""

    def __init__(self, key: HostKey) -> None:
        self.key = key
        super().__init__(key.fingerprint)


@dataclass
class Expected:
    """What a host may show. One host has keys of several types, and shows one at a time.

    Attributes:
        name: the node, for people.
        fingerprints: those that are right; none if any is to be seen and refused.
        types: groups of types that they are known to be of; empty if that is not known.
        seen: wrong ones so far.
        way_out: what to do if another one is right by now; empty for a node that is pinned.
    """

    name: str
    fingerprints: frozenset[str]
    types: frozenset[str] = frozenset()
    seen: list[HostKey] = field(default_factory=list)
    way_out: str = ""

    def disabled(self) -> tuple[str, ...]:
        """Names of the types that are not to be agreed on: not known, or seen to be wrong."""
        wrong = {_group(key.type) for key in self.seen}
        return tuple(
            name
            for group, names in _TYPES.items()
            for name in names
            if group in wrong or (self.types and group not in self.types)
        )

    def check(self, key: paramiko.PKey) -> None:
        """Accepts a right key.

        Raises:
            UnexpectedKeyError: it is another one.
        """
        shown = HostKey(key.get_name(), key.fingerprint)
        if shown.fingerprint not in self.fingerprints:
            raise UnexpectedKeyError(shown)

    def may_show_another(self, key: HostKey) -> bool:
        """Notes a wrong key; says whether the right one may be of a type that was not asked for yet."""
        self.seen.append(key)
        return len(self.disabled()) < sum(map(len, _TYPES.values()))

    def refusal(self) -> RemoteError:
        """Says that no type gave the right key."""
        got = (
            ", ".join(f"{key.type} {key.fingerprint}" for key in self.seen) or "none of a type that is known"
        )
        return RemoteError(
            f"{self.name}: another host key than before: this is another machine, or somebody in between"
            f" (got {got}, expected {', '.join(sorted(self.fingerprints))});"
            " addresses of ended rentals are given out again",
            Label.HOST_KEY_CHANGED,
            hint=f"if this machine is the right one, {self.way_out or f'`orch pods pin {self.name}`'}",
        )


class Policy(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]  # paramiko has no types
    """Asks `Expected` about every key; the client itself is told of none."""

    def __init__(self, expected: Expected) -> None:
        self._expected = expected

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Accepts the key or raises UnexpectedKeyError."""
        del client, hostname
        self._expected.check(key)


def expected_of(name: str, settings: Settings, pin: str | None, *, on_the_way: bool = False) -> Expected:
    """Gives what a host must show; one that is only on the way to a node has no pin of its own.

    Raises:
        RemoteError: `host-key-unknown`: nothing says so.
    """
    if pin:
        return Expected(name, frozenset({pin}))
    place = settings.known_as or settings.host
    known_as = place if settings.port == SSH_PORT else f"[{place}]:{settings.port}"
    keys = tuple(_known(known_as, settings.known_hosts))
    if not keys:
        way_out = f"`orch pods pin {name}` shows the key and pins it"
        if on_the_way:
            way_out = f"`ssh {settings.host}` shows its key, and keeps it once you accept it"
        raise RemoteError(
            f"{name}: nothing says which key this host has (got no pin, and no line in known_hosts,"
            f" expected one of them); {way_out}",
            Label.HOST_KEY_UNKNOWN,
        )
    types = frozenset(_group(key.get_name()) for key in keys)
    way_out = f"take its old key out of known_hosts: `ssh-keygen -R '{known_as}'`" if on_the_way else ""
    return Expected(name, frozenset(key.fingerprint for key in keys), types, way_out=way_out)


def _known(known_as: str, files: tuple[Path, ...]) -> Iterator[paramiko.PKey]:
    for path in files:
        known = paramiko.HostKeys()
        try:
            known.load(str(path))
        except (OSError, UnicodeDecodeError, paramiko.SSHException):
            continue
        found = known.lookup(known_as)
        yield from found.values() if found else ()


def _group(name: str) -> str:
    return next((group for group, names in _TYPES.items() if name in names), name)
