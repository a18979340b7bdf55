"""Verdicts and checks: the words in which a judge answers.

The worst wins: fail, then unknown, then pass. Unknown is never a pass. Not-applicable has a reason and counts
for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from orchestrator.oracle.reference import bits

STEPS = ("preflight", "build", "refusals", "uninterrupted", "split", "host-shadow", "evaluate", "record")


class Verdict(StrEnum):
    """What may be said of a check, a step or a lane."""

    PASS = "pass"  # noqa: S105  # a verdict, not a password
    FAIL = "fail"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not-applicable"


_SEVERITY = {Verdict.FAIL: 0, Verdict.UNKNOWN: 1, Verdict.PASS: 2, Verdict.NOT_APPLICABLE: 3}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of several; unknown if there is none, since nothing was shown."""
    return min(verdicts, key=_SEVERITY.__getitem__, default=Verdict.UNKNOWN)


@dataclass(frozen=True)
class Check:
    """One thing that a judge looked at.

    Attributes:
        name: what must hold, in a few words with hyphens.
        verdict: pass, fail or unknown.
        inputs: the bundle's files that decide it.
        expected: what must be there.
        got: what is there.
    """

    name: str
    verdict: Verdict
    inputs: tuple[str, ...]
    expected: str
    got: str

    def as_json(self) -> dict[str, object]:
        """As in `qualification.json`."""
        return {
            "name": self.name,
            "verdict": str(self.verdict),
            "inputs": list(self.inputs),
            "expected": self.expected,
            "got": self.got,
        }


def equal(name: str, inputs: Iterable[str], expected: object, got: object) -> Check:
    """Passes if both print alike; a missing `got` (None) is unknown: the file that would say is not there."""
    verdict = Verdict.UNKNOWN if got is None else Verdict.PASS if str(expected) == str(got) else Verdict.FAIL
    return Check(name, verdict, tuple(inputs), str(expected), "nothing" if got is None else str(got))


@dataclass(frozen=True)
class StepOutcome:
    """A step with all its checks.

    Attributes:
        name: of the step.
        verdict: the worst of its checks.
        attempts: how often it was begun.
        reason: why it is not applicable, unknown as a whole, or left out; empty otherwise.
        checks: in order.
        elapsed_s: from the first attempt's start to the last one's end, as the stream says; else 0.
    """

    name: str
    verdict: Verdict
    attempts: int
    reason: str
    checks: tuple[Check, ...]
    elapsed_s: float = 0.0

    def as_json(self) -> dict[str, object]:
        """As in `qualification.json`."""
        return {
            "name": self.name,
            "verdict": str(self.verdict),
            "attempts": self.attempts,
            "reason": self.reason,
            "checks": [check.as_json() for check in self.checks],
        }


def number(value: float) -> str:
    """A binary64 number as people read it and as bits: `0.5625 = 9/16 (3fe2000000000000)`."""
    small = 4096
    try:
        fraction = Fraction(value)
    except (ValueError, OverflowError):
        return f"{value} ({bits(value)})"
    shown = f" = {fraction}" if 1 < fraction.denominator <= small else ""
    return f"{value!r}{shown} ({bits(value)})"
