"""The refusal controls of device roles: what each asks for, and what each role must say of it.

What is wrong is in the binding, in the program, or, in a simulated run, in the stand-in: its files are edited
as text, so that a judge makes the same bytes of the bundle's own. Roles refuse their card before they look
for each other, so only those that must refuse are started; but for a card that is lost while the run goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from orchestrator.errors import Label
from orchestrator.plan.model import Plan
from orchestrator.qualify import devices
from orchestrator.qualify.cards import BoundCard
from orchestrator.qualify.compose import Wanted
from orchestrator.qualify.controls import Checkpoint, Control
from orchestrator.qualify.devices import CARDS, STAND_IN
from orchestrator.qualify.launch import FOREIGN
from orchestrator.qualify.tamper import Placed
from orchestrator.qualify.view import View
from orchestrator.spec.pods import MOST_MINOR

Files = dict[str, dict[str, str]]


def device_controls(view: View) -> tuple[Control, ...]:
    """The controls that this run's device roles can have; none without such a role."""
    own = devices.cards(view)
    if not own:
        return ()
    told = {role: card for role, card in own.items() if card.uuid is not None}
    everyone = _all_say(tuple(own))
    found = [
        Control("device-minor", _no_such_minor, everyone(Label.DEVICE_MINOR)),
        Control("nvidia-plan-host", _another_product, everyone(Label.NVIDIA_PLAN_HOST)),
    ]
    if told:
        labels = _all_say(tuple(told))(Label.DEVICE_UUID)
        found.insert(0, Control("device-uuid", _another_uuid, labels))
    if devices.is_simulated(view):
        found += [
            Control("device-minor-twice", _twin, everyone(Label.DEVICE_MINOR_TWICE)),
            Control("device-library", _no_library, everyone(Label.DEVICE_LIBRARY)),
            Control("device-memory", _no_memory, everyone(Label.DEVICE_MEMORY)),
            Control("device-lost", _lost, _one_is_lost(tuple(own)[-1])),
        ]
    return tuple(found)


Labels = Callable[[Plan], Mapping[str, str]]


def _all_say(roles: tuple[str, ...]) -> Callable[[Label], Labels]:
    return lambda label: lambda _plan: dict.fromkeys(roles, label)


def _one_is_lost(role: str) -> Labels:
    """Whose card is lost says so; the others see a peer go."""
    return lambda plan: {
        each.name: Label.DEVICE_LOST if each.name == role else Label.PEER_LOST for each in plan.roles
    }


def _wanted(view: View, folder: str) -> Wanted:
    """One update by the device roles alone."""
    return Wanted(folder.rpartition("/")[2], epoch=1, target=1, roles=tuple(devices.cards(view)))


def _another_uuid(view: View, _base: Checkpoint, folder: str) -> Wanted:
    """The card's own minor under a UUID that differs in its last digit."""
    told = {role: card for role, card in devices.cards(view).items() if card.uuid is not None}
    other = {role: replace(card, uuid=_next(card.uuid or "")) for role, card in told.items()}
    return replace(_wanted(view, folder), cards=other, roles=tuple(told))


def _next(uuid: str) -> str:
    return uuid[:-1] + f"{int(uuid[-1], 16) ^ 1:x}"


def _no_such_minor(view: View, _base: Checkpoint, folder: str) -> Wanted:
    """A minor that no card of the node has, as preflight saw them."""
    own = devices.cards(view)
    free = {node: _free_minor(view, node) for node in {card.node for card in own.values()}}
    other = {role: replace(card, minor=free[card.node]) for role, card in own.items()}
    return replace(_wanted(view, folder), cards=other)


def _free_minor(view: View, node: str) -> int:
    taken = devices.minors(view, node)
    return next(minor for minor in range(MOST_MINOR, -1, -1) if minor not in taken)


def _another_product(view: View, _base: Checkpoint, folder: str) -> Wanted:
    """The same role's program of the same plan, made for a product that the card is not."""
    return replace(_wanted(view, folder), programs=dict.fromkeys(devices.cards(view), FOREIGN))


def _twin(view: View, _base: Checkpoint, folder: str) -> Wanted:
    """Another card's information says the bound card's minor too."""
    stand_in: Files = {}
    placed: Placed = {}
    for role, card in devices.cards(view).items():
        files = devices.stand_in(view, role)
        minors = {
            name: _minor(view, source) for name, source in files.items() if name.endswith("/information")
        }
        name = next(name for name, minor in sorted(minors.items()) if minor != card.minor)
        altered = f"{folder}/placed/{role}.information"
        text = (view.bytes(files[name]) or b"").decode()
        placed[altered] = _MINOR.sub(rf"\g<1>{card.minor}", text).encode()
        stand_in[role] = {**files, name: altered}
    return replace(_wanted(view, folder), stand_in=stand_in, placed=placed)


_MINOR = re.compile(r"^(Device Minor:\s*)([0-9]+)", re.MULTILINE)


def _minor(view: View, source: str) -> int | None:
    found = _MINOR.search((view.bytes(source) or b"").decode())
    return int(found[2]) if found else None


def _no_library(view: View, _base: Checkpoint, folder: str) -> Wanted:
    """The driver's library is not there."""
    files = {role: devices.stand_in(view, role) for role in devices.cards(view)}
    missing = f"{STAND_IN}/libcuda.so.1"
    without = {
        role: {name: at for name, at in each.items() if name != missing} for role, each in files.items()
    }
    return replace(_wanted(view, folder), stand_in=without)


def _no_memory(view: View, _base: Checkpoint, folder: str) -> Wanted:
    """Every allocation on the bound card fails."""
    own = devices.cards(view)
    stand_in, placed = _at_fault(view, own, "memory@0", folder)
    return replace(_wanted(view, folder), stand_in=stand_in, placed=placed)


def _lost(view: View, _base: Checkpoint, folder: str) -> Wanted:
    """The last device role's card is lost at its first launch, when all roles have met."""
    role, card = list(devices.cards(view).items())[-1]
    stand_in, placed = _at_fault(view, {role: card}, "lost@1", folder)
    return replace(_wanted(view, folder), roles=None, stand_in=stand_in, placed=placed)


def _at_fault(view: View, cards: Mapping[str, BoundCard], fault: str, folder: str) -> tuple[Files, Placed]:
    """Stand-ins' files in which the bound cards are at fault."""
    stand_in: Files = {}
    placed: Placed = {}
    text = (view.bytes(CARDS) or b"").decode()
    for role, card in cards.items():
        altered = f"{folder}/placed/{role}.cards"
        line = re.compile(rf"^(card minor={card.minor} .*)fault=\S+", re.MULTILINE)
        placed[altered] = line.sub(rf"\g<1>fault={fault}", text).encode()
        stand_in[role] = {**devices.stand_in(view, role), CARDS: altered}
    return stand_in, placed
