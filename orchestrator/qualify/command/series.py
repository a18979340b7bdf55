"""The steps' series of experiments with a program of the user's own: made by one side, judged by the other.

Knows which step makes which series. What is in one is said by `experiments`, what it shows together by
`conclude`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.plan.command import CommandPlan
from orchestrator.qualify.checks import Check, Verdict
from orchestrator.qualify.command import conclude, experiments
from orchestrator.qualify.command.experiments import Experiments
from orchestrator.qualify.launch_checks import began
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.view import View


@dataclass(frozen=True)
class Series:
    """A step's experiments.

    Attributes:
        does: in a few words, for people.
        shows: what its judge looks at.
        asked: what is launched, one after another.
        concluded: what the launches show beside each other.
    """

    does: str
    shows: tuple[str, ...]
    asked: Experiments
    concluded: Callable[[View, CommandPlan, str], tuple[Check, ...]]


SERIES = {
    "build": Series(
        "takes the declared files as they are; runs the setup commands on every node",
        ("plan.json is the plan of the bundle's own specs", "every setup command ends with exit 0"),
        experiments.setup,
        lambda _view, _plan, _folder: (),
    ),
    "refusals": Series(
        "makes one update; alters its checkpoint and the inputs, one at a time; cuts it off while it writes",
        (
            "a changed byte, a truncated and a missing file of the checkpoint: refused as declared",
            "a changed input, another program's checkpoint: refused as declared, if they are declared",
            "no file can be written whole: the published name holds nothing, or everything",
        ),
        experiments.refusals,
        conclude.refusals,
    ),
    "uninterrupted": Series(
        "runs all updates from fresh processes, twice, and the declared reference",
        (
            "the two runs are equal to the bit (else: not deterministic, and where they part)",
            "the result is the reference's, as far as declared",
        ),
        experiments.uninterrupted,
        conclude.uninterrupted,
    ),
    "split": Series(
        "runs to the split and stops; new processes resume from that checkpoint",
        (
            "equals the uninterrupted run to the bit (else: state is lost at resume, and where they part)",
            "the checkpoint at the split is the reference's, as far as declared",
        ),
        experiments.split,
        conclude.split,
    ),
    "evaluate": Series(
        "gives new processes the resumed checkpoint and nothing to do; then the same with one bit changed",
        ("what was restored is published again to the bit", "the changed checkpoint is refused as declared"),
        experiments.evaluate,
        conclude.evaluate,
    ),
}
"""Step -> its series; the other steps do the same for every run."""


def act(launcher: Launcher, plan: CommandPlan) -> None:
    """Makes the series of the launcher's step."""
    series = SERIES[launcher.attempt.step]
    for experiment in series.asked(launcher.session.view, plan, launcher.folder):
        launcher.run(experiment.wanted)


def judge(view: View, plan: CommandPlan, step: str) -> tuple[Check, ...]:
    """What the series of a step shows: together first, then each launch for itself."""
    series, folder = SERIES[step], f"{view.attempt(step)}"
    checks: list[Check] = list(series.concluded(view, plan, folder))
    for experiment in series.asked(view, plan, folder):
        launched, missing = began(view, step, experiment.wanted.name)
        checks += missing if launched is None else experiment.judge(launched)
    if not checks and step != "build":
        checks.append(Check("made", Verdict.UNKNOWN, (), "an experiment", "none could be made"))
    return tuple(checks)
