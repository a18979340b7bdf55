"""What a step's experiments with a program of the user's own show together: one run beside another.

Pure: the bundle in, checks out.
"""

from __future__ import annotations

from orchestrator.plan.command import CommandPlan
from orchestrator.qualify.checks import Check, Verdict, equal
from orchestrator.qualify.command import checks, experiments, state
from orchestrator.qualify.command.invocation import PROGRESS
from orchestrator.qualify.command.search import Search, at
from orchestrator.qualify.command.start import REFERENCE
from orchestrator.qualify.launched import Launched
from orchestrator.qualify.view import View


def refusals(_view: View, plan: CommandPlan, _folder: str) -> tuple[Check, ...]:
    """What was not tried, and why."""
    if not plan.program.uses or "data-chunk" in plan.program.refuses:
        return ()
    got = "`refuses:` declares no data-chunk, so inputs were not changed"
    return (Check("changed-input", Verdict.NOT_APPLICABLE, (), "a refusal of changed inputs", got),)


def uninterrupted(view: View, plan: CommandPlan, folder: str) -> tuple[Check, ...]:
    """Determinism first; then the reference."""
    runs = [at(view, folder, name) for name in experiments.RUNS]
    first, second = runs
    found = []
    if first is not None and second is not None and all(map(experiments.succeeded, runs)):
        search = experiments.twice(view, folder)
        found.append(_alike("deterministic", (first, second), "not deterministic", search, view.first + 1))
    return (*found, *_beside_reference(view, plan, folder, experiments.RUNS[0]))


def split(view: View, plan: CommandPlan, folder: str) -> tuple[Check, ...]:
    """Both parts beside the uninterrupted run; then the reference at the split."""
    whole = view.launch("uninterrupted", experiments.RUNS[0])
    parts = [at(view, folder, name) for name in experiments.PARTS]
    found = []
    if whole is not None and parts[0] is not None and experiments.succeeded(parts[0]):
        update, said = checks.same_progress(whole, parts[0], begin=view.first + 1)
        fine = "the uninterrupted run's progress up to the split"
        got = f"update {update}: {said}" if said else fine
        inputs = (*whole.files(PROGRESS), *parts[0].files(PROGRESS))
        found.append(equal("part-1-equals-uninterrupted", inputs, fine, got))
    if whole is not None and parts[1] is not None and experiments.succeeded(parts[1]):
        search = experiments.astray(view, folder)
        name, said = "part-2-equals-uninterrupted", "state is lost at resume"
        found.append(_alike(name, (whole, parts[1]), said, search, view.split + 1))
    return (*found, *_beside_reference(view, plan, folder, experiments.PARTS[0]))


def evaluate(view: View, _plan: CommandPlan, folder: str) -> tuple[Check, ...]:
    """What was restored is what is published again."""
    part, fresh = view.launch("split", experiments.PARTS[1]), at(view, folder, experiments.FRESH)
    if part is None or fresh is None or not experiments.succeeded(fresh):
        return ()
    said = checks.same_state(part, fresh)
    fine = "the state that it was given, published again"
    got = None if said is None else said or fine
    return (equal("fresh-equals-part-2", _published(part, fresh), fine, got),)


def _alike(
    name: str, pair: tuple[Launched, Launched], wrong: str, search: Search | None, begin: int
) -> Check:
    """Two launches that must be the same to the bit; where they part is told by the search for that."""
    expected, got = pair
    inputs = (*expected.files(PROGRESS), *got.files(PROGRESS), *_published(expected, got))
    fine = f"{got.launch.name} is {expected.launch.name} to the bit"
    update, progress = checks.same_progress(expected, got, begin=begin)
    final = checks.same_state(expected, got)
    if final is None:
        return Check(name, Verdict.UNKNOWN, inputs, fine, "what they published cannot be compared")
    if not progress and not final:
        return Check(name, Verdict.PASS, inputs, fine, fine)
    version, word = search.found() if search is not None else (0, "")
    told = [f"first at update {version}: {word}"] if version else []
    told += [f"progress at update {update}: {progress}"] if progress else []
    told += [f"at the end {final}"] if final and not version else []
    return Check(name, Verdict.FAIL, inputs, fine, f"{wrong}: {'; '.join(told)}")


def _published(*launches: Launched) -> tuple[str, ...]:
    states = (
        state.published(launched.view, launched.name, role)
        for launched in launches
        for role in launched.roles
    )
    return tuple(file for each in states if each for file in each.names.values())


def _beside_reference(view: View, plan: CommandPlan, folder: str, name: str) -> tuple[Check, ...]:
    reference, launched = at(view, folder, REFERENCE), at(view, folder, name)
    declared = plan.program.reference
    if declared is None or reference is None or launched is None:
        return ()
    return (checks.beside_reference(launched, reference, (declared.relative, declared.absolute)),)
