"""Before every step between preflight and record: the cards are still the ones that the run is bound to.

A card that is another one by now is refused before the step does anything.
"""

from __future__ import annotations

from pathlib import Path

from orchestrator.errors import RefusedError
from orchestrator.qualify import card_checks, looks
from orchestrator.qualify.checks import STEPS as ALL
from orchestrator.qualify.checks import Check, Verdict, equal
from orchestrator.qualify.session import Session
from orchestrator.qualify.view import View

STEPS = tuple(step for step in ALL if step not in ("preflight", "record"))
"""Those two look at everything themselves."""


def look(session: Session, folder: Path) -> None:
    """Looks, keeps what was said in the attempt's folder, and refuses.

    Raises:
        RefusedError: a card is not the one pinned: `device-uuid`, `device-minor`, `device-minor-twice`,
            `nvidia-plan-host`.
        RemoteError: a node refuses, or is lost.
        StopLaneError: the lane is to end now.
    """
    looks.take(session, folder, brief=True)
    if found := card_checks.refusals(session.view, session.relative(folder)):
        raise RefusedError(found)


def judge(view: View, step: str) -> tuple[Check, ...]:
    """What the look before a step showed; nothing where no role has a card."""
    nodes, folder = looks.nodes(view), f"{view.attempt(step)}"
    if step not in STEPS or not nodes:
        return ()
    inputs = tuple(name for node in nodes for name in looks.inputs(folder, node, brief=True))
    fine = "the cards that the run is bound to"
    rows = card_checks.identity(view, folder)
    open_ones = [f"{name}: {row.got}" for name, _, row in rows if row.verdict != "pass"]
    if not rows or (open_ones and not any(row.verdict == "fail" for *_, row in rows)):
        return (Check("cards", Verdict.UNKNOWN, inputs, fine, "; ".join(open_ones) or "nothing was said"),)
    return (equal("cards", inputs, fine, "; ".join(open_ones) or fine),)
