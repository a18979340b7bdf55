"""What nvidia-smi says instead of cards: its error texts, and its exit codes where it says nothing.

Knows what each means for a rented machine, and the way out. The text may be on either stream.
"""

from __future__ import annotations

import re
from typing import Final

from orchestrator.errors import Label
from orchestrator.probe.commands import DEADLINE_S
from orchestrator.probe.inventory import Fault
from orchestrator.probe.values import one_line

_RESTART: Final = "the host's driver was changed under this machine: restart the pod, or rent another"
_RECREATE: Final = (
    "the container has lost its cards, as after a reload of the host's services: recreate the pod"
)
_LOST: Final = "a card of this host is lost, and with it the list: reboot the host, or rent another"
_LIBRARIES: Final = "install the driver's libraries, or put their folder into /etc/ld.so.conf.d there"
_LOAD: Final = "load the driver on the host; in a container, start it with its cards"
_INSTALL: Final = "install the NVIDIA driver, or rent a machine with a card"
# the first that a line begins with counts: (what is printed, label, what it means, the way out). Lines of
# data begin with blanks, an element, or a number.
_TEXTS: Final = (
    (
        "Failed .*: Driver/library version mismatch",
        Label.DEVICE_DRIVER,
        "driver and library differ",
        _RESTART,
    ),
    ("Unable to determine the device handle", Label.DEVICE_INVENTORY, "a card is lost", _LOST),
    (
        r"(?![\s<\d]).*(?:GPU is lost|fallen off the bus|GPU requires reset)",
        Label.DEVICE_RESET,
        "a card is lost",
        _LOST,
    ),
    ("No devices were found", Label.DEVICE_ABSENT, "there is no card", "rent a machine with one"),
    (
        r"(?![\s<\d]).*couldn't communicate with the NVIDIA driver",
        Label.DEVICE_INVENTORY,
        "the driver does not answer",
        _LOAD,
    ),
    ("Failed .*: Driver Not Loaded", Label.DEVICE_INVENTORY, "the driver does not answer", _LOAD),
    (
        "Failed to initialize NVML: GPU access blocked",
        Label.DEVICE_INVENTORY,
        "the cards are kept from this machine",
        "let the host give its cards to this machine",
    ),
    (
        "Failed to initialize NVML: Insufficient Permissions",
        Label.DEVICE_INVENTORY,
        "this user may not ask",
        "let this user open /dev/nvidiactl there",
    ),
    ("Failed to initialize NVML: Unknown Error", Label.DEVICE_INVENTORY, "the cards are gone", _RECREATE),
    (
        "NVIDIA-SMI couldn't find libnvidia-ml|Failed .*: NVML Shared Library Not Found",
        Label.DEVICE_INVENTORY,
        "nvidia-smi finds no libnvidia-ml.so.1",
        _LIBRARIES,
    ),
    ("Failed to initialize NVML", Label.DEVICE_INVENTORY, "the library does not start", _RECREATE),
    (r'Field "[^"]*" is not a valid field', Label.DEVICE_INVENTORY, "a column is unknown", ""),
    (
        r"there is no nvidia-smi|(?![\s<\d]).*nvidia-smi.*(?:command|:|executable file) not found",
        Label.DEVICE_ABSENT,
        "there is no nvidia-smi",
        _INSTALL,
    ),
)
_CODES: Final = {
    2: "an argument that this nvidia-smi does not know",
    3: "not available on this card",
    4: "no permission",
    6: "no device was found",
    8: "external power cables are not attached",
    9: "the driver is not loaded",
    10: "an interrupt of the kernel's has failed",
    12: "libnvidia-ml is not found",
    13: "a function that the library does not have",
    14: "a card's InfoROM is corrupted",
    15: "a card has fallen off the bus",
}
_LONGEST_LINE: Final = 1000
_ABSENT: Final = (6, 127)
HARMLESS: Final = (0, 14)
"""With these the data beside them holds; 14 warns of a corrupted InfoROM."""
_ROCM: Final = re.compile(r"ROCm System Management Interface|ROCM-SMI|AMD-SMI|^ROCk module", re.MULTILINE)


def said_instead(text: str, source: str) -> Fault | None:
    """Why there are no cards, if the text says so."""
    lines = [line[:_LONGEST_LINE] for line in text.splitlines()]
    for pattern, label, meaning, hint in _TEXTS:
        line = next((each for each in lines if re.match(pattern, each)), None)
        if line is not None:
            message = f"{meaning} (got `{one_line(line)}`, expected a list of cards)"
            return Fault(label, message, hint, source)
    return None


def ended(code: int | None, text: str, source: str) -> Fault | None:
    """Why an exit code forbids to take what was printed; None if it does not."""
    if code is None:
        message = f"hung: it did not end (got no answer, expected one within {DEADLINE_S:.0f} s)"
        hint = "a driver that does not answer is mended by a reboot of the host: rent another machine"
        return Fault(Label.DEVICE_INVENTORY, message, hint, source, is_undecided=True)
    if code in HARMLESS:
        return None
    label = Label.DEVICE_ABSENT if code in _ABSENT else Label.DEVICE_INVENTORY
    meaning = _CODES.get(code, one_line(text) or "it says nothing")
    return Fault(label, f"it failed: {meaning} (got exit code {code}, expected 0)", "", source)


def is_rocm(text: str) -> bool:
    """Whether it is another vendor's tool that speaks."""
    return bool(_ROCM.search(text))
