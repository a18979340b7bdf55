"""Who still has a file open for writing. Knows the kernel's leases; must not know what the file is for."""

from __future__ import annotations

import fcntl
import time
from pathlib import Path

_LOOK_S = 0.001
_WRITERS_S = 10.0


def await_no_writer(path: Path) -> None:
    """Waits until no process has the file open for writing: until then it cannot be executed (ETXTBSY).

    Whatever another thread of ours starts meanwhile inherits the descriptor that we write a program through,
    and has it until it executes its own. A read lease is granted if and only if nobody can write. Where the
    file system knows no leases there is nothing to wait for.

    Raises:
        OSError: the file cannot be opened.
    """
    limit = time.monotonic() + _WRITERS_S
    with path.open("rb") as file:
        while time.monotonic() < limit:
            try:
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            except BlockingIOError:
                time.sleep(_LOOK_S)
            except OSError:
                return
            else:
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
                return
