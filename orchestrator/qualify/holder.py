"""Which controller has a bundle: journalled when it begins, and held by a lock for as long as it lives.

Reads and signals; must not know what a controller does.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Final

from evidence.event import Event
from evidence.files import open_regular
from tracker import process
from tracker.process import Process

BEGAN: Final = "controller.began"


def here() -> dict[str, object]:
    """Gives what is journalled of this controller: pid, boot, start time, and the machine by a digest."""
    return asdict(process.here())


def of(events: Iterable[Event]) -> Process | None:
    """Gives the controller that began last; None if the journal names none."""
    begun = [event.data for event in events if event.type == f"orch.{BEGAN}"]
    try:
        return Process(**begun[-1]) if begun else None
    except TypeError:
        return None


def is_held(bundle: Path) -> bool:
    """Says whether a controller of this machine has the bundle now.

    Raises:
        OSError: there is no stream to look at.
    """
    descriptor = open_regular(bundle / "stream.jsonl")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def is_here(controller: Process) -> bool:
    """Says whether a controller is a process of this machine that still runs."""
    return process.is_here(controller) and process.is_alive(controller)
