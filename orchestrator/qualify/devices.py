"""The device roles of a run as its bundle has them: what card each is made for, and which one it is bound to.

Pure: everything is read from the specs and from what was pinned when the run began. Knows nothing of what a
card said of itself; `orchestrator.qualify.looks` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.build.kernels import Kernels
from orchestrator.plan.derive import Planned
from orchestrator.qualify.cards import BoundCard, Wish, choose
from orchestrator.qualify.launch import FOREIGN, OWN, SWAPPED
from orchestrator.qualify.view import SIMULATED, View
from orchestrator.spec.device import DeviceSpec
from orchestrator.spec.lane import LaneSpec

STAND_IN = "standin"
"""The folder of a stand-in: in the bundle, in the run's folder on the node, in a work folder."""
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")


def of_planned(planned: Planned, lane: LaneSpec, which: str = OWN) -> dict[str, DeviceSpec]:
    """Device role -> the profile that a program of it is made for, in role order; host roles are left out.

    None is swapped where the lane swaps nothing.
    """
    if which == SWAPPED and not lane.swap:
        return {}
    made = planned.swapped(lane) if which == SWAPPED else planned
    found = {role: device for role, device in made.devices.items() if device is not None}
    return {role: _foreign(device) for role, device in found.items()} if which == FOREIGN else found


def _foreign(device: DeviceSpec) -> DeviceSpec:
    """A profile that differs in the product alone, which is none that a driver says."""
    return replace(device, product=f"{device.product} of another make")


def profiles(view: View, which: str = OWN) -> dict[str, DeviceSpec]:
    """Device role -> profile; empty for a run of host roles and for a program of the user's own."""
    return {} if view.command else of_planned(view.planned, view.lane, which)


def is_simulated(view: View) -> bool:
    """Whether the run was begun on stand-ins."""
    return bool(view.events()[0].data["pods"] == SIMULATED)


def cards(view: View, which: str = OWN) -> dict[str, BoundCard]:
    """Device role -> the card that its program is bound to.

    Raises:
        ValueError, LookupError, TypeError: what the run was begun with is not there, or not whole.
    """
    made = profiles(view, which)
    if not made:
        return {}
    pinned = view.pinned_cards
    if pinned is not None:
        found = pinned.swapped if which == SWAPPED else pinned.own
        return {role: found[role] for role in made}
    if view.pods is None:
        raise ValueError("the run was begun without cards")
    own = {role: card for role, card in view.pods.cards.items() if role in made}
    return own if which != SWAPPED else exchanged(own, profiles(view), made)


def exchanged(
    own: Mapping[str, BoundCard], before: Mapping[str, DeviceSpec], after: Mapping[str, DeviceSpec]
) -> dict[str, BoundCard]:
    """Device role -> the card of its program for another profile: its own, else another role's beside it.

    A role for which there is none is left out.
    """
    wishes = {role: Wish(own[role].node, device.product) for role, device in after.items() if role in own}
    return choose(wishes, ((own[role], before[role].product) for role in own), own)


def stand_in(view: View, role: str, which: str = OWN) -> dict[str, str]:
    """What lies beside a device role's executable in a simulated run: name -> bundle file; else nothing."""
    pinned = view.pinned_cards
    if pinned is None or not pinned.is_simulated or role not in profiles(view, which):
        return {}
    target = view.targets_of(which)[role]
    libraries = {f"{STAND_IN}/{name}": f"{STAND_IN}/{target}/{name}" for name in LIBRARIES}
    inventory = {name: name for name in pinned.files if name.startswith((CARDS, f"{STAND_IN}/proc/"))}
    return {**libraries, **inventory}


CARDS = f"{STAND_IN}/cards"
CALLS = f"{STAND_IN}-calls"
"""What a stand-in's driver writes into a work folder: which card was asked for what, and how often."""


def kernels_of(view: View, role: str, which: str = OWN) -> Kernels:
    """What a device role's program does on its card."""
    return view.kernels(role, which, capability(profiles(view, which)[role]))


def capability(device: DeviceSpec) -> str:
    """The compute capability of a profile that a role may be paired with, such as `8.6`."""
    return str(device.facts["compute_capability"].value)


def seen(view: View, which: str = OWN) -> dict[str, dict[str, Any]]:
    """Device role -> what preflight saw of its card, as `binding.json` has it; empty before preflight.

    Raises:
        LookupError, TypeError: it is of another form.
    """
    binding = view.json("binding.json")
    if binding is None:
        return {}
    of = binding["swapped"] if which == SWAPPED else binding["roles"]
    return {role: of[role]["device"] for role in profiles(view, which)}


def minors(view: View, node: str) -> frozenset[int]:
    """The minors of all cards that preflight saw on a node.

    Raises:
        LookupError, TypeError: `binding.json` is not there, or is of another form.
    """
    return frozenset(view.json("binding.json")["nodes"][node]["minors"])


def described(view: View) -> str:
    """Which role is bound to which card, for people: `worker: minor 3 of a, GPU-...`; empty without cards."""
    sort = ", a stand-in" if is_simulated(view) else ""
    return "; ".join(
        f"{role}: minor {card.minor} of {card.node}, {card.uuid or 'whatever its UUID is'}{sort}"
        for role, card in cards(view).items()
    )
