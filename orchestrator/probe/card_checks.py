"""One card: what it is, who uses it, what state it is in.

Pure. Where the bounds of "idle" come from is said beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestrator.errors import Label
from orchestrator.probe import smi_text, smi_xml
from orchestrator.probe.inventory import PROC, Card, Inventory, Process
from orchestrator.probe.rows import Row, Verdict, Wanted, equal
from orchestrator.probe.values import one_line
from orchestrator.spec.device import release_for

IDLE_MIB: Final = 32
"""Memory that no process accounts for and that is not yet somebody's.

Idle cards without a process have been seen with 0 to 10 MiB (the driver's own), and up to 13 more than their
processes take; the smallest CUDA context seen took 160. The bound is near the lower end of what lies between.
"""
IDLE_PERCENT: Final = 5
"""Utilisation that is a sample's noise: idle cards have been seen with 0, the least busy one with 7."""
_MOST_SHOWN: Final = 3
_WHOLE: Final = frozenset((smi_xml.SOURCE, smi_text.SOURCE))


def card_rows(inventory: Inventory, wanted: Wanted, card: Card) -> Iterator[Row]:
    """Judge one card: first what it is, then the state that it is in."""
    if wanted.product is not None:
        yield equal("product", card, card.product, wanted.product, Label.NVIDIA_PLAN_HOST)
    if wanted.capability is not None:
        yield _capability_row(card, wanted.capability)
    if wanted.drivers:
        yield _driver_row(inventory, wanted)
    yield from state_rows(inventory, card)
    yield _kernel_row(inventory, card)


def state_rows(inventory: Inventory, card: Card) -> Iterator[Row]:
    """Judge whether nobody uses a card and nothing is wrong with it, whatever it is wanted for."""
    yield from _process_rows(inventory, card)
    yield _memory_row(inventory, card)
    yield _utilisation_row(inventory, card)
    yield _mig_row(card)
    yield from _health_rows(card)


def _capability_row(card: Card, wanted: str) -> Row:
    row = equal("compute-capability", card, card.capability, wanted, Label.NVIDIA_PLAN_HOST)
    if row.verdict != "unknown":
        return row
    got = "this driver's nvidia-smi does not tell it: the program asks the driver itself"
    return Row(row.name, "not-applicable", row.inputs, wanted, got, row.label)


def _driver_row(inventory: Inventory, wanted: Wanted) -> Row:
    release, label = inventory.driver, Label.DEVICE_DRIVER
    inputs = tuple(each.source for each in inventory.readings if each.driver.state == "known")
    expected = " or ".join(wanted.drivers)
    if release.known is None:
        return Row("driver-release", "unknown", inputs, expected, str(release), label)
    if release_for(release.known, wanted.drivers) is not None:
        return Row("driver-release", "pass", inputs, expected, release.known, label)
    warning = f"the profile was not established for driver {release.known}"
    if not wanted.needs_driver:
        return Row("driver-release", "pass", inputs, "any", release.known, label, warning)
    hint = "`orch profile capture` writes what this driver reports"
    return Row("driver-release", "fail", inputs, expected, release.known, label, hint=hint)


def _process_rows(inventory: Inventory, card: Card) -> Iterator[Row]:
    listed, label = card.processes, Label.DEVICE_BUSY
    elsewhere = tuple(each for each in inventory.elsewhere if each.is_compute is not False)
    computing = tuple(each for each in listed or () if each.is_compute)
    unsaid = tuple(each for each in listed or () if each.is_compute is None)
    is_only_card = len(inventory.cards) == 1
    verdict: Verdict = "pass"
    if computing or (elsewhere and is_only_card):
        verdict = "fail"
    elif listed is None or unsaid or elsewhere:
        verdict = "unknown"
    shown = (*computing, *unsaid, *elsewhere)
    got = "no list of processes" if listed is None and not shown else _shown(shown) or "none listed"
    hint = "end them, or take another card"
    yield Row("compute-processes", verdict, card.sources, "none", got, label, hint=hint)
    drawing = tuple(each for each in listed or () if each.is_compute is False)
    if drawing:
        warning = f"the card also draws: {_shown(drawing)}"
        yield Row("graphics-processes", "pass", card.sources, "any", _shown(drawing), label, warning)


def _shown(processes: tuple[Process, ...]) -> str:
    names = [
        f"{one_line(each.name) or 'a process'} (pid {each.pid}, {each.kind or 'C'})"
        for each in processes[:_MOST_SHOWN]
    ]
    more = len(processes) - _MOST_SHOWN
    return ", ".join([*names, *([f"{more} more"] if more > 0 else [])])


def _memory_row(inventory: Inventory, card: Card) -> Row:
    """Memory that no listed process accounts for: a container's list may be blind."""
    expected = f"at most {IDLE_MIB} MiB that no process accounts for"
    used, listed = card.used_mib, card.processes or ()
    unsaid = [each for each in listed if each.used_mib.known is None]
    accounted = sum(each.used_mib.known or 0 for each in listed)
    left = None if used.known is None else used.known - accounted
    got = f"{used} MiB in use, {accounted} of them accounted for" if used.known is not None else str(used)
    if left is not None and left > IDLE_MIB:
        got += _held(inventory, card)
    verdict: Verdict = "pass" if left is not None and left <= IDLE_MIB else "fail"
    if left is None or (verdict == "fail" and unsaid):
        verdict = "unknown"  # an error in its place is a row of its own
    is_told_to_none = used.state == "unsupported" and "permission" not in used.text.lower()
    warning = _unified(inventory) if is_told_to_none else ""
    hint = "a process that this machine does not show may hold it: take another card"
    return Row("memory-in-use", verdict, card.sources, expected, got, Label.DEVICE_BUSY, warning, hint)


def _held(inventory: Inventory, card: Card) -> str:
    """Who has the card's device file open, which is all that may be known of who holds its memory."""
    pids = [str(pid) for minor, pid in inventory.holders if minor == card.minor.known]
    return f", its device file open in {', '.join(pids[:_MOST_SHOWN])}" if pids else ""


def _unified(inventory: Inventory) -> str:
    memory = next((note for note in inventory.notes if note.startswith("the machine's memory")), "")
    return "; ".join(("the card shares the machine's memory", *([memory] if memory else [])))


def _utilisation_row(inventory: Inventory, card: Card) -> Row:
    """Whoever draws uses a card too: that is no refusal, where nobody else can be meant."""
    busy, warning = card.utilization, ""
    verdict: Verdict = "unknown" if busy.known is None else "fail"
    if busy.known is not None and busy.known <= IDLE_PERCENT:
        verdict = "pass"
    elif busy.known is not None and _only_draws(inventory, card):
        verdict, warning = "pass", "it draws"
    got = f"{busy} %" if busy.known is not None else str(busy)
    expected = f"at most {IDLE_PERCENT} %"
    return Row("utilisation", verdict, card.sources, expected, got, Label.DEVICE_BUSY, warning)


def _only_draws(inventory: Inventory, card: Card) -> bool:
    """Whether the processes that are listed draw, and account for the memory in use."""
    draws = bool(card.processes) and all(each.is_compute is False for each in card.processes or ())
    return draws and _memory_row(inventory, card).verdict == "pass"


def _mig_row(card: Card) -> Row:
    """A card in parts, or a part of one, is none that a role has for itself; most products cannot be cut."""
    verdict: Verdict = "fail" if card.is_part or card.mig.state == "broken" else "pass"
    if card.mig.state == "untold" and not card.is_part and not _WHOLE.intersection(card.sources):
        verdict = "unknown"
    parts = f", {card.mig_devices} parts" if card.mig_devices else ""
    mode = f", virtualization {card.virtualization}" if card.virtualization.state == "known" else ""
    got = f"{card.mig}{parts}{mode}"
    hint = "`nvidia-smi -mig 0` there, as its owner; where the card is a virtual one, rent a whole one"
    return Row("mig-off", verdict, card.sources, "off, or not supported", got, Label.DEVICE_MIG, hint=hint)


def _health_rows(card: Card) -> Iterator[Row]:
    pending, label = card.reset, Label.DEVICE_RESET
    verdict: Verdict = "fail" if pending.known else "pass" if pending.known is not None else "unknown"
    got = str(pending) if pending.known else "none" if verdict == "pass" else "not told"
    if verdict == "unknown" and _WHOLE.intersection(card.sources):
        verdict, got = "not-applicable", "this driver does not tell whether a reset is pending"
    warning = ", ".join(card.repairs)
    hint = "reset the card or reboot the host, as its owner; or rent another"
    yield Row("no-reset-pending", verdict, card.sources, "none", got, label, warning, hint)
    broken = ", ".join(card.broken)
    state: Verdict = "fail" if broken else "pass" if card.is_examined else "unknown"
    got = broken or ("no error" if card.is_examined else "not told")
    yield Row("no-errors", state, card.sources, "a value or N/A", got, label, hint=hint)


def _kernel_row(inventory: Inventory, card: Card) -> Row:
    """The kernel's own list against nvidia-smi's, which a library can be made to change."""
    name, expected, label = "kernel-lists-it", "the same card under /proc/driver/nvidia", Label.DEVICE_FORGED
    if PROC in card.sources:
        return Row(name, "pass", card.sources, expected, "it is there", label)
    reading = next((each for each in inventory.readings if each.source == PROC), None)
    if reading is None or reading.faults:
        return Row(name, "unknown", card.sources, expected, "it was not looked at", label)
    if not reading.cards:
        got = "the kernel's list is not at hand here: the card is nvidia-smi's word alone"
        return Row(name, "not-applicable", (PROC, *card.sources), expected, got, label)
    hint = "a library shows a card that the kernel does not have: rent another machine"
    return Row(name, "fail", (PROC, *card.sources), expected, "other cards only", label, hint=hint)
