"""Host-shadow control: the host's copies of device state are overwritten, and nothing may change.

Applies to roles with a device; no such role is built here, so the step says so and proves nothing.
"""

from __future__ import annotations

from orchestrator.plan.command import CommandPlan
from orchestrator.plan.model import Plan
from orchestrator.qualify.checks import Check
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.view import View

NAME = "host-shadow"
DOES = "overwrites the host's copies of device state before every forward pass"
CHECKS = ("trajectory and checkpoint unchanged",)


def not_applicable(_plan: Plan | CommandPlan) -> str:
    """Always, as long as plans hold no device roles."""
    return "no role has a device"


def act(launcher: Launcher) -> None:
    """Nothing: the step never applies."""


def judge(_view: View) -> tuple[Check, ...]:
    """Nothing: the step never applies."""
    return ()
