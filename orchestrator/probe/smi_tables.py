"""The tables for people: plain `nvidia-smi`, `nvidia-smi -L`, `pmon`, and `rocm-smi` of another vendor.

They have no minor, so no card is bound by them; they are read for what people paste. A name that the table
has cut is not known.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Final

from orchestrator.errors import Label
from orchestrator.probe import values
from orchestrator.probe.inventory import Card, Fault, Reading
from orchestrator.probe.smi_fields import process_of
from orchestrator.probe.values import Value, one_line, read

LIST: Final = "nvidia-smi -L"
TABLE: Final = "nvidia-smi"
PMON: Final = "nvidia-smi pmon"
ROCM: Final = "rocm-smi"
_GPU: Final = re.compile(r"GPU (\d{1,4}): (.+?)(?: \(UUID: ([^)]*)\))?")
_MIG: Final = re.compile(r"\s+MIG .*\(UUID: MIG-.*\)")
_FIRST: Final = re.compile(
    r"\|\s+(\d{1,4})\s{2}(.+?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM)\s*\|\s*([0-9A-Fa-f:.]+)\s"
)
_SECOND: Final = re.compile(r"\|[^|]*\|\s*([^|]*?)\s*\|\s*([^|]*?)\s*\|")
_HEAD: Final = re.compile(r"Driver Version:\s*([0-9.]+)")
_ROCM_CARD: Final = re.compile(r"^\d+\s+\[0x", re.ASCII)


def read_list(text: str) -> Reading:
    """The cards of `-L`, with how many parts each is cut into."""
    cards: list[Card] = []
    for line in text.split("\n")[:-1]:
        match = _GPU.fullmatch(line.rstrip())
        if match:
            product, uuid = read(match[2], values.word), read(match[3], values.uuid)
            cards.append(Card(index=int(match[1]), product=product, uuid=uuid, sources=(LIST,)))
        elif cards and _MIG.fullmatch(line.rstrip()):
            cut = cards[-1].mig_devices + 1
            cards[-1] = replace(cards[-1], mig_devices=cut, mig=Value("known", "Enabled", "Enabled"))
    return Reading(LIST, cards=tuple(cards))


def read_table(text: str) -> Reading:
    """The cards of the table that nvidia-smi prints without arguments; their processes are not taken."""
    lines = text.split("\n")[:-1]
    release = _HEAD.search(text)
    cards = []
    for first, second in itertools.pairwise(lines):
        card, more = _FIRST.match(first), _SECOND.match(second)
        if card is None or more is None:
            continue
        used, _, total = (part.strip() for part in more[1].partition("/"))
        cards.append(
            Card(
                bus=read(card[3], values.bus_id),
                index=int(card[1]),
                product=_uncut(card[2]),
                total_mib=read(total or used, values.whole),
                used_mib=read(used, values.whole),
                utilization=read(more[2].split("  ")[0], values.whole),
                sources=(TABLE,),
            )
        )
    driver = read(release[1] if release else None, values.driver)
    return Reading(TABLE, driver=driver, cards=tuple(cards))


def _uncut(name: str) -> Value[str]:
    return read("N/A" if name.endswith("...") else name, values.word)


def read_pmon(text: str) -> Reading:
    """The processes of `pmon`: by a card's index, which is not what cards are known by."""
    lines = text.split("\n")[:-1]
    columns = next((line[1:].split() for line in lines if line.startswith("# gpu")), [])
    rows = [line.split(maxsplit=max(len(columns) - 1, 0)) for line in lines if not line.startswith("#")]
    told = [dict(zip(columns, row, strict=True)) for row in rows if row and len(row) == len(columns)]
    processes = tuple(
        process_of({"pid": row.get("pid"), "name": row.get("command")}.get, row.get("type", ""))
        for row in told
        if row.get("pid") != "-"
    )
    return Reading(PMON, elsewhere=processes)


def read_rocm(text: str) -> Reading:
    """No card of NVIDIA's; the other vendor's by name."""
    lines = text.split("\n")
    names = tuple(
        one_line(lines[i + 1])
        for i, line in enumerate(lines[:-1])
        if _ROCM_CARD.match(line) and lines[i + 1].startswith(" ")
    )
    got = f"{len(names)} of another vendor's" if names else "another vendor's tool"
    message = f"there is no NVIDIA card (got {got}, expected an NVIDIA one)"
    fault = Fault(Label.DEVICE_ABSENT, message, "roles run on NVIDIA cards only", ROCM)
    return Reading(ROCM, faults=(fault,), others=names)
