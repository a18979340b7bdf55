"""Small declarations, written as a user writes them and read back as plans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchestrator.plan.derive import Planned, derive
from orchestrator.spec.read import read_run

SCALAR = {
    "parameters": "{w: {size: 1, initial: 0}}",
    "state": "{}",
    "sample": "{x: 1, y: 1}",
    "contribution": ["e = w * x - y", "g = e * x"],
    "update": ["w = w - rate * mean_g"],
    "evaluate": ["loss = 0.5 * e * e"],
    "rate": "0.5",
}
VECTOR = {
    "parameters": "{w: {size: 3, initial: [0.25, 0.25, -0.5]}}",
    "state": "{v: {size: 3, initial: 0}}",
    "sample": "{x: 3, y: 1}",
    "contribution": ["e = dot(w, x) - y", "g[i] = e * x[i]"],
    "update": ["v[i] = 0.9 * v[i] + mean_g[i]", "w[i] = w[i] - rate * v[i]"],
    "evaluate": ["square = e * e", "loss = 0.5 * square"],
    "rate": "0.1",
}
SCALAR_ROWS = ((1.0, 1.5), (1.0, 1.0), (1.0, 0.5))
VECTOR_ROWS = tuple(tuple((7 * i % 11 - 5) / 3 for i in range(4 * row, 4 * row + 4)) for row in range(5))


def system_text(declaration: dict[str, object], **changes: object) -> str:
    """The text of a system file over `samples.csv` beside it."""
    keys = {
        "orch": "system/v1",
        "name": "tried",
        "kind": "data-parallel",
        "numerics": "binary64-ordered",
        **declaration,
        **changes,
    }
    lines = []
    for key, value in keys.items():
        shown = "[" + ", ".join(f'"{line}"' for line in value) + "]" if isinstance(value, list) else value
        lines.append(f"{key}: {shown}")
    return "\n".join([*lines, "samples: {file: samples.csv}", ""])


def run_text(roles: dict[str, int], **changes: object) -> str:
    """The text of a run file over `system.yaml` beside it."""
    counts = ", ".join(f"{name}: {count}" for name, count in roles.items())
    pairings = ", ".join(f"{name}: {{target: x86_64-linux}}" for name in roles)
    keys = {
        "orch": "run/v1",
        "name": "tried",
        "system": "system.yaml",
        "topology": "pair" if len(roles) == 2 else "star",
        "roles": f"[{', '.join(roles)}]",
        "samples": f"{{{counts}}}",
        "pairings": f"{{{pairings}}}",
        **changes,
    }
    return "".join(f"{key}: {value}\n" for key, value in keys.items())


def write_rows(path: Path, rows: Sequence[Sequence[float]]) -> None:
    path.write_text("".join(",".join(map(repr, row)) + "\n" for row in rows), encoding="utf-8")


def planned(
    folder: Path,
    declaration: dict[str, object],
    rows: Sequence[Sequence[float]],
    roles: dict[str, int],
    **changes: object,
) -> Planned:
    """The plan of a declaration; `changes` are keys of the system file written otherwise."""
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "samples.csv", rows)
    (folder / "system.yaml").write_text(system_text(declaration, **changes), encoding="utf-8")
    (folder / "run.yaml").write_text(run_text(roles), encoding="utf-8")
    return derive(read_run(folder / "run.yaml"))


def pair(folder: Path) -> Planned:
    """The samples pair: after one update w is 1/2."""
    return planned(folder, SCALAR, SCALAR_ROWS, {"coordinator": 1, "worker": 2})


def star(folder: Path) -> Planned:
    """Three roles, one of them without samples; a state field, vectors, two results."""
    return planned(folder, VECTOR, VECTOR_ROWS, {"root": 2, "idle": 0, "worker": 3})
