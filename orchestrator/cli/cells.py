"""A matrix while it runs and when it is done: a row for each system and shape, a column for each ownership.

Knows cells by their names and the events of a matrix's stream; must not know how a cell is run or judged.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from orchestrator.cli.live import screen
from orchestrator.cli.output import complain, is_terminal, plain, table, withheld

if TYPE_CHECKING:
    from rich.console import RenderableType

    from evidence.event import Event
    from orchestrator.plan.matrix import MatrixPlan
    from orchestrator.qualify.checks import StepOutcome
    from orchestrator.spec.matrix import MatrixSpec

NOT_ADMITTED: Final = "not admitted"
_MINUTE_S: Final = 60


def cells_table(steps: Sequence[StepOutcome]) -> str:
    """Give the cells' verdicts; a cell that was not asked for is left empty."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for step in steps:
        system, shape, ownership = step.name.split("/")
        verdict = str(step.verdict)
        rows.setdefault((system, shape), {})[ownership] = (
            NOT_ADMITTED if verdict == "not-applicable" else verdict
        )
    columns = tuple(dict.fromkeys(name for row in rows.values() for name in row))
    cells = [(*names, *(row.get(each, "") for each in columns)) for names, row in rows.items()]
    return table(("system", "shape", *columns), cells)


def plan_text(spec: MatrixSpec, plan: MatrixPlan) -> str:
    """Give what every cell is before it runs: its roles and its plan, or why it is not admitted."""
    from orchestrator.plan.matrix import said
    from orchestrator.spec.matrix import HOST

    refused = {cell: f"{NOT_ADMITTED}: {said(refusal)}" for cell, refusal in plan.refused.items()}
    rows = [
        (cell.name, spec.roles(cell), plan.plans[cell].digest if cell in plan.plans else refused[cell])
        for cell in spec.cells
    ]
    counts = f"{len(plan.plans)}" + (f", {len(refused)} {NOT_ADMITTED}" if refused else "")
    lines = [
        f"lane      {spec.name}: {spec.updates} updates in every cell, split after {spec.split}",
        f"plan      {plan.digest}",
        f"cells     {counts}; each a lane of its own, whose words equal the replicated one's",
    ]
    if spec.swap:
        swap = ", ".join(f"{before} by {after}" for before, after in spec.swap.items())
        lines.append(f"swap      in the resumed part {swap}")
    lines += [
        f"devices   {name}: {', '.join(f'{role} {device or HOST}' for role, device in devices.items())}"
        for name, devices in devices_of(spec).items()
        if any(devices.values())
    ]
    return "\n".join((*lines, "", table(("cell", "roles", "plan"), rows)))


def devices_of(spec: MatrixSpec) -> dict[str, dict[str, str | None]]:
    """Give by shape and role the profile of the role's card; None of a host role."""
    return {
        name: {role: device for role, (_, device) in zip(shape.shares, shape.made_for, strict=True)}
        for name, shape in spec.shapes.items()
    }


def not_admitted(steps: Sequence[StepOutcome]) -> Iterator[str]:
    """Give why cells are not admitted, those with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for step in steps:
        if step.verdict == "not-applicable":
            reason = step.reason.replace(f"{step.name}: ", "")
            reasons.setdefault(reason, []).append(step.name)
    for reason, names in reasons.items():
        yield f"{NOT_ADMITTED}: {', '.join(names)}"
        yield f"  {plain(reason)}"


class _Tally:
    """How far a matrix is. Cells are weighed by their roles: that is what their time goes by."""

    def __init__(self) -> None:
        self.roles: Mapping[str, int] = {}
        self.done: dict[str, str] = {}
        self.cell = ""
        self._began = time.monotonic()
        self._before: frozenset[str] = frozenset()

    def event(self, event: Event) -> bool:
        """Take one event of the matrix; say whether a cell was judged."""
        cell = str(event.data.get("cell", ""))
        match event.type:
            case "orch.cells.planned":
                self.roles = event.data["roles"]
                self.done = dict.fromkeys(event.data["done"], "done before")
                self._before = frozenset(self.done)
            case "orch.cell.started":
                self.cell = cell
            case "orch.cell.judged":
                self.done[cell], self.cell = str(event.data["verdict"]), cell
                return True
        return False

    @property
    def elapsed_s(self) -> float:
        """Seconds since this controller began."""
        return time.monotonic() - self._began

    def __str__(self) -> str:
        """How many of how many cells, since when, and for how long still, as far as can be said."""
        said = f"{len(self.done)} of {len(self.roles)} cells, {_clock(self.elapsed_s)}"
        made = sum(self.roles.get(cell, 0) for cell in self.done.keys() - self._before)
        left = sum(count for cell, count in self.roles.items() if cell not in self.done)
        return f"{said}, about {_clock(self.elapsed_s * left / made)} left" if made and left else said


def _clock(seconds: float) -> str:
    return f"{int(seconds) // _MINUTE_S}:{int(seconds) % _MINUTE_S:02d}"


class PlainCells:
    """An observer that writes a line for every cell that is judged: for logs and pipes."""

    def __init__(self) -> None:
        self._tally = _Tally()

    def event(self, event: Event) -> None:
        """Say what a cell was judged, and how far the matrix is."""
        if self._tally.event(event):
            complain(f"{self._tally.cell}: {self._tally.done[self._tally.cell]} ({self._tally})")

    def progress(self, step: str, launch: str, versions: Mapping[str, tuple[int, float]]) -> None:
        """Nothing: a log is not filled with updates."""

    def note(self, text: str) -> None:
        """Say it."""
        complain(text)


class LiveCells:
    """An observer that keeps a line for every system and shape on a terminal, and how far the matrix is."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True, highlight=False)
        self._tally = _Tally()
        self._doing = ""

    def event(self, event: Event) -> None:
        """Take it; the next frame shows it."""
        self._tally.event(event)

    def progress(self, step: str, launch: str, versions: Mapping[str, tuple[int, float]]) -> None:
        """Take what goes on; the next frame shows it."""
        made = max((update for update, _ in versions.values()), default=0)
        self._doing = f"{step} {launch} {made}"

    def note(self, text: str) -> None:
        """Print it above the rows."""
        self.console.print(withheld(text), markup=False)

    def __rich__(self) -> RenderableType:
        """Give the frame: a mark for every cell, then how far it is."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        rows: dict[str, Text] = {}
        for cell in self._tally.roles:
            row, _, _ = cell.rpartition("/")
            mark, style = _MARKS.get(self._tally.done.get(cell, ""), (".", "dim"))
            is_running = cell == self._tally.cell and cell not in self._tally.done
            rows.setdefault(row, Text()).append(">" if is_running else mark, style)
        grid = Table.grid(padding=(0, 2))
        for row, marks in rows.items():
            grid.add_row(row, marks)
        doing = Text(self._doing, style="dim", overflow="ellipsis", no_wrap=True)
        return Group(grid, Text(str(self._tally)), doing)


_MARKS: Final = {
    "pass": ("+", "green"),
    "done before": ("+", "dim"),
    "fail": ("X", "bold red"),
    "unknown": ("?", "yellow"),
}


@contextmanager
def cells_view() -> Iterator[PlainCells | LiveCells]:
    """Give an observer that fits standard error, and take its lines off the screen at the end."""
    if not is_terminal(sys.stderr):
        yield PlainCells()
        return
    view = LiveCells()
    with screen(view.console, view):
        yield view
