"""Which tool printed a text that somebody kept: by what no other tool prints.

For captures without the command beside them; what was asked by `commands()` is known by its name.
"""

from __future__ import annotations

import re
from typing import Final

# everything here is bounded: what somebody kept may be anything, and as long as it likes
_UNIT: Final = r"(?: \[[^]\n]{0,20}\])?"
_KINDS: Final = (
    ("xml", r"<nvidia_smi_log\b"),
    ("text", r"^=+NVSMI LOG=+\r?$"),
    ("rocm", r"ROCm System Management Interface|ROCM-SMI|AMD-SMI|^ROCk module"),
    ("machine", r"^== end$"),
    ("table", r"^\| NVIDIA-SMI [0-9.]+ "),
    ("pmon", r"^# gpu +pid +type\b"),
    ("list", r"^GPU [0-9]+: .*\(UUID: "),
    ("information", r"^Device Minor:"),
    ("apps", rf"^(?=.*\bpid\b)[a-z_]+{_UNIT}(?:, [a-z_]+{_UNIT})*\r?$"),
    ("query", rf"^(?:[a-zA-Z0-9_.]+{_UNIT}, )+[a-zA-Z0-9_.]+{_UNIT}\r?$"),
)
_FAILED: Final = (
    r"^(?:NVIDIA-SMI has failed|NVIDIA-SMI couldn't|Failed to initialize NVML|No devices were found"
    r"|Unable to determine|.{0,200}nvidia-smi.{0,200}not found)"
)


def recognise(text: str) -> str | None:
    """The kind of a text, as `read` calls it; None if it is none that tells of cards.

    An error of nvidia-smi's is the same whatever it was asked: it counts as an answer to `xml`.
    """
    kinds = (*_KINDS, ("xml", _FAILED))
    return next((kind for kind, mark in kinds if re.search(mark, text, re.MULTILINE)), None)
