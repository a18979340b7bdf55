"""The experiments that each step makes with a program of the user's own: what is launched, what it must show.

A step's experiments come one after another: which is next may depend on what the ones before left in the
bundle, and on nothing else. So the judge goes through the very ones that the acting side went through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from orchestrator.plan.command import CommandPlan
from orchestrator.qualify.checks import Check
from orchestrator.qualify.command import checks, state
from orchestrator.qualify.command.search import Search, at
from orchestrator.qualify.command.start import REFERENCE, setup_program
from orchestrator.qualify.command.tamper import RESUMED, changed_byte, controls, cut_blocks
from orchestrator.qualify.compose import Wanted
from orchestrator.qualify.launch import OTHER
from orchestrator.qualify.launched import Launched
from orchestrator.qualify.view import View
from orchestrator.spec.program import Looks

BASE, CUT, FOREIGN = "base", "cut", "foreign"
RUNS, PARTS = ("run-1", "run-2"), ("part-1", "part-2")
FRESH, CORRUPTED = "fresh", "corrupted"


@dataclass(frozen=True)
class Experiment:
    """A launch, and what must be seen of it."""

    wanted: Wanted
    judge: Callable[[Launched], tuple[Check, ...]]


Experiments = Callable[[View, CommandPlan, str], Iterator[Experiment]]


def _training(wanted: Wanted, *, first: int = 1) -> Experiment:
    return Experiment(wanted, lambda launched: checks.trained(launched, wanted, first=first))


def _from_start(view: View, name: str, target: int) -> Wanted:
    """A launch from where the run begins: from nothing, or from another run's checkpoint."""
    return Wanted(name, view.epoch(1), target, restore=view.restore)


def _searching(wanted: Wanted) -> Experiment:
    """A launch that only says where to look: how it ended is seen in what it left."""
    return Experiment(wanted, lambda launched: checks.asked(launched, wanted))


def _reference(view: View, target: int) -> Experiment:
    role = view.roles[0]
    return _training(Wanted(REFERENCE, 1, target, roles=(role,), programs={role: REFERENCE}))


def succeeded(launched: Launched | None) -> bool:
    """Whether a launch was made and every role of it ended with exit 0."""
    return launched is not None and all(record.exit == 0 for record in launched.roles.values())


def setup(view: View, plan: CommandPlan, folder: str) -> Iterator[Experiment]:
    """The setup commands, each on every node at once, as long as the ones before succeeded."""
    placement = view.wiring.placement
    first_of = {placement[role]: role for role in reversed(view.roles)}
    roles = tuple(role for role in view.roles if first_of[placement[role]] == role)
    for number in range(1, len(plan.program.setup) + 1):
        name = setup_program(number)
        wanted = Wanted(name, 1, 0, roles=roles, programs=dict.fromkeys(roles, name))
        yield _setting_up(wanted)
        if not succeeded(at(view, folder, name)):
            return


def _setting_up(wanted: Wanted) -> Experiment:
    return Experiment(wanted, lambda launched: (*checks.asked(launched, wanted), checks.set_up(launched)))


def refusals(view: View, plan: CommandPlan, folder: str) -> Iterator[Experiment]:
    """One update; what must be refused from its checkpoint; then the same update, cut while it writes."""
    yield _training(Wanted(BASE, 1, 1))
    restore = state.restored(view, f"{folder}/{BASE}")
    base = at(view, folder, BASE)
    if not restore or base is None or not succeeded(base):
        return
    for control in controls(view, plan, restore, folder):
        yield _refused(control.wanted, control.looks)
    yield from _foreign(view, plan, folder)
    wanted = Wanted(CUT, 1, 1, file_blocks=cut_blocks(view, restore))
    yield Experiment(wanted, lambda cut: (*checks.asked(cut, wanted), *checks.absent_or_whole(cut, base)))


