"""A lane while it runs: what is going on, for a person at a terminal or for a log file.

Knows the events of a run's stream and the updates that roles report; must not know how a step is done or
judged. Everything goes to standard error: standard output is for the result.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orchestrator.cli.output import complain, is_terminal, withheld

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from evidence.event import Event


@dataclass
class StepState:
    """What is known of one step so far.

    Attributes:
        name: of the step.
        verdict: empty while it runs.
        attempt: the current one.
        began_s: monotonic seconds when it was first begun.
        elapsed_s: seconds that it took, once it is judged.
        launch: the launch that runs now; empty between launches.
        versions: role -> (updates done, loss) in that launch.
        reason: why the last attempt failed.
    """

    name: str
    verdict: str = ""
    attempt: int = 1
    began_s: float = field(default_factory=time.monotonic)
    elapsed_s: float = 0.0
    launch: str = ""
    versions: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    reason: str = ""

    @property
    def seconds(self) -> float:
        """Seconds so far, or in all."""
        return self.elapsed_s if self.verdict else time.monotonic() - self.began_s

    @property
    def detail(self) -> str:
        """What goes on in it, in one line."""
        if not self.launch:
            return self.reason
        roles = [f"{role} {update}" for role, (update, _) in self.versions.items()]
        losses = [f"loss {loss:.6g}" for _, loss in self.versions.values()]
        return "  ".join((self.launch, *losses[:1], *roles))  # the roles last: there may be many


class Progress:
    """What the observer of a lane has heard, step by step, in order."""

    def __init__(self) -> None:
        self.steps: dict[str, StepState] = {}

    def event(self, event: Event) -> StepState | None:
        """Take one event; give the step that it is about, if it is about one."""
        name = event.data.get("step")
        if not isinstance(name, str):
            return None
        step = self.steps.setdefault(name, StepState(name))
        match event.type:
            case "orch.step.started":
                step.attempt = int(event.data.get("attempt", 1))
            case "orch.launch.started":
                step.launch, step.versions = str(event.data.get("launch", "")), {}
            case "orch.launch.finished":
                step.launch = ""
            case "orch.attempt.failed":
                step.reason = str(event.data.get("reason", ""))
            case "orch.step.judged":
                step.elapsed_s = step.seconds
                step.verdict = str(event.data.get("verdict", ""))
                step.launch = ""
        return step

    def update(self, name: str, launch: str, versions: Mapping[str, tuple[int, float]]) -> None:
        """Take the updates that the roles of a launch have done."""
        step = self.steps.setdefault(name, StepState(name))
        step.launch, step.versions = launch, dict(versions)


class PlainView:
    """An observer that writes a line when something begins or ends: for logs and pipes."""

    def __init__(self) -> None:
        self._progress = Progress()

    def event(self, event: Event) -> None:
        """Say what begins, fails and is judged."""
        step = self._progress.event(event)
        if step is None:
            return
        if event.type == "orch.step.started":
            complain(f"{step.name}: started" + (f", attempt {step.attempt}" if step.attempt > 1 else ""))
        elif event.type == "orch.attempt.failed":
            complain(f"{step.name}: attempt {step.attempt} failed: {step.reason}")
        elif event.type == "orch.step.judged":
            complain(f"{step.name}: {step.verdict} ({step.elapsed_s:.1f} s)")

    def progress(self, step: str, launch: str, versions: Mapping[str, tuple[int, float]]) -> None:
        """Keep the updates; a log is not filled with them."""
        self._progress.update(step, launch, versions)

    def note(self, text: str) -> None:
        """Say it."""
        complain(text)


class LiveView:
    """An observer that keeps one line per step on a terminal, and the running one moving."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.spinner import Spinner

        self.console = Console(stderr=True, highlight=False)
        self._progress = Progress()
        self._spinner = Spinner("dots" if self.console.encoding.startswith("utf") else "line")

    def event(self, event: Event) -> None:
        """Take it; the next frame shows it."""
        self._progress.event(event)

    def progress(self, step: str, launch: str, versions: Mapping[str, tuple[int, float]]) -> None:
        """Take the updates; the next frame shows them."""
        self._progress.update(step, launch, versions)

    def note(self, text: str) -> None:
        """Print it above the steps."""
        self.console.print(withheld(text), markup=False)

    def __rich__(self) -> RenderableType:
        """Give the frame: what each step is at, how long it has taken."""
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        for step in list(self._progress.steps.values()):
            mark: Any = _mark(step.verdict) if step.verdict else self._spinner
            attempt = f"attempt {step.attempt}  " if step.attempt > 1 else ""
            detail = Text(attempt + step.detail, style="dim", overflow="ellipsis", no_wrap=True)
            table.add_row(mark, step.name, Text(f"{step.seconds:.1f} s", justify="right"), detail)
        return table


def _mark(verdict: str) -> RenderableType:
    from rich.text import Text

    styles = {"pass": "green", "fail": "bold red", "unknown": "yellow"}
    return Text(verdict, style=styles.get(verdict, "dim"))


@contextmanager
def live_view() -> Iterator[PlainView | LiveView]:
    """Give an observer that fits standard error, and take its lines off the screen at the end."""
    if not is_terminal(sys.stderr):
        yield PlainView()
        return
    view = LiveView()
    with screen(view.console, view):
        yield view


@contextmanager
def screen(console: Console, frame: RenderableType) -> Iterator[None]:
    """Keep a frame on a terminal, drawn anew again and again, and take it off at the end."""
    from rich.live import Live

    live = Live(frame, console=console, refresh_per_second=10, transient=True, redirect_stdout=False)
    with live, _quiet_keys():
        yield


@contextmanager
def _quiet_keys() -> Iterator[None]:
    """Keep the terminal from writing ^C into the lines that are redrawn, which it would push out of place."""
    import termios

    try:
        before = termios.tcgetattr(sys.stderr)
    except termios.error:
        yield
        return
    quiet = [*before]
    quiet[3] &= ~termios.ECHOCTL
    termios.tcsetattr(sys.stderr, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stderr, termios.TCSANOW, before)
