"""What several tools said, joined on bus id into one inventory; contradictions are faults of it.

/proc writes a domain of four digits where nvidia-smi writes eight: both come here in one form. Knows no
tool's words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from orchestrator.errors import Label
from orchestrator.probe import smi_csv, smi_tables
from orchestrator.probe.inventory import PROC, Card, Fault, Inventory, Process, Reading
from orchestrator.probe.values import Value, broken, untold

_PROCESSES_ONLY: Final = (smi_csv.APPS, smi_tables.PMON)
_IDENTITY: Final = ("minor", "uuid", "product")
_REQUIRED: Final = ("bus", "minor", "uuid", "product", "total_mib", "used_mib")
"""What every driver tells of a card, if only as not supported."""
_MOVING: Final = ("used_mib", "utilization")
"""What may be another between two looks: the larger counts."""
_VALUES: Final = tuple(
    each.name for each in fields(Card) if isinstance(getattr(Card(), each.name), Value) and each.name != "bus"
)


def join(readings: Sequence[Reading], whole: Iterable[str] = ()) -> Inventory:
    """One inventory of what several tools said.

    Args:
        readings: in order: of cards and words that agree, the first one's is shown.
        whole: the tools that tell all of a card, the driver, and how many cards there are.
    """
    named = tuple(whole)
    groups, elsewhere, faults = _grouped(readings)
    cards, notes = _given(tuple(_merged(group) for group in groups), readings, named)
    every = [fault for reading in readings for fault in reading.faults]
    every += [
        fault for reading in readings for fault in _incomplete(reading, is_whole=reading.source in named)
    ]
    every += [*faults, *_contradictions(groups), *_drivers(readings)]
    if not cards and not every:
        every.append(_nothing(readings))
    preload = tuple(name for reading in readings for name in reading.preload or ())
    asked = any(reading.preload is not None for reading in readings)
    return Inventory(
        source="all",
        driver=_value([reading.driver for reading in readings]),
        attached=_value([reading.attached for reading in readings]),
        cards=tuple(sorted(cards, key=lambda card: (card.index is None, card.index or 0, str(card.bus)))),
        elsewhere=elsewhere,
        faults=tuple(dict.fromkeys(every)),
        notes=tuple(dict.fromkeys((*(note for reading in readings for note in reading.notes), *notes))),
        others=tuple(name for reading in readings for name in reading.others),
        holders=tuple(pair for reading in readings for pair in reading.holders),
        preload=preload if asked else None,
        is_simulated=any(reading.is_simulated for reading in readings),
        readings=tuple(readings),
    )


def _given(
    cards: tuple[Card, ...], readings: Sequence[Reading], whole: Sequence[str]
) -> tuple[tuple[Card, ...], tuple[str, ...]]:
    """The cards that a machine may use, and a note of the others.

    A container sees the kernel's whole list under /proc, and by nvidia-smi only the cards that it was given.
    """
    is_told = any(reading.source in whole and not reading.faults for reading in readings)
    hidden = tuple(card for card in cards if is_told and card.sources == (PROC,))
    if not hidden:
        return cards, ()
    names = ", ".join(str(card) for card in hidden)
    note = f"not given to this machine, or lost: the kernel lists {names}, which nvidia-smi does not"
    return tuple(card for card in cards if card not in hidden), (note,)


def _nothing(readings: Sequence[Reading]) -> Fault:
    """Why there is no card where no tool failed."""
    if all(reading.source in _PROCESSES_ONLY for reading in readings):
        message = "only processes were asked for (got no list of cards, expected one)"
        return Fault(Label.DEVICE_INVENTORY, message)
    return Fault(
        Label.DEVICE_ABSENT, "there is no card (got none, expected at least one)", "rent a machine with one"
    )


def _grouped(readings: Sequence[Reading]) -> tuple[list[list[Card]], tuple[Process, ...], list[Fault]]:
    """Cards told by several tools, together; processes and faults of those that belong to none."""
    groups: list[list[Card]] = []
    elsewhere = [process for reading in readings for process in reading.elsewhere]
    faults = [fault for reading in readings for fault in _twice(reading)]
    told = [card for reading in readings for card in reading.cards]
    for card in sorted(told, key=_is_process_list):  # lists of processes last
        group = _place(groups, card)
        if group is not None:
            group.append(card)
        elif _is_process_list(card):
            elsewhere.extend(card.processes or ())
        else:
            groups.append([card])
    placed = [any(card.bus.known for card in group) for group in groups]
    if any(placed) and not all(placed):
        message = f"a card has no bus id (got {groups[placed.index(False)][0]}, expected one for each)"
        faults.append(Fault(Label.DEVICE_INVENTORY, message))
    return groups, tuple(elsewhere), faults


def _twice(reading: Reading) -> Iterator[Fault]:
    buses = Counter(card.bus.known for card in reading.cards if card.bus.known and not _is_process_list(card))
    for bus, count in buses.items():
        if count > 1:
            message = f"{bus} is there more than once (got {count} of it, expected one)"
            yield Fault(Label.DEVICE_FORGED, message, source=reading.source)


def _is_process_list(card: Card) -> bool:
    """Whether only a list of processes told of it, which does not make it a card."""
    return card.product.state == card.minor.state == "untold" and card.processes is not None


def _place(groups: list[list[Card]], card: Card) -> list[Card] | None:
    """The cards that this is one of: by bus id; where that is not told, by a UUID that only one has."""
    if card.bus.known is not None:
        return next((each for each in groups if any(other.bus == card.bus for other in each)), None)
    named = [each for each in groups if card.uuid.known and any(card.uuid == other.uuid for other in each)]
    return named[0] if len(named) == 1 and card.bus.state == "untold" else None


def _merged(group: Sequence[Card]) -> Card:
    told: dict[str, Any] = {
        name: _value([getattr(card, name) for card in group], larger=name in _MOVING) for name in _VALUES
    }
    told["reset"] = _reset([card.reset for card in group])
    return replace(
        group[0],
        **told,
        bus=next((card.bus for card in group if card.bus.known), group[0].bus),
        index=next((card.index for card in group if card.index is not None), None),
        mig_devices=max(card.mig_devices for card in group),
        repairs=tuple(dict.fromkeys(each for card in group for each in card.repairs)),
        broken=tuple(dict.fromkeys(each for card in group for each in card.broken)),
        is_examined=any(card.is_examined for card in group),
        processes=_processes([card.processes for card in group]),
        sources=tuple(dict.fromkeys(name for card in group for name in card.sources)),
    )


def _value(said: Sequence[Value[Any]], *, larger: bool = False) -> Value[Any]:
    """What several tools say of one thing: broken where two of them differ."""
    known = list({each.known: each for each in said if each.state == "known"}.values())
    if known:
        if larger:
            return max(known, key=lambda each: int(each.known or 0))
        return known[0] if len(known) == 1 else broken(" and ".join(str(each) for each in known))
    order = ("broken", "unsupported", "untold")
    return min(said, key=lambda each: order.index(each.state), default=untold())


def _reset(said: Sequence[Value[str]]) -> Value[str]:
    pending = tuple(each for each in said if each.known)
    return pending[0] if pending else _value(said)


def _processes(said: Sequence[tuple[Process, ...] | None]) -> tuple[Process, ...] | None:
    """All that any list has, as the first list tells of it; but who computes by any word computes."""
    lists = [each for each in said if each is not None]
    found: dict[object, Process] = {}
    for process in (each for one in lists for each in one):
        key = process.pid.known if process.pid.state == "known" else object()
        if found.setdefault(key, process).is_compute is not True and process.is_compute:
            found[key] = process
    return tuple(found.values()) if lists else None


def _incomplete(reading: Reading, *, is_whole: bool) -> Iterator[Fault]:
    """What a tool leaves out of its own list."""
    if reading.attached.known is not None and reading.attached.known != len(reading.cards):
        message = (
            f"the list of cards is not complete (got {len(reading.cards)}, expected {reading.attached.known})"
        )
        yield Fault(Label.DEVICE_INVENTORY, message, source=reading.source)
    required = _REQUIRED if is_whole else ("bus",) if reading.source == PROC else ()
    for card in reading.cards:
        missing = [name for name in required if getattr(card, name).state == "untold"]
        if missing:
            message = f"{card} is not told of in full (got no {', '.join(missing)}, expected it)"
            yield Fault(Label.DEVICE_INVENTORY, message, source=reading.source)
        elif card.bus.state == "broken":
            message = f"{card} has no place (got {card.bus}, expected one bus id)"
            yield Fault(Label.DEVICE_INVENTORY, message, source=reading.source)
    if is_whole and not reading.faults:
        yield from _headless(reading)


def _headless(reading: Reading) -> Iterator[Fault]:
    """What a whole list says of the machine before it says anything of cards."""
    for name, value in (
        ("the driver's release", reading.driver),
        ("how many cards there are", reading.attached),
    ):
        if value.state != "known":
            message = f"{name} is missing (got {value}, expected it)"
            yield Fault(Label.DEVICE_INVENTORY, message, source=reading.source)


def _contradictions(groups: Sequence[Sequence[Card]]) -> Iterator[Fault]:
    """Where two tools say different things of what a card is."""
    for group in groups:
        for name in _IDENTITY:
            said = {
                str(getattr(card, name).known): card.sources[0]
                for card in group
                if getattr(card, name).state == "known"
            }
            if len(said) > 1:
                got = ", ".join(f"{value} by {source}" for value, source in said.items())
                label = Label.DEVICE_FORGED if PROC in said.values() else Label.DEVICE_INVENTORY
                yield Fault(label, f"the {name} of {group[0]} differs (got {got}, expected one)")


def _drivers(readings: Sequence[Reading]) -> Iterator[Fault]:
    said = {str(reading.driver.known): reading.source for reading in readings if reading.driver.known}
    if len(said) > 1:
        got = ", ".join(f"{value} by {source}" for value, source in said.items())
        hint = "the driver was changed while it ran: restart the machine, or rent another"
        yield Fault(Label.DEVICE_DRIVER, f"the driver's release differs (got {got}, expected one)", hint)
