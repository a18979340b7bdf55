"""A device profile from a card that was looked at: each fact with its reference, or absent with a reason.

Pure. Knows the form of `orch: device/v1`; writes nothing that the card's tools did not say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from orchestrator.errors import Label
from orchestrator.probe.inventory import Card, Fault, Inventory
from orchestrator.probe.values import Value

_GENERIC: Final = ("Graphics Device", "NVIDIA Graphics Device", "NVIDIA Device")
"""What a driver says of a product that is younger than itself."""
_GUIDE: Final = "CUDA C++ Programming Guide"
_MOST_LANES: Final = 64


def cannot_tell(inventory: Inventory, card: Card) -> tuple[Fault, ...]:
    """Why no profile can be written of a card, by label; empty if one can be."""
    return (*inventory.faults, *_of_card(card), *_of_machine(inventory))


def _of_card(card: Card) -> Iterator[Fault]:
    if card.product.known is None or card.product.known in _GENERIC:
        message = f"the product is not known (got {card.product}, expected its name)"
        yield Fault(Label.NVIDIA_PLAN_HOST, message, "a driver that is younger than the card knows its name")
    if card.is_part:
        got = f"MIG {card.mig}, virtualization {card.virtualization}"
        message = f"the card is in parts, or a part of one (got {got}, expected a whole card)"
        yield Fault(Label.DEVICE_MIG, message, "turn MIG off there, as its owner; or take a whole card")
    if card.broken or card.reset.known:
        got = ", ".join((*card.broken, *([card.reset.known] if card.reset.known else [])))
        message = f"the card answers with errors (got {got}, expected values)"
        yield Fault(Label.DEVICE_RESET, message, "reset it or reboot the host; or look at another card")


def _of_machine(inventory: Inventory) -> Iterator[Fault]:
    if inventory.driver.known is None:
        message = f"the driver's release is not known (got {inventory.driver}, expected one)"
        yield Fault(Label.DEVICE_INVENTORY, message, "memory is a fact of card and driver together")
    if inventory.is_simulated:
        message = "a stand-in has no facts (got simulated cards, expected real ones)"
        yield Fault(Label.DEVICE_FORGED, message, "look at a machine with a card")


def profile_name(product: str) -> str:
    """What pairings may call a product: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", product.lower()).strip("-")


def profile_text(inventory: Inventory, card: Card, day: str) -> str:
    """The profile as YAML.

    Args:
        inventory: of the machine; nothing in it forbids a profile.
        card: the one that was looked at.
        day: when, as a date.
    """
    driver, product = inventory.driver.known or "", card.product.known or ""
    seen = f"driver {driver}, {day}"
    memory = f"nvidia-smi, FB Memory Usage: {seen}{_ecc(card)}"
    lines = [
        "orch: device/v1",
        f"name: {profile_name(product)}",
        "vendor: nvidia",
        f"product: {json.dumps(product)}",
        "facts:",
        *_fact("compute_capability", _quoted(card.capability), f"nvidia-smi, compute_cap: {seen}"),
        *_fact("memory_total", _memory(driver, card.total_mib), memory),
        *_fact("memory_reserved", _memory(driver, card.reserved_mib), memory),
        *_fact("pcie_generation", _number(_generation(card)), f"nvidia-smi, PCIe Generation: {seen}"),
        *_fact("pcie_width", _number(card.pcie_width), f"nvidia-smi, Link Width: {seen}"),
        *_support("float16", "binary16", card.capability, (5, 3)),
        *_support("bfloat16", "bfloat16", card.capability, (8, 0)),
        *_fact("copy_engines", Value("untold", None, "nvidia-smi does not tell it"), ""),
    ]
    return "\n".join(lines) + "\n"


def _ecc(card: Card) -> str:
    return f", ECC {card.ecc.known}" if card.ecc.known is not None else ""


def _fact(name: str, value: Value[str], reference: str) -> tuple[str, ...]:
    if value.known is not None:
        return (f"  {name}:", f"    established: {value.known}", f"    reference: {json.dumps(reference)}")
    reason = value.text if value.state == "untold" else f"the tools say: {value}"
    reason = reason or "nvidia-smi was not asked, or its driver does not tell it"
    return (f"  {name}:", f"    absent: {json.dumps(reason)}")


def _quoted(value: Value[str]) -> Value[str]:
    return value if value.known is None else Value("known", json.dumps(value.known))


def _memory(driver: str, size: Value[int]) -> Value[str]:
    if size.known is None:
        return Value(size.state, None, size.text)
    return Value("known", f'{{"{driver}": {size.known} MiB}}')


def _generation(card: Card) -> Value[int]:
    """The card's own, where the driver tells it: a slot may have less."""
    return card.own_generation if card.own_generation.state == "known" else card.pcie_generation


def _number(value: Value[int]) -> Value[str]:
    if value.known is None or not 1 <= value.known <= _MOST_LANES:
        return Value("unsupported" if value.known is None else "broken", None, str(value))
    return Value("known", str(value.known))


def _support(name: str, kind: str, capability: Value[str], since: tuple[int, int]) -> tuple[str, ...]:
    """Whether the card does an arithmetic itself: a matter of its compute capability alone."""
    if capability.known is None:
        return _fact(name, Value("untold", None, "the compute capability is not known"), "")
    has = tuple(int(part) for part in capability.known.split(".")) >= since
    reference = f"{_GUIDE}: {kind} arithmetic from compute capability {since[0]}.{since[1]}"
    return _fact(name, Value("known", "native" if has else "none"), reference)
