"""What several tests look at is made once for all of them, those in other workers too."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Once:
    """Where the workers of a session keep what any of them has made."""

    place: Path

    def __call__(self, name: str, make: Callable[[Path], Any]) -> Any:
        """Has something made under a name by whoever asks first; the others wait for it.

        `make` is given an empty folder, which nobody writes to afterwards, and tells of it in JSON.
        """
        self.place.mkdir(exist_ok=True)
        folder, told = self.place / name, self.place / f"{name}.json"
        with told.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not told.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed
                folder.mkdir()
                told.write_text(json.dumps(make(folder)))
            return json.loads(told.read_text())
