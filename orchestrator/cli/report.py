"""What a finished lane says to a person and to a program: steps, checks that did not pass, exit codes.

Knows outcomes of steps; must not know how a step comes to its verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from orchestrator.cli.output import paint, plain, table

if TYPE_CHECKING:
    from orchestrator.qualify.checks import StepOutcome

EXIT_OF: Final[Mapping[str, int]] = {"pass": 0, "fail": 1, "unknown": 4}


def step_json(step: StepOutcome) -> dict[str, Any]:
    """Give a step as the object that `--json` prints."""
    return {**step.as_json(), "elapsed_s": round(step.elapsed_s, 3)}


def steps_table(steps: Sequence[StepOutcome]) -> str:
    """Give the steps, one a line: verdict, attempts, checks passed, seconds, reason."""
    rows = [
        (
            step.name,
            str(step.verdict),
            step.attempts,
            f"{sum(check.verdict == 'pass' for check in step.checks)}/{len(step.checks)}",
            f"{step.elapsed_s:.1f}",
            step.reason,
        )
        for step in steps
    ]
    return table(("step", "verdict", "attempts", "checks", "seconds", "reason"), rows)


def failed_checks(steps: Sequence[StepOutcome]) -> Iterator[str]:
    """Give every check that did not pass: what was expected, what was there, and which files say so."""
    for step in steps:
        for check in step.checks:
            if check.verdict in ("fail", "unknown"):
                yield f"{paint(str(check.verdict), str(check.verdict))}: {step.name}: {plain(check.name)}"
                yield f"  expected {plain(check.expected)}"
                yield f"  got      {plain(check.got)}"
                yield from (f"  see      {plain(name)}" for name in check.inputs)
