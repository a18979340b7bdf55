"""The one line that a role of a run says on standard output when it ends well: what must stand in it."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from orchestrator.oracle.reference import bits, held_words, state_digest
from orchestrator.plan.model import Plan
from orchestrator.plan.roles import Role
from orchestrator.qualify.compose import Wanted


def result_line(  # noqa: PLR0913, PLR0917  # what a line is made of
    plan: Plan,
    role: Role,
    wanted: Wanted,
    words: array[float],
    results: Mapping[str, float],
    device: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """The line as a JSON object.

    Args:
        plan: of the run.
        role: who says it.
        wanted: what the launch was asked for.
        words: the state at its target.
        results: of the last round, or of the evaluation.
        device: what a device role says of its card and its counted work; None of a host role.
    """
    held = held_words(plan, role, words)
    said = {} if device is None else {"device": dict(device)}
    return {
        **said,
        "epoch": wanted.epoch,
        "held": len(held),
        "mode": wanted.mode,
        "results": {key: bits(value) for key, value in results.items()},
        "role": role.name,
        "samples": len(plan.rows(role)),
        "state": state_digest(held),
        "version": wanted.target,
    }