def _foreign(view: View, plan: CommandPlan, folder: str) -> Iterator[Experiment]:
    """A checkpoint of another program of the user's, sound in itself; then this one, given it."""
    if plan.program.other is None:
        return
    yield _training(Wanted(FOREIGN, 1, 1, programs=dict.fromkeys(view.roles, OTHER)))
    restore = state.restored(view, f"{folder}/{FOREIGN}")
    if restore and succeeded(at(view, folder, FOREIGN)):
        looks = plan.program.refuses.get("checkpoint-system", Looks())
        yield _refused(Wanted("foreign-checkpoint", *RESUMED, restore=restore), looks)


def _refused(wanted: Wanted, looks: Looks) -> Experiment:
    return Experiment(
        wanted, lambda launched: (*checks.asked(launched, wanted), checks.refused(launched, looks))
    )


def uninterrupted(view: View, plan: CommandPlan, folder: str) -> Iterator[Experiment]:
    """All updates, twice; the reference; and where the two runs part, if they do."""
    for name in RUNS:
        yield _training(_from_start(view, name, view.lane.updates), first=view.first + 1)
        if not succeeded(at(view, folder, name)):
            return
    if plan.program.reference is not None:
        yield _reference(view, view.lane.updates)
    search = twice(view, folder)
    if search is not None:
        yield from map(_searching, search.wanted())


def twice(view: View, folder: str) -> Search | None:
    """Where two runs from the same beginning part; None if they do not."""
    first, second = (at(view, folder, name) for name in RUNS)
    if first is None or second is None:
        return None
    update, said = checks.same_progress(first, second, begin=view.first + 1)
    if not said and not checks.same_state(first, second):
        return None

    def pair(version: int) -> tuple[Wanted, Wanted]:
        return _from_start(view, f"once-{version}", version), _from_start(view, f"again-{version}", version)

    return Search(view, folder, view.first, update or view.lane.updates, pair)


def split(view: View, plan: CommandPlan, folder: str) -> Iterator[Experiment]:
    """Up to the split; the rest from its checkpoint; the reference; and where the resumed run goes astray."""
    yield _training(_from_start(view, PARTS[0], view.split), first=view.first + 1)
    restore = state.restored(view, f"{folder}/{PARTS[0]}")
    if not restore or not succeeded(at(view, folder, PARTS[0])):
        return
    yield _training(Wanted(PARTS[1], 2, view.lane.updates, restore=restore), first=view.split + 1)
    if plan.program.reference is not None:
        yield _reference(view, view.split)
    search = astray(view, folder)
    if search is not None:
        yield from map(_searching, search.wanted())


def astray(view: View, folder: str) -> Search | None:
    """Where a resumed run leaves the uninterrupted one; None if it does not, or there is none to compare."""
    whole, part = view.launch("uninterrupted", RUNS[0]), at(view, folder, PARTS[1])
    if whole is None or part is None or not succeeded(part):
        return None
    update, said = checks.same_progress(whole, part, begin=view.split + 1)
    if not said and not checks.same_state(whole, part):
        return None
    restore = state.restored(view, f"{folder}/{PARTS[0]}")

    def pair(version: int) -> tuple[Wanted, Wanted]:
        resumed = Wanted(f"resumed-{version}", 2, version, restore=restore)
        return _from_start(view, f"straight-{version}", version), resumed

    return Search(view, folder, view.split, update or view.lane.updates, pair)


def evaluate(view: View, plan: CommandPlan, folder: str) -> Iterator[Experiment]:
    """New processes are given the final checkpoint and nothing to do; then the same with one bit changed."""
    updates = view.lane.updates
    resumed = view.attempt("split")
    restore = state.restored(view, f"{resumed}/{PARTS[1]}") if resumed else {}
    if not restore:
        return
    yield _training(Wanted(FRESH, 3, updates, restore=restore), first=updates + 1)
    altered = changed_byte(view, restore, f"{folder}/{CORRUPTED}", at=(3, updates))
    yield _refused(altered, plan.program.refuses.get("checkpoint-chunk", Looks()))
