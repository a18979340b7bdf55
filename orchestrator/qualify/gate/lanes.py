"""Which lanes a gate covers.

Knows where lanes lie and what they call their gate; must not know what a gate asks of a lane.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from orchestrator.errors import Refusal, RefusedError
from orchestrator.spec.document import load

SUFFIXES = (".yaml", ".yml", ".toml")


def gates(folders: Iterable[Path]) -> dict[str, tuple[Path, ...]]:
    """Every gate with its lanes; see `gates_of`.

    Args:
        folders: where lanes lie; one that is not there holds none.
    """
    return gates_of(path for folder in folders for path in _files(folder))


def gates_of(paths: Iterable[Path]) -> dict[str, tuple[Path, ...]]:
    """Every gate that files name with its lanes, both in the order of their names.

    A lane may be refused for anything else: what its file says of its gate is enough.

    Raises:
        RefusedError: of a file nothing can be told, so neither which gate it is under.
    """
    found: dict[str, dict[Path, Path]] = {}
    refusals: list[Refusal] = []
    for path in paths:
        document, faults = load(path)
        gate = document.get("gate") if document is not None else None
        if document is None:
            refusals += faults
        elif isinstance(gate, str) and document.get("orch") == "lane/v1":
            found.setdefault(gate, {}).setdefault(path.resolve(), path)
    if refusals:
        raise RefusedError(refusals)
    return {gate: tuple(sorted(found[gate].values(), key=lambda path: path.stem)) for gate in sorted(found)}


def _files(folder: Path) -> tuple[Path, ...]:
    if not folder.is_dir():
        return ()
    return tuple(sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES))
