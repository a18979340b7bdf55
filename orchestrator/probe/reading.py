"""From what a machine's tools said to one inventory: cards joined on their bus id, contradictions said.

Pure. Whatever the texts hold, an inventory comes out: what cannot be taken is a fault of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from orchestrator.errors import Label
from orchestrator.probe import smi_text, smi_xml, values
from orchestrator.probe.commands import Said
from orchestrator.probe.inventory import Fault, Inventory, Reading
from orchestrator.probe.join import join
from orchestrator.probe.machine import read_holders, read_information, read_machine
from orchestrator.probe.smi_csv import read_apps, read_query
from orchestrator.probe.smi_errors import ended, is_rocm, said_instead
from orchestrator.probe.smi_tables import read_list, read_pmon, read_rocm, read_table
from orchestrator.probe.smi_text import read_text
from orchestrator.probe.smi_xml import read_xml

READERS: Final[dict[str, Callable[[str], Reading]]] = {
    "machine": read_machine,
    "xml": read_xml,
    "text": read_text,
    "query": read_query,
    "capability": read_query,
    "apps": read_apps,
    "holders": read_holders,
    "list": read_list,
    "table": read_table,
    "information": read_information,
    "pmon": read_pmon,
    "rocm": read_rocm,
}
_WHOLE: Final = (smi_xml.SOURCE, smi_text.SOURCE)
_OPTIONAL: Final = ("capability",)
"""A question that old drivers cannot answer."""
_MOST_BYTES: Final = 4 << 20
"""Many times what the largest board says with every clock that it has."""
_LIBRARY: Final = re.compile(r"NVML library version: [0-9.]+", re.ASCII)
STANDIN: Final = "orch's stand-in"
"""What a stand-in's tools say of themselves, wherever a remark can stand."""


def read(answers: Mapping[str, Said], more: tuple[Reading, ...] = ()) -> Inventory:
    """Read what the commands of `commands()` left.

    Args:
        answers: by the question's name; a question that was not asked is not there.
        more: what was read otherwise, as by NVML.
    """
    return join((*(_answer(kind, said) for kind, said in answers.items()), *more), whole=_WHOLE)


def _answer(kind: str, said: Said) -> Reading:
    out, err = _text(said.stdout), _text(said.stderr)
    both = f"{out}\n{err}"
    reading = _bounded(READERS[kind](out), len(said.stdout))
    source = reading.source
    if is_rocm(both) and not reading.cards:
        return read_rocm(out)
    fault = said_instead(both, source) or ended(said.exit, err or out, source)
    if fault is None:
        warned = (f"{source}: a warning, exit code {said.exit}",) if said.exit else ()
        return replace(reading, notes=(*reading.notes, *warned), is_simulated=STANDIN in both)
    if kind in _OPTIONAL:
        return Reading(
            source, notes=() if fault.label == Label.DEVICE_ABSENT else (f"{source}: {fault.message}",)
        )
    library = _LIBRARY.search(both)
    notes = (library[0],) if library else ()
    return (
        replace(reading, faults=(fault,), notes=notes)
        if reading.cards
        else Reading(source, faults=(fault,), notes=notes)
    )


def _bounded(reading: Reading, size: int) -> Reading:
    """What was read; nothing of it where it is more than any machine has: comparing all of it never ends."""
    if size <= _MOST_BYTES and len(reading.cards) <= values.MOST_CARDS:
        return reading
    too_long = size > _MOST_BYTES
    got = f"{size} bytes" if too_long else f"more than {values.MOST_CARDS} cards"
    expected = f"at most {_MOST_BYTES}" if too_long else "no more than have a minor"
    message = f"it says more than a machine can have to say (got {got}, expected {expected})"
    return Reading(reading.source, faults=(Fault(Label.DEVICE_INVENTORY, message, source=reading.source),))


def _text(data: bytes) -> str:
    return data[:_MOST_BYTES].decode("utf-8", "replace")
