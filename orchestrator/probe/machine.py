"""What a machine itself says of its cards: the kernel module's files under /proc, and what is loaded first.

Knows the layout that the `machine` question prints, and the module's files, of 4-digit and 8-digit domains.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Final

from orchestrator.errors import Label
from orchestrator.probe import values
from orchestrator.probe.inventory import PROC, Card, Fault, Reading
from orchestrator.probe.smi_xml import placed
from orchestrator.probe.values import Value, one_line, read, untold

_INFORMATION: Final = "/information"
_VERSION: Final = "/proc/driver/nvidia/version"
_RELEASE: Final = re.compile(r"NVRM version:.*?\b([0-9]+(?:\.[0-9]+){1,3})\b", re.ASCII)
HOLDERS: Final = "open device files"
_END: Final = "== end\n"
_FOLDER: Final = re.compile(r"/proc/(\d{1,10})/fd:", re.ASCII)
_OPEN: Final = re.compile(r"/dev/nvidia(\d{1,3})$", re.ASCII)
_KEYS: Final = ("model", "gpu uuid", "bus location", "device minor")
_EXCLUDED: Final = ("gpu excluded", "blacklisted")


def read_machine(text: str) -> Reading:
    """The cards that the kernel module lists, its release, and what is loaded before all other libraries.

    Args:
        text: all that the question printed; without its last line it is not whole.
    """
    parts = dict(_parts(text))
    if "end" not in parts:
        message = "the machine's own list is not whole (got no last line, expected one)"
        return Reading(PROC, faults=(Fault(Label.DEVICE_INVENTORY, message, source=PROC),))
    files = {name: body for name, body in parts.items() if name.endswith(_INFORMATION)}
    cards = tuple(card for name, body in files.items() for card in _named(name, body))
    version = next((body for name, body in parts.items() if name.endswith(_VERSION)), "")
    release = _RELEASE.search(version)
    preload = [*parts.get("/etc/ld.so.preload", "").split("\n"), *parts.get("LD_PRELOAD", "").split()]
    tool = parts.get("nvidia-smi", "").strip()
    return Reading(
        source=PROC,
        driver=Value("known", release[1], release[1]) if release else untold(),
        cards=cards,
        notes=(*_notes(parts, files, version), *([f"nvidia-smi is {one_line(tool)}"] if tool else [])),
        preload=tuple(one_line(each) for each in preload if each.strip() and not each.startswith("#")),
    )


def read_holders(text: str) -> Reading:
    """Who has a card's device file open.

    Args:
        text: a line that names a process's folder before each line that names a device file.
    """
    if not text.endswith(_END):
        return Reading(HOLDERS, notes=("who has a card's device file open was not looked at",))
    lines = text.split("\n")
    pairs = ((_FOLDER.fullmatch(above), _OPEN.search(line)) for above, line in itertools.pairwise(lines))
    found = ((int(device[1]), int(process[1])) for process, device in pairs if process and device)
    return Reading(HOLDERS, holders=tuple(dict.fromkeys(found)))


def read_information(text: str) -> Reading:
    """The cards of information files as they stand, one after another.

    Args:
        text: of one file or of several.
    """
    blocks: list[dict[str, str]] = []
    for line in text.split("\n")[:-1]:
        key, colon, value = line.partition(":")
        name = key.strip().lower()
        if colon and (not blocks or (name == "model" and "model" in blocks[-1])):
            blocks.append({})
        if colon:
            told = blocks[-1]
            said = told.setdefault(name, value.strip())
            told[name] = said if said == value.strip() else f"{said} and {value.strip()}, both"
    return Reading(PROC, cards=tuple(_card(block) for block in blocks))


def _parts(text: str) -> Iterator[tuple[str, str]]:
    name, lines = "", list[str]()
    for line in text.split("\n")[:-1]:
        if line.startswith("== "):
            yield name, "\n".join(lines)
            name, lines = line[3:].strip(), []
        else:
            lines.append(line)
    yield name, "\n".join(lines)


def _named(path: str, body: str) -> Iterator[Card]:
    """The card of one file, which must be the one whose folder it lies in."""
    folder = path.removesuffix(_INFORMATION).rpartition("/")[2]
    cards = read_information(body + "\n").cards or (Card(bus=read(folder, values.bus_id), sources=(PROC,)),)
    for card in cards:
        yield placed(card, folder)


def _card(told: dict[str, str]) -> Card:
    model, uuid, bus, minor = (told.get(key) for key in _KEYS)
    excluded = next((told[key] for key in _EXCLUDED if told.get(key, "no").lower() != "no"), None)
    # before a driver has initialised a card, its file has question marks for what is not known yet
    return Card(
        bus=read(bus, values.bus_id),
        minor=read(minor, values.minor),
        uuid=Value("unsupported", None, one_line(uuid)) if uuid and "?" in uuid else read(uuid, values.uuid),
        product=read(model, values.word),
        broken=() if excluded is None else (f"excluded by the driver: {one_line(excluded)}",),
        sources=(PROC,),
    )


def _notes(parts: dict[str, str], files: dict[str, str], version: str) -> Iterator[str]:
    if not version.strip():
        yield "there is no /proc/driver/nvidia/version: no NVIDIA kernel module, or it is hidden here"
    if not files:
        yield "there is no /proc/driver/nvidia/gpus: the kernel's own list of cards is not at hand"
    if memory := values.one_line(parts.get("/proc/meminfo", "")):
        yield f"the machine's memory: {memory}"
