"""`nvidia-smi -q` as text: headings by their indentation, one block a card.

A line that does not end is not taken: half a number reads as another number. A key that a block has twice,
with another value, is no value. What stands before the log's first line is not data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from orchestrator.errors import Label
from orchestrator.probe import values
from orchestrator.probe.inventory import Card, Fault, Process, Reading
from orchestrator.probe.smi_fields import Field, card_of, first, process_of, release_of
from orchestrator.probe.smi_xml import placed
from orchestrator.probe.values import one_line, read

SOURCE: Final = "nvidia-smi -q"
HEADING: Final = "==============NVSMI LOG=============="
_MIG: Final = "mig device"
_PROCESSES: Final = "processes"
_COMPUTING: Final = "compute processes"
"""Before 340 those that compute were listed alone, without a type."""
_PID: Final = "process id"


@dataclass
class _Block:
    """Keys below their headings, in lower case, and the lines of the process list."""

    heading: str
    told: dict[str, str] = field(default_factory=dict)
    mig_devices: int = 0
    listed: list[tuple[str, str]] = field(default_factory=list)
    is_computing: bool = False
    above: list[tuple[int, str]] = field(default_factory=list)

    def take(self, indent: int, key: str, value: str | None) -> None:
        """Take one line."""
        while self.above and self.above[-1][0] >= indent:
            self.above.pop()
        names = [name for _, name in self.above]
        if key == _MIG and value is None:
            self.mig_devices += 1
        if names[:1] in ([_PROCESSES], [_COMPUTING]) and value is not None:
            self.is_computing = names[0] == _COMPUTING
            self.listed.append((key, value))
        elif value is not None and _MIG not in names:
            path = "/".join((*names, key))
            if self.told.setdefault(path, value) != value:
                self.told[path] = f"{self.told[path]} and {value}, both"
        self.above.append((indent, key))

    def find(self, field: Field) -> str | None:
        """What the block has for a field."""
        return first(self.told.get(path) for path in field.text)


def read_text(text: str) -> Reading:
    """The cards of one log.

    Args:
        text: all that the tool printed.
    """
    if text.count(HEADING) != 1:
        message = f"no log (got {text.count(HEADING)} beginnings, expected one)"
        return Reading(SOURCE, faults=(Fault(Label.DEVICE_INVENTORY, message, source=SOURCE),))
    top, blocks = _blocks(text[text.index(HEADING) :])
    return Reading(
        source=SOURCE,
        driver=release_of(top.find),
        attached=read(top.told.get("attached gpus"), values.whole),
        cards=tuple(_card(block, index) for index, block in enumerate(blocks[: values.MOST_CARDS + 1])),
    )


def _blocks(text: str) -> tuple[_Block, list[_Block]]:
    top = _Block("")
    blocks: list[_Block] = []
    for line in _whole_lines(text):
        bare = line.strip()
        if line.startswith("GPU ") and ":" in line:
            blocks.append(_Block(bare))
        elif bare and not bare.startswith("==="):
            key, colon, value = bare.partition(": ")
            block = blocks[-1] if blocks else top
            indent = len(line) - len(line.lstrip())
            block.take(indent, key.strip().rstrip(":").strip().lower(), value.strip() if colon else None)
    return top, blocks


def _whole_lines(text: str) -> Iterable[str]:
    return (line.rstrip("\r") for line in text.split("\n")[:-1])


def _card(block: _Block, index: int) -> Card:
    more = {"mig_devices": block.mig_devices, "processes": _processes(block)}
    card = card_of(block.find, index=index, source=SOURCE, more=more)
    return placed(card, block.heading)


def _processes(block: _Block) -> tuple[Process, ...] | None:
    """Those that run now; None if no list is there: a list without any says `None`."""
    if "none" in (block.told.get(name, "").lower() for name in (_PROCESSES, _COMPUTING)):
        return ()
    found: list[list[tuple[str, str]]] = []
    for key, value in block.listed:
        if key == _PID:
            found.append([])
        if found:
            found[-1].append((key, value))
    kind = None if block.is_computing else ""
    return tuple(_process(each, kind) for each in found) or None


_KEYS: Final = {"pid": _PID, "name": "name", "used": "used gpu memory"}


def _process(lines: Sequence[tuple[str, str]], kind: str | None) -> Process:
    told = dict(reversed(lines))
    return process_of(lambda key: told.get(_KEYS[key]), one_line(told["type"]) if "type" in told else kind)
