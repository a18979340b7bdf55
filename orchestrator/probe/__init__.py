"""Cards of a machine: what to ask for them, how the answers read, and what forbids to use one.

`commands()` says what to run and to keep, `read()` makes an inventory of what came back, `checks()` judges a
card of it. Pure but for `nvml`; knows no way to a machine.
"""

from orchestrator.probe.card_checks import state_rows
from orchestrator.probe.checks import checks
from orchestrator.probe.commands import Question, Said, commands
from orchestrator.probe.inventory import Card, Fault, Inventory, Process, Reading
from orchestrator.probe.reading import STANDIN, read
from orchestrator.probe.rows import Row, Wanted
from orchestrator.probe.values import Value

__all__ = [
    "STANDIN",
    "Card",
    "Fault",
    "Inventory",
    "Process",
    "Question",
    "Reading",
    "Row",
    "Said",
    "Value",
    "Wanted",
    "checks",
    "commands",
    "read",
    "state_rows",
]
