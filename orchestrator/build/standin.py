"""The stand-in device: its library of the driver, its `nvidia-smi`, its cards, and what was asked of them.

Knows the files that the C in `roles/standin/` is made of, reads and writes; must not know when a stand-in is
chosen, nor who looks at what it counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.build.cached import build_all
from orchestrator.build.compile import COMMON_FLAGS
from orchestrator.build.compiler import PROGRAM, Task

CARDS = "cards"
CALLS = "standin-calls"
LIBCUDA = "libcuda.so.1"
LIBNVIDIA_ML = "libnvidia-ml.so.1"
NVIDIA_SMI = "nvidia-smi"

_UNIT = "unit.c"
_COMMON = (
    *(f"runtime/{name}.c" for name in ("memory", "refuse", "text", "files")),
    *(f"standin/{name}.c" for name in ("words", "cards")),
)
_CUDA = ("calls", "space", "names", "loader", "statement", "module", "launch", "cuda")
_SMI = ("facts", "smi_log", "smi_query", "smi")
_PARTS = {
    LIBCUDA: tuple(f"standin/{name}.c" for name in _CUDA),
    LIBNVIDIA_ML: ("standin/nvml.c",),
    NVIDIA_SMI: ("runtime/clock.c", *(f"standin/{name}.c" for name in _SMI)),
}

_FLAGS = ("-O2", "-fvisibility=hidden", *COMMON_FLAGS)

_CALLS = re.compile(
    r"minor=(\d{3}) calls=(\d{20}) launches=(\d{20}) allocations=(\d{20}) bytes_allocated=(\d{20})"
    r" to_device=(\d{20}) from_device=(\d{20}) error=(\d{3}) races=(\d{3})"
)


@dataclass(frozen=True)
class StandIn:
    """The stand-in's programs for one target.

    Attributes:
        libcuda: a shared object that takes the place of `libcuda.so.1`.
        libnvidia_ml: the same of `libnvidia-ml.so.1`.
        nvidia_smi: a static executable, run where the file `cards` lies.
    """

    libcuda: bytes
    libnvidia_ml: bytes
    nvidia_smi: bytes


@dataclass(frozen=True)
class Card:
    """One simulated card.

    Attributes:
        minor: of `/dev/nvidia<minor>`.
        uuid: `GPU-` and 32 lower-case hexadecimal digits in five groups.
        bus: PCI address as `/proc` writes it, `0000:41:00.0`.
        cc: compute capability, `8.6`.
        memory_mib: all of it.
        reserved_mib: what the driver keeps for itself.
        driver: release, `550.54.14`.
        name: the product string.
        fault: `none`; `lost@N`: from its N-th launch on; `memory`: no allocation succeeds; `busy`: no context
            is given; `compute@N`: the first word that its N-th launch stores has its lowest bit wrong.
        used_mib: what others use.
        utilization: percent.
        process: pid and MiB of another compute process.
        mig: whether MIG is on.
        reset: whether a reset is pending.
    """

    minor: int
    uuid: str
    bus: str
    cc: str
    memory_mib: int
    reserved_mib: int
    driver: str
    name: str
    fault: str = "none"
    used_mib: int = 0
    utilization: int = 0
    process: tuple[int, int] | None = None
    mig: bool = False
    reset: bool = False


@dataclass(frozen=True)
class Calls:
    """What was asked of one card.

    Attributes:
        minor: of the card.
        calls: entry points that were called about it.
        launches: of kernels.
        allocations: how many.
        bytes_allocated: each rounded up to 256.
        to_device: bytes that were copied there.
        from_device: bytes that were copied from there.
        error: of the driver, with which the card was lost; 0: it was not.
        races: launches in which a thread touched what another had written, or wrote what another had read.
    """

    minor: int
    calls: int
    launches: int
    allocations: int
    bytes_allocated: int
    to_device: int
    from_device: int
    error: int
    races: int


def build_standin(content_root: Path, cache: Path | None, target: str) -> StandIn:
    """The programs, from the cache where they are kept.

    Args:
        content_root: the folder that holds `roles/`.
        cache: where programs are kept; None keeps nothing.
        target: what they are for, as a role's.

    Raises:
        RefusedError: `compiler` with what the compiler said.
        UndecidedError: the compiler cannot be started or did not end in time.
    """
    roles = content_root / "roles"
    return StandIn(*build_all([_task(roles, target, name) for name in _PARTS], cache))


def _task(roles: Path, target: str, name: str) -> Task:
    units = (*_COMMON, *_PARTS[name])
    files = (*(roles / unit for unit in units), *_headers(roles))
    sources = {f"{path.parent.name}/{path.name}": path.read_bytes() for path in files}
    # one unit, as roles are: names at file scope must differ
    sources[_UNIT] = "".join(f'#include "{unit}"\n' for unit in units).encode()
    kind = ("-static",) if name == NVIDIA_SMI else ("-shared", "-fPIC", f"-Wl,-soname,{name}")
    arguments = ("-target", target, "-Iruntime", "-Istandin", _UNIT, "-o", PROGRAM, *kind, *_FLAGS)
    return Task(f"the stand-in's {name}", arguments, sources)


def _headers(roles: Path) -> tuple[Path, ...]:
    return tuple(path for folder in ("runtime", "standin") for path in sorted((roles / folder).glob("*.h")))


def cards_text(cards: Sequence[Card]) -> str:
    """The file `cards`: a line a card, its name last, since that has blanks in it."""
    return "".join(map(_card_line, cards))


def _card_line(card: Card) -> str:
    kind, _, at = card.fault.partition("@")
    pid, mib = card.process or (0, 0)
    return (
        f"card minor={card.minor} uuid={card.uuid} bus={card.bus} cc={card.cc} memory_mib={card.memory_mib}"
        f" reserved_mib={card.reserved_mib} used_mib={card.used_mib} utilization={card.utilization}"
        f" process={pid}:{mib} mig={int(card.mig)} reset={int(card.reset)} driver={card.driver}"
        f" fault={kind}@{at or 0} name={card.name}\n"
    )


def proc_tree(cards: Sequence[Card]) -> Mapping[str, bytes]:
    """What lies under `/proc` on a machine with these cards, by path from there. Empty without a card."""
    if not cards:
        return {}
    version = (
        f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {cards[0].driver}  (orch's stand-in: simulated)\n"
        "GCC version:  none (orch's stand-in: simulated)\n"
    )
    tree = {"driver/nvidia/version": version.encode()}
    for card in cards:
        rows = {
            "Model:": card.name,
            "IRQ:": "0",
            "GPU UUID:": card.uuid,
            "Video BIOS:": "00.00.00.00.00",
            "Bus Type:": "PCIe",
            "DMA Size:": "47 bits",
            "DMA Mask:": "0x7fffffffffff",
            "Bus Location:": card.bus,
            "Device Minor:": str(card.minor),
            "GPU Excluded:": "No",
        }
        text = "".join(f"{key:<15}\t {value}\n" for key, value in rows.items())
        tree[f"driver/nvidia/gpus/{card.bus}/information"] = text.encode()
    return tree


def calls(text: str) -> tuple[Calls, ...]:
    """What `standin-calls` says, card by card.

    Raises:
        ValueError: a line is in another form.
    """
    found = [_CALLS.fullmatch(line) for line in text.splitlines()]
    if not all(found):
        raise ValueError(f"no counts of a stand-in (got {text!r})")
    return tuple(Calls(*map(int, match.groups())) for match in found if match)
