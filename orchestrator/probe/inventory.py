"""The cards of one machine as its tools tell of them.

Knows what is told of a card and of its processes; must not know which tool said it in which words, nor what
is wanted of a card.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Final

from orchestrator.errors import Label
from orchestrator.probe.values import Value, untold

PROC: Final = "proc"
"""The kernel module's own list: the one source that no library can change."""


@dataclass(frozen=True)
class Process:
    """A process that a card is used by.

    Attributes:
        pid: as the tool counts; inside a container it may be the host's.
        kind: `C`, `G`, `C+G`, `M+C`, as told; empty if the tool did not say; None from a list of compute
            processes, which has C and C+G and does not say which.
        name: as told.
        used_mib: memory on the card.
    """

    pid: Value[int]
    kind: str | None
    name: str
    used_mib: Value[int]

    @property
    def is_compute(self) -> bool | None:
        """Whether it computes; None if that is not told."""
        if self.kind is None:
            return True
        return "C" in self.kind.split("+") if self.kind else None

    def as_json(self) -> dict[str, object]:
        """As `--json` prints it."""
        return {
            "pid": self.pid.as_json(),
            "type": self.kind,
            "name": self.name,
            "used_mib": self.used_mib.as_json(),
        }


@dataclass(frozen=True)
class Card:
    """One card, as far as it was told of.

    Attributes:
        bus: PCI address, a domain of eight upper-case digits: what the tools' words are joined on.
        index: its place in nvidia-smi's list; another one after the next boot, so it binds nothing.
        minor: of `/dev/nvidia<minor>`.
        uuid: `GPU-...`.
        product: the exact product string.
        capability: compute capability.
        total_mib: memory; from driver 510 on with the reserved part.
        reserved_mib: what the driver keeps; another with every driver.
        used_mib: what is in use, the reserved part apart.
        utilization: percent of the time in which a kernel ran.
        mig: `Enabled` or `Disabled`.
        mig_devices: how many parts it is cut into.
        reset: why a reset or a reboot is pending; known and empty if none is.
        repairs: memory that is replaced at the next reset, which the driver does not ask for yet.
        pcie_generation: of the link at most, as it is built in.
        own_generation: of the link at most that the card itself can have.
        pcie_width: lanes of the link at most.
        compute_mode: who may use it.
        ecc: `Enabled` or `Disabled`; some products have less memory with it.
        virtualization: as told: `None`, `Pass-Through`, `VGPU`.
        broken: what of it answers with an error instead of a value, among what a healthy card tells.
        is_examined: whether anything was told in whose place an error would stand.
        processes: None if no list of them was given: that is not "none".
        sources: which tools told of it.
    """

    bus: Value[str] = field(default_factory=untold)
    index: int | None = None
    minor: Value[int] = field(default_factory=untold)
    uuid: Value[str] = field(default_factory=untold)
    product: Value[str] = field(default_factory=untold)
    capability: Value[str] = field(default_factory=untold)
    total_mib: Value[int] = field(default_factory=untold)
    reserved_mib: Value[int] = field(default_factory=untold)
    used_mib: Value[int] = field(default_factory=untold)
    utilization: Value[int] = field(default_factory=untold)
    mig: Value[str] = field(default_factory=untold)
    mig_devices: int = 0
    reset: Value[str] = field(default_factory=untold)
    repairs: tuple[str, ...] = ()
    pcie_generation: Value[int] = field(default_factory=untold)
    own_generation: Value[int] = field(default_factory=untold)
    pcie_width: Value[int] = field(default_factory=untold)
    compute_mode: Value[str] = field(default_factory=untold)
    ecc: Value[str] = field(default_factory=untold)
    virtualization: Value[str] = field(default_factory=untold)
    broken: tuple[str, ...] = ()
    is_examined: bool = False
    processes: tuple[Process, ...] | None = None
    sources: tuple[str, ...] = ()

    @property
    def is_part(self) -> bool:
        """Whether it is cut into parts, or is itself a part that a host has lent to this machine."""
        is_cut = self.mig.known is not None and self.mig.known.lower() != "disabled"
        mode = (self.virtualization.known or "").lower()
        return bool(self.mig_devices) or is_cut or "vgpu" in mode or "vsga" in mode

    def as_json(self) -> dict[str, object]:
        """As `--json` prints it."""
        said: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        values = {name: each.as_json() for name, each in said.items() if isinstance(each, Value)}
        processes = None if self.processes is None else [each.as_json() for each in self.processes]
        plain = {
            "broken": list(self.broken),
            "repairs": list(self.repairs),
            "sources": list(self.sources),
            "processes": processes,
        }
        return {**said, **values, **plain}

    def __str__(self) -> str:
        """As messages name it."""
        known = (self.bus, self.uuid, self.product)
        return next((str(each) for each in known if each.state == "known"), f"card {self.index}")


@dataclass(frozen=True)
class Fault:
    """Why a list of cards cannot be taken as it stands.

    Attributes:
        label: the refusal's name.
        message: what is wrong, with "(got X, expected Y)".
        hint: the way out.
        source: the tool that said it.
        is_undecided: whether nothing was said, so that it may be otherwise at another time.
    """

    label: Label
    message: str
    hint: str = ""
    source: str = field(default="", compare=False)
    is_undecided: bool = False

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.label}: {self.message}{hint}"

    def as_json(self) -> dict[str, str]:
        """As `--json` prints it."""
        return {
            "label": str(self.label),
            "message": self.message,
            "hint": self.hint,
            "source": self.source,
        }


@dataclass(frozen=True)
class Reading:
    """What one tool said, or what all said together.

    Attributes:
        source: the tool.
        driver: release of the driver.
        attached: how many cards there are, by a tool that counts them.
        cards: in the tool's order.
        elsewhere: processes whose card is not told.
        faults: why it cannot be taken as it stands.
        notes: facts that decide nothing by themselves: a tool that is not there, a warning.
        others: names of cards that are not NVIDIA's.
        holders: minor and process id of whoever has a card's device file open, as far as this user sees.
        preload: libraries that are loaded before all others on this machine; None if that was not asked.
        is_simulated: whether it says of itself that it is a stand-in's.
    """

    source: str = ""
    driver: Value[str] = field(default_factory=untold)
    attached: Value[int] = field(default_factory=untold)
    cards: tuple[Card, ...] = ()
    elsewhere: tuple[Process, ...] = ()
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    holders: tuple[tuple[int, int], ...] = ()
    preload: tuple[str, ...] | None = None
    is_simulated: bool = False


@dataclass(frozen=True)
class Inventory(Reading):
    """What all tools said together.

    Attributes:
        readings: what each said by itself.
    """

    readings: tuple[Reading, ...] = ()

    @property
    def assurance(self) -> str:
        """Who vouches for the cards: `proc` if the kernel's own list has them all, else `nvidia-smi`."""
        by_kernel = all(PROC in card.sources for card in self.cards)
        return PROC if self.cards and by_kernel else "nvidia-smi" if self.cards else "nobody"

    def as_json(self) -> dict[str, object]:
        """As `--json` prints it."""
        return {
            "driver": self.driver.as_json(),
            "assurance": self.assurance,
            "simulated": self.is_simulated,
            "cards": [card.as_json() for card in self.cards],
            "elsewhere": [each.as_json() for each in self.elsewhere],
            "faults": [fault.as_json() for fault in self.faults],
            "notes": list(self.notes),
            "others": list(self.others),
            "holders": [{"minor": minor, "pid": pid} for minor, pid in self.holders],
            "preload": None if self.preload is None else list(self.preload),
        }
