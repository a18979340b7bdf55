"""Grades: what the evidence of a bundle is evidence of, from its files alone.

One trace of a stand-in anywhere makes all of it `simulated`; nothing that a bundle says elsewhere takes that
back. Where what decides is missing or broken, the least grade that it may be is given.
"""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.qualify import devices
from orchestrator.qualify.steps import preflight
from orchestrator.qualify.traces import ran_on_its_card, stand_in_traces
from orchestrator.qualify.view import View

SIMULATED, EMULATED, HOST, PHYSICAL = "simulated", "emulated", "host", "physical"
GRADES = (SIMULATED, EMULATED, HOST, PHYSICAL)
"""The least first."""


def least(grades: Iterable[str]) -> str:
    """The least of several; a grade that is none counts as the least of all, and none at all as `host`."""
    return min(grades, key=lambda grade: GRADES.index(grade) if grade in GRADES else -1, default=HOST)


def grade_of(view: View) -> str:
    """`simulated`, `emulated`, `physical` (a device role ran on the card that it is bound to), or `host`."""
    try:
        if next(stand_in_traces(view), None) is not None:
            return SIMULATED
        is_physical = ran_on_its_card(view)
    except (ValueError, LookupError, TypeError, AttributeError, OSError):
        return SIMULATED if _may_have_devices(view) else EMULATED  # a judge has said so
    return EMULATED if _is_emulated(view) else PHYSICAL if is_physical else HOST


def _may_have_devices(view: View) -> bool:
    try:
        return bool(devices.profiles(view))
    except Exception:  # noqa: BLE001  # specs that cannot be read may have said anything
        return True


def _is_emulated(view: View) -> bool:
    """From what the nodes said of themselves; where roles ran and no node said anything, it may be so."""
    binding, nodes = view.json("binding.json"), view.json(f"{view.attempt(preflight.NAME)}/nodes.json")
    if binding is None or nodes is None:
        return any(event.type == "orch.launch.started" for event in view.events())
    try:
        return bool(preflight.emulated(view, nodes))
    except (ValueError, LookupError, TypeError):
        return True  # nodes, roles or pods are not what they were: a judge has said so
