"""The tables for people: plain `nvidia-smi`, `nvidia-smi -L`, `pmon`, and `rocm-smi` of another vendor.

They have no minor, so no card is bound by them; they are read for what people paste. A name that the table
has cut is not known.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from orchestrator.errors import Label
from orchestrator.probe import values
from orchestrator.probe.inventory import Card, Fault, Process, Reading
from orchestrator.probe.smi_fields import process_of
from orchestrator.probe.values import Value, one_line, read

LIST: Final = "nvidia-smi -L"
TABLE: Final = "nvidia-smi"
PMON: Final = "nvidia-smi pmon"
ROCM: Final = "rocm-smi"
_GPU: Final = re.compile(r"GPU (\d{1,4}): (.+?)(?: \(UUID: ([^)]*)\))?")
_MIG: Final = re.compile(r"\s+MIG .*\(UUID: MIG-.*\)")
_FIRST: Final = re.compile(
    r"\|\s+(\d{1,4})\s{2}(.+?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM)\s*\|\s*([0-9A-Fa-f:.]+|N/A)\s"
)
_SECOND: Final = re.compile(r"\|([^|]*)\|\s*([^|]*?)\s*\|\s*([^|]*?)\s*\|")
_PROCESS: Final = re.compile(
    r"\|\s+(\d{1,4})\s+(?:\S+\s+\S+\s+)?(\d+)\s+(C|G|C\+G|M\+C)\s+(\S.*?)\s+(\S+)\s*\|", re.ASCII
)
_UNLISTED: Final = re.compile(r"\|\s+(\d{1,4})\s+Not Supported\s*\|", re.ASCII)
_HEAD: Final = re.compile(r"(?:Driver|KMD) Version:\s*([0-9.]+)")
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
    """The cards of the table that nvidia-smi prints without arguments, with their processes."""
    lines = text.split("\n")[:-1]
    release = _HEAD.search(text)
    processes = _table_processes(lines)
    found = [
        _table_card(first, second, processes)
        for card, more in itertools.pairwise(lines)
        if (first := _FIRST.match(card)) and (second := _SECOND.match(more))
    ]
    driver = read(release[1] if release else None, values.driver)
    return Reading(TABLE, driver=driver, cards=tuple(found))


def _table_card(
    first: re.Match[str], second: re.Match[str], processes: Mapping[int, tuple[Process, ...] | None] | None
) -> Card:
    index, bus = int(first[1]), read(first[3], values.bus_id)
    used, _, total = (part.strip() for part in second[2].partition("/"))
    return Card(
        bus=bus,
        index=index,
        product=_uncut(first[2]),
        total_mib=read(total or used, values.whole),
        used_mib=read(used, values.whole),
        utilization=read(second[3].split("  ")[0], values.whole),
        broken=("a value of the table: ERR!",) if "ERR!" in second[0] else (),
        is_examined=True,
        processes=None if processes is None else processes.get(index, ()),
        sources=(TABLE,),
    )


def _table_processes(lines: Sequence[str]) -> Mapping[int, tuple[Process, ...] | None] | None:
    """Processes by the card's index, None where its are not told; None if none are listed, not even none."""
    unlisted = {int(match[1]): None for line in lines if (match := _UNLISTED.match(line))}
    found: dict[int, list[Process]] = {}
    for match in (match for line in lines if (match := _PROCESS.match(line))):
        told = {"pid": match[2], "name": match[4], "used": match[5]}
        found.setdefault(int(match[1]), []).append(process_of(told.get, match[3]))
    says_none = any("No running processes found" in line for line in lines)
    if not (found or unlisted or says_none):
        return None
    return {**unlisted, **{index: tuple(listed) for index, listed in found.items()}}


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
