"""The console script `tracker`: the tracker's own command, given the engine's reader of programmes.

Imports go down only, so the tracker cannot reach for the reader itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.boundary import guard
from orchestrator.cli.project import find_project

if TYPE_CHECKING:
    from tracker.programme import Programme


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line of `tracker`; gives the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return guard(lambda: _run(arguments), command="tracker", as_json="--json" in arguments)


def _run(arguments: list[str]) -> int:
    import tracker.cli

    return tracker.cli.main(arguments, _read_programme, find_project(quiet=True).tracker_url)


def _read_programme(path: Path) -> Programme:
    from orchestrator.spec.read import read_programme

    return read_programme(path)


if __name__ == "__main__":
    sys.exit(main())
