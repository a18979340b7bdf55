"""What is wanted of a card, and one thing that was looked at: the words in which cards are judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from orchestrator.errors import Label
from orchestrator.probe.inventory import Card
from orchestrator.probe.values import Value

Verdict = Literal["pass", "fail", "unknown", "not-applicable"]


@dataclass(frozen=True)
class Wanted:
    """The card that is wanted.

    Attributes:
        product: the exact product string of its profile; None if any will do.
        capability: compute capability of its profile, None likewise.
        uuid: the card's own, as pinned; None takes the one of that minor.
        minor: its minor, as pinned; None takes the one with that UUID.
        drivers: releases that the profile was established for, each by its first parts: `550.54`.
        needs_driver: whether another release refuses; else it is a warning.
    """

    product: str | None = None
    capability: str | None = None
    uuid: str | None = None
    minor: int | None = None
    drivers: tuple[str, ...] = ()
    needs_driver: bool = False


@dataclass(frozen=True)
class Row:
    """One thing that was looked at.

    Attributes:
        name: what must hold, in a few words with hyphens.
        verdict: `pass`, `fail`, `unknown`; `not-applicable` where `got` is the reason.
        inputs: the tools whose words decide it.
        expected: what must be there.
        got: what is there.
        label: the refusal's name if it fails.
        warning: what is worth saying though it refuses nothing; empty if nothing is.
        hint: the way out if it fails; empty if there is none to name.
    """

    name: str
    verdict: Verdict
    inputs: tuple[str, ...]
    expected: str
    got: str
    label: Label
    warning: str = ""
    hint: str = ""

    def __str__(self) -> str:
        """As a refusal reads."""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.label}: {self.name} (got {self.got}, expected {self.expected}){hint}"


def equal(name: str, card: Card, value: Value[str], expected: str, label: Label) -> Row:
    """Passes if the value is that very text; unknown if the tools do not say."""
    verdict: Verdict = "pass" if value.known == expected else "fail"
    if value.state in ("untold", "unsupported"):
        verdict = "unknown"
    return Row(name, verdict, card.sources, expected, str(value), label)
