"""A card's memory: what a device role asks of it, line by line, and what a profile is known to hold.

A role allocates its buffers and nothing else (`orchestrator.plan.resident`); the driver's own context comes
to them, of which nobody says the size ahead: it is charged as an allowance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestrator.admit.graph import Absent, Amount, Established
from orchestrator.admit.memory import Demand, DemandLine
from orchestrator.plan.model import Plan, Role
from orchestrator.plan.resident import ALLOCATION_BYTES, buffer_words, charged
from orchestrator.spec.device import DeviceSpec, Fact, release_for

# with kernels, their stack and what the driver keeps for a process; of bare contexts 107 to 555 MiB have been
# reported, by product and driver
CONTEXT_BYTES = 768 * 1024 * 1024

_LINES = {
    "state": "parameters and state held",
    "samples": "samples",
    "parameters": "read replica",
    "work": "rows of samples, temporaries",
    "sums": "sums over samples",
    "total": "totals",
}
_PERSISTENT = ("state", "samples")


def card_demand(plan: Plan, role: Role) -> Demand:
    """What a device role uses of its card: `static` is what its program allocates, to the byte."""
    return Demand(role.name, tuple(_lines(plan, role)))


def _lines(plan: Plan, role: Role) -> Iterator[DemandLine]:
    size = plan.system.word.size
    for buffer, words in buffer_words(plan, role).items():
        formula = f"{words} word{'s' * (words != 1)} x {size} bytes, in steps of {ALLOCATION_BYTES}"
        bytes_ = charged(words, size)
        yield DemandLine(_LINES[buffer], formula, bytes_, is_persistent=buffer in _PERSISTENT)
    formula = f"{CONTEXT_BYTES} bytes allowed: the driver does not say ahead"
    yield DemandLine("context of the driver", formula, CONTEXT_BYTES, is_persistent=True, is_static=False)


def supplies(device: DeviceSpec) -> Mapping[str, int]:
    """What processes may use of a card, in bytes, by every driver for which that is established."""
    total, reserved = (_by_driver(device.facts[name]) for name in ("memory_total", "memory_reserved"))
    return {driver: total[driver] - reserved[driver] for driver in total if driver in reserved}


def supply(device: DeviceSpec, driver: str | None) -> Amount:
    """What processes may use of a card under a driver; under None, the least of all that are established."""
    known = supplies(device)
    key = (
        release_for(driver, known) if driver is not None else min(known, key=known.__getitem__, default=None)
    )
    if key is not None:
        of = f"profile {device.name}: memory_total less memory_reserved under driver {key}"
        return Established(known[key], f"{of}, the least of all" if driver is None else of)
    for name in ("memory_total", "memory_reserved"):
        if reason := device.facts[name].reason:
            return Absent(f"{name} of {device.name} is absent: {reason}")
    under = "any driver" if driver is None else f"driver {driver}"
    return Absent(f"memory of {device.name} is not established under {under}")


def _by_driver(fact: Fact) -> Mapping[str, int]:
    return fact.value if isinstance(fact.value, Mapping) else {}
