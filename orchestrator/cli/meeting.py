"""A first connection to a node: which host key it has, why that is accepted, and what is there.

The one place where a key that nothing vouches for is accepted, because a person asked for it by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from orchestrator.cli.nodes import look, one_node, pinned_cards, seen_entry
from orchestrator.errors import Label, Refusal, RefusedError, Where

if TYPE_CHECKING:
    from orchestrator.qualify.fitness import Examined
    from orchestrator.spec.pods import Node


@dataclass(frozen=True)
class Met:
    """A node whose host key was accepted.

    Attributes:
        kind: the key's type.
        fingerprint: `SHA256:...`.
        trust: why it was accepted, as a pods file says it.
        seen: the node.
    """

    kind: str
    fingerprint: str
    trust: str
    seen: Examined

    @property
    def entry(self) -> Mapping[str, Any]:
        """What a pods file keeps of it; of a node without cards, no key for them."""
        cards = pinned_cards(self.seen)
        kept = {"cards": cards} if cards else {}
        seen = seen_entry(self.seen.facts)
        return {"host_key": self.fingerprint, "trust": self.trust, **kept, "seen": seen}


def meet(node: Node, told: str | None, *, anew: bool = False) -> Met:
    """Connect to a node whose host key is not pinned yet.

    The key has to be the one that was told; else the one that known_hosts has; else, where nothing knows the
    host, it is accepted as it is. Of a node that is met anew, it is accepted as it is unless one was told.

    Raises:
        RefusedError, RemoteError: another key, or a node that cannot be used; nothing was accepted.
    """
    from orchestrator.remote.base import RemoteError
    from orchestrator.remote.connect import scan_host_key

    trust = "first-use" if told is None else "told"
    if told is None and not anew:
        trust = "known-hosts"
        try:
            one_node(replace(node, host_key=None), lambda _, remote: remote.facts())
        except RemoteError as error:
            if error.label == Label.HOST_KEY_CHANGED:
                hint = "if it is the right machine by now: --accept-host-key FINGERPRINT"
                where = Where(node.name)
                raise RefusedError([Refusal(error.label, error.cause, where, "host_key", hint)]) from error
            if error.label != Label.HOST_KEY_UNKNOWN:
                raise
            trust = "first-use"
    key = scan_host_key(node)
    if told is not None and key.fingerprint != told:
        message = f"the host has another key (got {key.fingerprint}, expected {told})"
        hint = "compare both with what the provider shows: this may be another machine"
        raise RefusedError([Refusal(Label.HOST_KEY_CHANGED, message, Where(node.name), "host_key", hint)])
    seen = one_node(replace(node, host_key=key.fingerprint), look)
    return Met(key.type, key.fingerprint, trust, seen)
