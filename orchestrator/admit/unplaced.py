"""Admission while no machine is known: roles against their own quotas, and cards against their profiles."""

from __future__ import annotations

from orchestrator.admit.host import admit
from orchestrator.errors import Refusal
from orchestrator.plan.derive import Planned
from orchestrator.spec.run import RunSpec


def admit_unplaced(run: RunSpec, *parts: Planned) -> tuple[Refusal, ...]:
    """Every role that would fit nowhere, in role order: what hosts hold, then cards.

    Args:
        run: the run spec.
        parts: the plan as programs are made, then as for the resumed part of a lane that swaps.
    """
    found = admit(parts[0].plan, run, {}, None)
    if not run.has_devices:
        return found
    from orchestrator.admit.device import Part, admit_cards  # a run of hosts starts without it

    return found + admit_cards(run, [Part(each, None) for each in parts])
