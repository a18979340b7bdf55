"""What to ask a machine for its cards: commands as data, and what may come back.

Knows no way to a machine: whoever has one runs them, each to its own deadline, and keeps what they said.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Protocol

DEADLINE_S: Final = 60.0
"""A healthy nvidia-smi has been seen to take 24 s; one that hangs never ends."""
QUERY: Final = (
    "index",
    "pci.bus_id",
    "uuid",
    "name",
    "memory.total",
    "memory.used",
    "utilization.gpu",
    "compute_mode",
)
"""Columns that every driver since 390 has, and none that is to go: one unknown column refuses the query."""
APPS: Final = ("gpu_bus_id", "gpu_uuid", "pid", "process_name", "used_memory")

# the one in PATH, else where images and hosts are known to keep it; an SSH session's PATH is not a login's
# one that never stops writing is ended before it fills the disk where its words are kept
_SMI: Final = """\
ulimit -f 65536 2>/dev/null
for each in "$(command -v nvidia-smi 2>/dev/null)" /usr/bin/nvidia-smi /usr/local/bin/nvidia-smi \\
  /usr/local/nvidia/bin/nvidia-smi /usr/lib/wsl/lib/nvidia-smi /opt/nvidia/bin/nvidia-smi \\
  /run/nvidia/driver/usr/bin/nvidia-smi /usr/local/cuda/bin/nvidia-smi
do
  if [ -n "$each" ] && [ -x "$each" ]; then exec "$each" "$@"; fi
done
echo 'there is no nvidia-smi' >&2
exit 127
"""
_STANDIN: Final = 'cd "$1" || exit 127; shift; exec ./nvidia-smi "$@"\n'
# every part under a line that names it; a part that cannot be read is there without lines
_MACHINE: Final = """\
root=$1
list() { printf '== %s\\n' "$1"; cat -- "$1" 2>/dev/null; printf '\\n'; }
list "$root/proc/driver/nvidia/version"
for each in "$root"/proc/driver/nvidia/gpus/*/information; do
  [ -e "$each" ] && list "$each"
done
list /etc/ld.so.preload
printf '== LD_PRELOAD\\n%s\\n' "$LD_PRELOAD"
printf '== /proc/meminfo\\n'
grep MemTotal /proc/meminfo 2>/dev/null
printf '== nvidia-smi\\n'
command -v nvidia-smi 2>/dev/null
printf '== end\\n'
"""
# who has a card's device file open: a killed process can hold memory that nvidia-smi shows under no name
_HOLDERS: Final = """\
ls -l /proc/[0-9]*/fd 2>/dev/null |
sed -n -e '\\|^/proc/|h' -e '\\|-> '"$1"'/dev/nvidia[0-9]|{x;p;x;p;}'
printf '== end\\n'
"""


class Said(Protocol):
    """What a command left, however it was run."""

    @property
    def exit(self) -> int | None:
        """Its exit code; None if none came back, or the deadline ended it."""
        ...

    @property
    def stdout(self) -> bytes:
        """All that it wrote."""
        ...

    @property
    def stderr(self) -> bytes:
        """Likewise."""
        ...


@dataclass(frozen=True)
class Question:
    """One command.

    Attributes:
        name: what its answer is called in `read`, and a good name for the file that keeps it.
        argv: program and arguments; a POSIX shell is all that it needs.
        deadline_s: when this is over, the answer is that there is none.
        is_of_tool: whether nvidia-smi is asked: where it hung, it is not asked anything more.
    """

    name: str
    argv: tuple[str, ...]
    deadline_s: float = DEADLINE_S
    is_of_tool: bool = True


def commands(standin: PurePosixPath | None = None) -> tuple[Question, ...]:
    """What to run on a machine, in order.

    Args:
        standin: the folder of a stand-in, whose `nvidia-smi` and `proc/` are asked; None for the machine's
            own.
    """
    smi = (_SMI, "sh") if standin is None else (_STANDIN, "sh", str(standin))
    root = "" if standin is None else str(standin)
    ask = {
        "machine": (_MACHINE, "sh", root),
        "xml": (*smi, "-q", "-x"),
        "query": (*smi, f"--query-gpu={','.join(QUERY)}", "--format=csv"),
        "capability": (*smi, "--query-gpu=pci.bus_id,compute_cap", "--format=csv"),
        "holders": (_HOLDERS, "sh", root),
        "apps": (*smi, f"--query-compute-apps={','.join(APPS)}", "--format=csv"),
    }
    return tuple(
        Question(name, ("sh", "-c", *argv), is_of_tool=argv[0] in (_SMI, _STANDIN))
        for name, argv in ask.items()
    )
