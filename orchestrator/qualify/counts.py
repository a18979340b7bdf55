"""What device roles do, counted: launches, bytes moved and bytes held, as the plan implies them.

A role counts for itself and says so on standard output; a stand-in's driver counts for itself, for each of
its cards, in a file beside the executable. Both must be what the plan implies. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestrator.build.counted import Counted, counted
from orchestrator.plan.roles import Role
from orchestrator.qualify import devices
from orchestrator.qualify.checks import Check, equal
from orchestrator.qualify.compose import Wanted
from orchestrator.qualify.devices import CALLS
from orchestrator.qualify.launch import OWN
from orchestrator.qualify.launched import Launched

Calls = Mapping[int, Mapping[str, int]]
"""Minor -> what its card was asked for: `calls`, `launches`, `bytes_allocated`, `to_device` and others."""


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
    return counted(plan, role, devices.kernels_of(view, role.name, which), mode=wanted.mode, updates=updates)


def calls_as_counted(launched: Launched, wanted: Wanted) -> tuple[Check, ...]:
    """The stand-ins' own counts of a launch that ended well; nothing where cards are real."""
    view, problems = launched.view, []
    if not devices.is_simulated(view):
        return ()
    bound = {start.role: start.bound.device for start in launched.launch.starts}
    device_roles = [role for role in view.planned.plan.roles if bound.get(role.name) is not None]
    for role in device_roles:
        device, work = bound[role.name], _work(launched, wanted, role)
        calls = read_calls(view.bytes(launched.file(role.name, CALLS)))
        expected = {
            "launches": work.launches,
            "to_device": work.to_device,
            "from_device": work.from_device,
            "bytes_allocated": work.allocated,
        }
        said = calls.get(device.minor, {}) if device else {}
        problems += [
            f"{role.name}: {key} is {said.get(key)}, expected {value}"
            for key, value in expected.items()
            if said.get(key) != value
        ]
        problems += [f"{role.name}: {each}" for each in _others(calls, device.minor if device else None)]
    inputs = tuple(launched.file(role.name, CALLS) for role in device_roles)
    fine = "as many launches and bytes as the plan implies, on the bound card alone"
    return (equal(f"{launched.launch.name}-calls", inputs, fine, "; ".join(problems) or fine),)


def bound_card_alone(launched: Launched) -> tuple[Check, ...]:
    """No card but the bound one was asked for anything; nothing where cards are real."""
    view, problems, inputs = launched.view, [], []
    if not devices.is_simulated(view):
        return ()
    for start in launched.launch.starts:
        device = start.bound.device
        if device is not None:
            inputs.append(launched.file(start.role, CALLS))
            calls = read_calls(view.bytes(inputs[-1]))
            problems += [f"{start.role}: {each}" for each in _others(calls, device.minor)]
    fine = "no card but the bound one was asked for anything"
    return (equal(f"{launched.launch.name}-calls", inputs, fine, "; ".join(problems) or fine),)


def _others(calls: Calls, bound: int | None) -> Iterator[str]:
    for minor, counts in calls.items():
        if minor != bound and any(counts.values()):
            yield f"the card of minor {minor} was asked {counts.get('calls')} times"


def read_calls(data: bytes | None) -> Calls:
    """What a stand-in counted; nothing if it was never asked.

    Raises:
        ValueError: it is of another form.
    """
    found: dict[int, dict[str, int]] = {}
    for line in (data or b"").decode("ascii").splitlines():
        counts = {key: int(value) for key, _, value in (each.partition("=") for each in line.split())}
        found[counts.pop("minor")] = counts
    return found
