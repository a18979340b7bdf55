"""Stand-in cards for a simulated run: as many as its device roles need, and one that is nobody's.

Makes the cards and the files that stand for them when a run begins; each is pinned, with its digest. What is
made here has no card behind it, and everything that it touches is of grade `simulated`.
"""

from __future__ import annotations

import platform
import uuid
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from evidence.digest import sha256_bytes
from orchestrator.build.standin import Card, build_standin, cards_text, proc_tree
from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.plan.derive import Planned
from orchestrator.qualify import devices
from orchestrator.qualify.cards import BoundCard, PinnedCards, Wish, choose
from orchestrator.qualify.devices import CARDS, LIBRARIES, STAND_IN
from orchestrator.qualify.launch import OWN, SWAPPED
from orchestrator.qualify.view import LOCAL, SIMULATED
from orchestrator.spec.device import DeviceSpec
from orchestrator.spec.lane import LaneSpec

MOST_CARDS = 32
"""Rows of an inventory that a device role reads."""
SMI = f"{STAND_IN}/nvidia-smi"
_MIB = 1 << 20


def stand_ins(
    planned: Planned, lane: LaneSpec, content_root: Path, cache: Path | None
) -> tuple[PinnedCards, dict[str, bytes]]:
    """The cards of a simulated run, and what the bundle holds of them: name -> bytes.

    Raises:
        RefusedError: no role has a device (`pods-unsupported`), or they need more cards than an inventory
            may have (`device-inventory`).
    """
    own, swapped = (devices.of_planned(planned, lane, which) for which in (OWN, SWAPPED))
    if not own:
        message = "there is nothing to simulate (got no device role, expected one at least)"
        hint = f"`--pods {LOCAL}` runs all roles here"
        raise RefusedError([Refusal(Label.PODS_UNSUPPORTED, message, Where(SIMULATED), hint=hint)])
    cards = _cards((*own.values(),), (*swapped.values(),))
    pool = [(BoundCard(LOCAL, card.minor, card.uuid), card.name) for card in cards]
    bound = choose({role: Wish(LOCAL, device.product) for role, device in own.items()}, pool)
    after = choose({role: Wish(LOCAL, device.product) for role, device in swapped.items()}, pool, bound)
    files = {CARDS: cards_text(cards).encode(), **inventory(cards)}
    targets = {made[role] for made in (planned.targets, planned.swapped(lane).targets) for role in own}
    for target in sorted(targets):
        made = build_standin(content_root, cache, target)
        for name, data in zip(LIBRARIES, (made.libcuda, made.libnvidia_ml), strict=True):
            files[f"{STAND_IN}/{target}/{name}"] = data
    files[SMI] = build_standin(content_root, cache, f"{platform.machine()}-linux").nvidia_smi
    digests = {name: sha256_bytes(data) for name, data in files.items()}
    return PinnedCards(is_simulated=True, own=bound, swapped=after if lane.swap else {}, files=digests), files


def inventory(cards: tuple[Card, ...]) -> dict[str, bytes]:
    """The `/proc` tree of these cards, under its names beside an executable."""
    return {f"{STAND_IN}/proc/{name}": data for name, data in proc_tree(cards).items()}


def _cards(own: tuple[DeviceSpec, ...], swapped: tuple[DeviceSpec, ...]) -> tuple[Card, ...]:
    """A card for every role, whichever of its programs runs, and one that no role is bound to."""
    profiles = {device.product: device for device in (*own, *swapped)}
    needed = Counter(device.product for device in own) | Counter(device.product for device in swapped)
    products = [*needed.elements(), own[0].product]
    if len(products) > MOST_CARDS:
        message = f"the roles need too many cards (got {len(products)}, expected at most {MOST_CARDS})"
        raise RefusedError([Refusal(Label.DEVICE_INVENTORY, message, Where(SIMULATED))])
    driver = _driver(tuple(profiles.values()))
    return tuple(_card(index, profiles[product], driver) for index, product in enumerate(products))


def _card(index: int, device: DeviceSpec, driver: str) -> Card:
    """The card at a place of the bus; boards count minors the other way round by fours."""
    return Card(
        minor=index ^ 3,
        uuid=f"GPU-{uuid.uuid4()}",
        bus=f"0000:{index + 1:02x}:00.0",
        cc=str(device.facts["compute_capability"].value),
        memory_mib=_mib(device, "memory_total", driver),
        reserved_mib=_mib(device, "memory_reserved", driver),
        driver=driver,
        name=device.product,
    )


def _mib(device: DeviceSpec, fact: str, driver: str) -> int:
    """A size under a driver, else under any for which it is known; 0 where it is known for none."""
    value = device.facts[fact].value
    sizes = value if isinstance(value, Mapping) else {}
    size: int = sizes.get(driver) or next(iter(sizes.values()), 0)
    return size // _MIB


def _driver(profiles: tuple[DeviceSpec, ...]) -> str:
    """A machine has one driver: the latest for which all cards were established, else for which one was."""
    known = [
        set(value) for each in profiles if isinstance(value := each.facts["memory_total"].value, Mapping)
    ]
    common = set.intersection(*known) if known else set()
    every = sorted(common or set().union(*known), key=lambda text: tuple(map(int, text.split("."))))
    return every[-1] if every else "550.54.14"
