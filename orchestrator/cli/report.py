"""What a finished lane says to a person and to a program: steps, checks that did not pass, exit codes.

Knows outcomes of steps; must not know how a step comes to its verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from orchestrator.cli.output import columns, paint, plain, table

if TYPE_CHECKING:
    from orchestrator.qualify.checks import StepOutcome

EXIT_OF: Final[Mapping[str, int]] = {"pass": 0, "fail": 1, "unknown": 4}
_STARTING: Final = ("refusals", "uninterrupted", "split", "host-shadow", "evaluate")


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
    # a reason that is cut off here stands in full among the checks that did not pass, and in the bundle
    return table(("step", "verdict", "attempts", "checks", "seconds", "reason"), rows, width=columns())


def grade_line(grade: str, steps: Sequence[StepOutcome]) -> str:
    """Give the grade as a person reads it: where nothing started a role, it is evidence of nothing yet."""
    ran = any(step.attempts for step in steps if step.name in _STARTING)
    return f"grade: {grade}" + ("" if ran else " (no role ran)")


def failed_checks(steps: Sequence[StepOutcome]) -> Iterator[str]:
    """Give every check that did not pass: what was expected, what was there, and which files say so.

    Those that failed come first: what is unknown is often so because of them. Several that differ by a role's
    number alone are said once.
    """
    from orchestrator.spec.nodesets import fold

    for verdict in ("fail", "unknown"):
        for step in steps:
            alike: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
            for check in step.checks:
                if check.verdict == verdict:
                    alike.setdefault((check.expected, check.got, check.inputs), []).append(check.name)
            for (expected, got, inputs), names in alike.items():
                yield f"{paint(verdict, verdict)}: {step.name}: {plain(fold(names))}"
                yield f"  expected {plain(expected)}"
                yield f"  got      {plain(got)}"
                yield from (f"  see      {plain(name)}" for name in inputs)


def open_checks(steps: Sequence[StepOutcome]) -> Iterator[str]:
    """Give every check that had nothing to judge, and why: its step passes without it."""
    for step in steps:
        for check in step.checks:
            if check.verdict == "not-applicable":
                yield f"not-applicable: {step.name}: {plain(check.name)}: {plain(check.got)}"
