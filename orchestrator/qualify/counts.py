"""What device roles do, counted: launches, bytes moved and bytes held, as the plan implies them.

A role counts for itself and says so on standard output; a stand-in's driver counts for itself, for each of
its cards, in a file beside the executable. Both must be what the plan implies. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestrator.build.counted import Counted, counted
from orchestrator.build.standin import Calls, calls
from orchestrator.errors import Label
from orchestrator.plan.roles import Role
from orchestrator.qualify import devices
from orchestrator.qualify.checks import Check, equal
from orchestrator.qualify.compose import Wanted
from orchestrator.qualify.devices import CALLS
from orchestrator.qualify.launch import OWN
from orchestrator.qualify.launched import Launched


def device_line(launched: Launched, wanted: Wanted, role: Role) -> dict[str, object] | None:
    """What a device role that ended well says of its card and of its work; None of a host role.

    How many updates it made is known: there is a line of progress for each.
    """
    view, which = launched.view, wanted.programs.get(role.name, OWN)
    card = devices.cards(view, which).get(role.name)
    if card is None:
        return None
    work = _work(launched, wanted, role)
    seen = devices.seen(view, which)[role.name]
    return {
        "allocated": work.allocated,
        "from_device": work.from_device,
        "inventory": seen["inventory"],
        "launches": work.launches,
        "minor": card.minor,
        "product": devices.profiles(view, which)[role.name].product,
        "shadowed": wanted.shadowed,
        "simulated": devices.is_simulated(view),
        "to_device": work.to_device,
        "uuid": seen["uuid"],
    }


def _work(launched: Launched, wanted: Wanted, role: Role) -> Counted:
    view, which = launched.view, wanted.programs.get(role.name, OWN)
    updates = len(launched.roles[role.name].progress)
    plan = view.plan_of(which)
    (made,) = (each for each in plan.roles if each.name == role.name)  # the witness's has rows of its own
    return counted(plan, made, devices.kernels_of(view, role.name, which), mode=wanted.mode, updates=updates)


def calls_as_counted(launched: Launched, wanted: Wanted) -> tuple[Check, ...]:
    """The stand-ins' own counts of a launch that ended well; nothing where cards are real."""
    view, problems, inputs = launched.view, [], []
    if not devices.is_simulated(view):
        return ()
    bound = {start.role: start.bound.device for start in launched.launch.starts}
    for role in view.planned.plan.roles:
        device = bound.get(role.name)
        if device is None:
            continue
        inputs.append(launched.file(role.name, CALLS))
        work = _work(launched, wanted, role)
        expected = {
            "launches": work.launches,
            "to_device": work.to_device,
            "from_device": work.from_device,
            "bytes_allocated": work.allocated,
            "error": 0,
            "races": 0,
        }
        counted_there = _calls(launched, role.name)
        said = next((vars(each) for each in counted_there if each.minor == device.minor), {})
        problems += [
            f"{role.name}: {key} is {said.get(key)}, expected {value}"
            for key, value in expected.items()
            if said.get(key) != value
        ]
        problems += _others(role.name, counted_there, device.minor)
    fine = "as many launches and bytes as the plan implies, on the bound card alone"
    return (equal(f"{launched.launch.name}-calls", inputs, fine, "; ".join(problems) or fine),)


_LOST = 719
"""The driver's word for a card that is lost at a launch."""
_NEVER_ASKED = frozenset((Label.DEVICE_MINOR, Label.DEVICE_MINOR_TWICE, Label.DEVICE_LIBRARY))
"""Refused before the driver is asked anything."""


def refused_calls(launched: Launched, labels: Mapping[str, str]) -> tuple[Check, ...]:
    """What was asked of stand-ins in a launch that is refused; nothing where cards are real.

    Args:
        launched: the launch.
        labels: role -> what it has to say. One that refuses its card has not used it before, but for one that
            is lost at its first launch; no card but the bound one is asked for anything.
    """
    problems: list[str] = []
    inputs: list[str] = []
    if not devices.is_simulated(launched.view):
        return ()
    for start in launched.launch.starts:
        if (device := start.bound.device) is not None:
            inputs.append(launched.file(start.role, CALLS))
            there = _calls(launched, start.role)
            problems += _others(start.role, there, device.minor)
            own = next((each for each in there if each.minor == device.minor), None)
            problems += _used(start.role, labels.get(start.role, ""), own)
    fine = "no card but the bound one was asked, and that one for no more than the refusal takes"
    return (equal(f"{launched.launch.name}-calls", inputs, fine, "; ".join(problems) or fine),)


def _used(role: str, label: str, own: Calls | None) -> Iterator[str]:
    """What the bound card's counts say against a refusal by this label."""
    if not label.startswith("device-") and label != Label.NVIDIA_PLAN_HOST:
        return
    if label in _NEVER_ASKED:
        if own is not None:
            yield f"{role}: the driver was asked"
        return
    expected = (1, _LOST) if label == Label.DEVICE_LOST else (0, 0)
    if own is None or not own.calls:
        yield f"{role}: its card was not asked"
    elif (own.launches, own.error) != expected or (own.allocations and label != Label.DEVICE_LOST):
        said = f"{own.launches} launches, {own.allocations} allocations, error {own.error}"
        yield f"{role}: {said}, expected {expected[0]} launches, error {expected[1]}"


def _calls(launched: Launched, role: str) -> tuple[Calls, ...]:
    """What the stand-in beside a role counted; nothing if it was never asked."""
    return calls((launched.view.bytes(launched.file(role, CALLS)) or b"").decode("ascii", "replace"))


def _others(role: str, counted_there: tuple[Calls, ...], bound: int) -> Iterator[str]:
    for each in counted_there:
        if each.minor != bound and each.calls:
            yield f"{role}: the card of minor {each.minor} was asked {each.calls} times"
