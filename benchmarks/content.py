"""What the benchmarks run: the commands as installed, and the systems that come with orch."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.build.binding import NOWHERE, Binding
from orchestrator.plan.derive import Planned, derive
from orchestrator.plan.model import Role
from orchestrator.spec import content
from orchestrator.spec.read import read_run

CONTENT = content.find().root
TARGET = f"{platform.machine()}-linux"
"""What runs here without an emulator."""

_RUN_ID = "00000000-0000-7000-8000-000000000000"


def orch() -> Sequence[str]:
    """Give the command `orch`: the console script beside this interpreter, or its module."""
    return _script("orch", "orchestrator")


def tracker() -> Sequence[str]:
    """Give the command `tracker`, likewise."""
    return _script("tracker", "orchestrator.cli.tracker")


def _script(name: str, module: str) -> Sequence[str]:
    script = Path(sys.executable).with_name(name)
    return [str(script)] if script.exists() else [sys.executable, "-m", module]


def planned(name: str) -> Planned:
    """Give the plan of one of the runs that come with orch."""
    return derive(read_run(CONTENT / "specs/runs" / f"{name}.yaml"))


@dataclass(frozen=True)
class Deployment:
    """One start of a plan's roles on this machine."""

    planned: Planned
    updates: int
    port: int

    def _endpoints(self, role: Role) -> dict[str, Any]:
        """The root listens, and the others dial it."""
        there, nowhere = ("127.0.0.1", self.port), (NOWHERE, 0)
        listens, dials = (there, nowhere) if role.index == 0 else (nowhere, there)
        return {
            "address": listens[0],
            "port": listens[1],
            "parent_address": dials[0],
            "parent_port": dials[1],
        }

    def binding(self, role: Role) -> Binding:
        """Give what is bound into a role's program."""
        from evidence.digest import sha256_bytes

        return Binding(
            plan=self.planned.plan.digest,
            run_id=_RUN_ID,
            epoch=1,
            mode="train",
            resume=False,
            restore_sha256=None,
            target=self.updates,
            publish_at=0,
            data_sha256=sha256_bytes(self.planned.samples_of(role)),
            **self._endpoints(role),
            connect_ms=10_000,
            round_ms=10_000,
            run_ms=300_000,
            secret="5e" * 16,
        )
