"""`nvidia-smi -q -x`, of any schema: ignore what is unknown, say what is missing.

The text comes from a stranger's machine: no entity is expanded, no document type is fetched, and what stands
before and after the one document is not data.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final
from xml.etree import ElementTree as ET

from orchestrator.errors import Label
from orchestrator.probe import values
from orchestrator.probe.inventory import Card, Fault, Process, Reading
from orchestrator.probe.smi_fields import Field, card_of, first, process_of, release_of
from orchestrator.probe.values import read

SOURCE: Final = "nvidia-smi -q -x"
_BEGIN: Final = re.compile(r"<nvidia_smi_log\b")
_END: Final = "</nvidia_smi_log>"
# what a process is called is written as it is, or as another call at that moment has left it
_NO_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_BARE: Final = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});)")


def read_xml(text: str) -> Reading:
    """The cards of one document.

    Args:
        text: all that the tool printed.
    """
    begins = [match.start() for match in _BEGIN.finditer(text)]
    end = text.find(_END)
    if len(begins) != 1 or end < begins[0] or "<!ENTITY" in text:
        return _unreadable("no whole document")
    try:
        document = _BARE.sub("&amp;", _NO_XML.sub("\ufffd", text[begins[0] : end + len(_END)]))
        root = ET.fromstring(document)  # noqa: S314 - it declares nothing
    except ET.ParseError as error:
        return _unreadable(str(error))
    cards = tuple(_card(gpu, index) for index, gpu in enumerate(root.findall("gpu")[: values.MOST_CARDS + 1]))
    return Reading(
        source=SOURCE,
        driver=release_of(lambda field: _text(root, field.xml[0])),
        attached=read(_text(root, "attached_gpus"), values.whole),
        cards=cards,
    )


def _unreadable(got: str) -> Reading:
    message = f"the document cannot be read (got {values.one_line(got)}, expected one nvidia_smi_log)"
    return Reading(SOURCE, faults=(Fault(Label.DEVICE_INVENTORY, message, source=SOURCE),))


def _text(element: ET.Element, path: str) -> str | None:
    """The text of the one element there; None if there is none. Of several that differ, that they do."""
    texts = tuple(dict.fromkeys((found.text or "").strip() for found in element.findall(path)))
    return None if not texts else texts[0] if len(texts) == 1 else f"{' and '.join(texts)}, both"


def _card(gpu: ET.Element, index: int) -> Card:
    def find(field: Field) -> str | None:
        return first(_text(gpu, path) for path in field.xml)

    more = {"mig_devices": len(gpu.findall("mig_devices/mig_device")), "processes": _processes(gpu)}
    card = card_of(find, index=index, source=SOURCE, more=more)
    return placed(card, gpu.get("id"))


def placed(card: Card, heading: str | None) -> Card:
    """The card under the address of its heading, which must be the one that it tells itself."""
    bus = read(heading, values.bus_id)
    if card.bus.state == "untold":
        return replace(card, bus=bus)
    agrees = bus.state != "known" or card.bus.known == bus.known
    return card if agrees else replace(card, bus=values.broken(f"{card.bus} under {bus}"))


def _processes(gpu: ET.Element) -> tuple[Process, ...] | None:
    """Those that run now; None if the document does not list any, not even none."""
    listed = gpu.find("processes")
    kind = "" if listed is not None else None  # before 340 a list of compute processes that told no type
    listed = gpu.find("compute_processes") if listed is None else listed
    if listed is None or (listed.text or "").strip().lower() not in ("", "none"):
        return None
    return tuple(_process(each, kind) for each in listed.findall("process_info"))


_KEYS: Final = {"pid": "pid", "name": "process_name", "used": "used_memory"}


def _process(info: ET.Element, kind: str | None) -> Process:
    return process_of(lambda key: _text(info, _KEYS[key]), _text(info, "type") or kind)
