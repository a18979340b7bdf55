"""Where a card's facts stand in nvidia-smi's three ways of writing them, and the card that they make.

Knows names of elements, lines and columns, of every age; what is not named here is ignored. Must not know how
a text is taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.probe import values
from orchestrator.probe.inventory import Card, Process
from orchestrator.probe.values import Value, read


@dataclass(frozen=True)
class Field:
    """Where a fact stands; empty where that way of writing does not have it. The first that is there counts.

    Attributes:
        xml: paths below `<gpu>`.
        text: headings and key in `-q`, joined by `/`, in lower case.
        columns: of `--query-gpu`.
    """

    xml: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


FIELDS: Final = {
    "bus": Field(("pci/pci_bus_id", "pci/gpu_bus_id"), ("pci/bus id",), ("pci.bus_id", "gpu_bus_id")),
    "minor": Field(("minor_number",), ("minor number",)),
    "uuid": Field(("uuid",), ("gpu uuid",), ("uuid", "gpu_uuid")),
    "product": Field(("product_name",), ("product name",), ("name", "gpu_name")),
    "capability": Field(columns=("compute_cap",)),
    "total_mib": Field(
        ("fb_memory_usage/total", "memory_usage/total"),
        ("fb memory usage/total", "memory usage/total"),
        ("memory.total",),
    ),
    "reserved_mib": Field(("fb_memory_usage/reserved",), ("fb memory usage/reserved",), ("memory.reserved",)),
    "used_mib": Field(
        ("fb_memory_usage/used", "memory_usage/used"),
        ("fb memory usage/used", "memory usage/used"),
        ("memory.used",),
    ),
    "utilization": Field(("utilization/gpu_util",), ("utilization/gpu",), ("utilization.gpu",)),
    "mig": Field(("mig_mode/current_mig",), ("mig mode/current",), ("mig.mode.current",)),
    "compute_mode": Field(("compute_mode",), ("compute mode",), ("compute_mode",)),
    "pcie_generation": Field(
        ("pci/pci_gpu_link_info/pcie_gen/max_link_gen",),
        ("pci/gpu link info/pcie generation/max",),
        ("pcie.link.gen.max",),
    ),
    "own_generation": Field(
        ("pci/pci_gpu_link_info/pcie_gen/max_device_link_gen",),
        ("pci/gpu link info/pcie generation/device max",),
        ("pcie.link.gen.gpumax",),
    ),
    "pcie_width": Field(
        ("pci/pci_gpu_link_info/link_widths/max_link_width",),
        ("pci/gpu link info/link width/max",),
        ("pcie.link.width.max",),
    ),
    "ecc": Field(("ecc_mode/current_ecc",), ("ecc mode/current",), ("ecc.mode.current",)),
    "virtualization": Field(
        ("gpu_virtualization_mode/virtualization_mode",),
        ("gpu virtualization mode/virtualization mode", "virtualization mode"),
    ),
}
_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "bus": values.bus_id,
    "minor": values.minor,
    "uuid": values.uuid,
    "capability": values.capability,
    "total_mib": values.whole,
    "reserved_mib": values.whole,
    "used_mib": values.whole,
    "utilization": values.whole,
    "pcie_generation": values.whole,
    "own_generation": values.whole,
    "pcie_width": values.width,
}
# what a healthy card answers with a value or with N/A, never with an error
_HEALTH: Final = {
    "fan speed": Field(("fan_speed",), ("fan speed",), ("fan.speed",)),
    "temperature": Field(("temperature/gpu_temp",), ("temperature/gpu current temp",), ("temperature.gpu",)),
    "performance state": Field(("performance_state",), ("performance state",), ("pstate",)),
    "power draw": Field(
        (
            "power_readings/power_draw",
            "gpu_power_readings/power_draw",
            "gpu_power_readings/average_power_draw",
        ),
        (
            "power readings/power draw",
            "gpu power readings/power draw",
            "gpu power readings/average power draw",
        ),
        ("power.draw",),
    ),
    "instantaneous power draw": Field(
        ("gpu_power_readings/instant_power_draw",),
        ("gpu power readings/instantaneous power draw",),
        ("power.draw.instant",),
    ),
    "serial": Field(("serial",), ("serial number",), ("serial",)),
}
# (what it is called, where it stands, the word that says that nothing is pending)
_RESETS: Final = (
    (
        "recovery action",
        Field(("gpu_recovery_action",), ("gpu recovery action",), ("gpu_recovery_action",)),
        "none",
    ),
    (
        "reset required",
        Field(
            ("gpu_reset_status/reset_required",),
            ("gpu reset status/reset required",),
            ("reset_status.reset_required",),
        ),
        "no",
    ),
    (
        "drain and reset recommended",
        Field(
            ("gpu_reset_status/drain_and_reset_recommended",),
            ("gpu reset status/drain and reset recommended",),
            ("reset_status.drain_and_reset_recommended",),
        ),
        "no",
    ),
)
# memory that no reset will replace
_DEFECTS: Final = (
    (
        "row remapping has failed",
        Field(
            ("remapped_rows/remapped_row_failure",),
            ("remapped rows/remapping failure occurred",),
            ("remapped_rows.failure",),
        ),
        "no",
    ),
    (
        "unrepairable memory",
        Field(("ecc_errors/unrepairable_memory",), ("ecc errors/unrepairable memory",)),
        "no",
    ),
)
# memory that is to be replaced at the next reset, which the driver does not ask for yet
_REPAIRS: Final = (
    (
        "row remapping",
        Field(
            ("remapped_rows/remapped_row_pending",), ("remapped rows/pending",), ("remapped_rows.pending",)
        ),
        "no",
    ),
    (
        "page retirement",
        Field(
            ("retired_pages/pending_retirement", "retired_pages/pending_blacklist"),
            ("retired pages/pending page blacklist", "retired pages/pending"),
            ("retired_pages.pending",),
        ),
        "no",
    ),
    (
        "channel repair",
        Field(("ecc_errors/channel_repair_pending",), ("ecc errors/channel repair pending",)),
        "no",
    ),
    (
        "TPC repair",
        Field(("ecc_errors/tpc_repair_pending",), ("ecc errors/tpc repair pending",)),
        "no",
    ),
)
_RELEASES: Final = (
    Field(("driver_version",), ("driver version",), ("driver_version",)),
    Field(("kmd_version",), ("kmd version",), ("kmd_version",)),
)
_LONGEST_NAME: Final = 4096

Find = Callable[[Field], str | None]


def card_of(find: Find, *, index: int | None, source: str, more: dict[str, Any]) -> Card:
    """The card that a tool's words make.

    Args:
        find: gives what a text has for a field; None where it has nothing.
        index: its place in the text.
        source: the tool.
        more: what the text says besides: `mig_devices`, `processes`.
    """
    facts: dict[str, Any] = {
        name: read(find(field), _READERS.get(name, values.word)) for name, field in FIELDS.items()
    }
    told = {name: read(find(field), values.word) for name, field in _HEALTH.items()}
    both = {**{name: facts[name] for name in ("total_mib", "used_mib", "utilization")}, **told}
    broken = [f"{name}: {value}" for name, value in both.items() if value.state == "broken"]
    state: dict[str, Any] = {
        "reset": _reset(find),
        "repairs": tuple(_pending(find, _REPAIRS)),
        "broken": (*broken, *_pending(find, _DEFECTS)),
        "is_examined": any(value.state != "untold" for value in both.values()),
    }
    return Card(**facts, **more, **state, index=index, sources=(source,))


def release_of(find: Find) -> Value[str]:
    """The driver's release: from 610 on under the name that it will keep, too.

    Args:
        find: gives what a text has for a field of the whole machine.
    """
    old, new = (read(find(field), values.driver) for field in _RELEASES)
    return values.either(old, new)


def _reset(find: Find) -> Value[str]:
    """Why a reset is pending: known and empty if every word that there is says that none is."""
    told = [read(find(field), values.word) for _, field, _ in _RESETS]
    if not any(value.state in ("known", "broken") for value in told):
        return Value("unsupported" if any(value.state == "unsupported" for value in told) else "untold")
    pending = ", ".join(_pending(find, _RESETS))
    return Value("known", pending, pending)


def _pending(find: Find, words: Iterable[tuple[str, Field, str]]) -> Iterator[str]:
    """What is pending, by the words that are there."""
    for name, field, nothing in words:
        value = read(find(field), values.word)
        if value.state in ("known", "broken") and str(value).lower() != nothing:
            yield f"{name}: {value}"


def process_of(find: Callable[[str], str | None], kind: str | None) -> Process:
    """A process of `pid`, `name` and `used` as printed; a name is whatever its owner calls it."""
    name = find("name")
    return Process(
        pid=read(find("pid"), lambda text: values.whole(text) if text.isdecimal() else None),
        kind=kind,
        name="" if name is None else values.one_line(name, _LONGEST_NAME),
        used_mib=read(find("used"), values.whole),
    )


def first(found: Iterable[str | None]) -> str | None:
    """The first that is there."""
    return next((each for each in found if each is not None), None)
