"""The verdict of a matrix, from its files alone: each cell judged as a lane is, then held against another.

Reaches no machine and writes nothing. A judge that crashes yields unknown, never a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from evidence.verify import read_qualification, verify
from orchestrator.plan.matrix import said
from orchestrator.qualify.checks import Check, StepOutcome, Verdict, equal, worst
from orchestrator.qualify.grade import EMULATED, least
from orchestrator.qualify.judge import Judgement, differences, judge_bundle, judge_view, summary
from orchestrator.qualify.launched import Launched
from orchestrator.qualify.matrix.view import CELLS, LANE, MatrixView, cell_files, is_matrix, place_of
from orchestrator.qualify.steps import split, uninterrupted
from orchestrator.qualify.view import View
from orchestrator.spec.matrix import Cell

STREAM = "stream.jsonl"
Pair = tuple[View, View]
"""The reference's lane, and the cell's."""
Inside = Callable[[Path, str], str]
"""A cell's bundle and a file in it -> its name in the matrix's bundle."""
COMPARED = ((uninterrupted.NAME, uninterrupted.RUNS[0]), (split.NAME, split.PARTS[1]))


def judgement_of(bundle: Path) -> Judgement:
    """Recomputes what a sealed bundle of either sort says of itself, and compares."""
    return judge_matrix(bundle) if is_matrix(bundle) else judge_bundle(bundle)


def judge_matrix(bundle: Path) -> Judgement:
    """Recomputes what a sealed matrix says of itself, and compares."""
    view = MatrixView(bundle)
    steps = judge_cells(view)
    recomputed = qualification(view, steps)
    found = differences(read_qualification(bundle), recomputed)
    return Judgement(worst(step.verdict for step in steps), recomputed["grade"], steps, not found, found)


def judge_cells(view: MatrixView) -> tuple[StepOutcome, ...]:
    """Every cell's outcome, those that were not asked for excepted."""
    return tuple(judge_cell(view, cell) for cell in view.cells)


def judge_cell(view: MatrixView, cell: Cell) -> StepOutcome:
    """One cell's outcome; a cell that is not admitted is not applicable, and says why."""
    if (refusal := view.plan.refused.get(cell)) is not None:
        return StepOutcome(cell.name, Verdict.NOT_APPLICABLE, 0, said(refusal), ())
    about = [event for event in view.events() if event.data.get("cell") == cell.name]
    if not view.bundles(cell):
        return StepOutcome(cell.name, Verdict.UNKNOWN, 0, _why_not_run(view), ())
    times = [datetime.fromisoformat(event.time) for event in about]
    elapsed = (times[-1] - times[0]).total_seconds() if times else 0.0
    try:
        checks = tuple(_checks(view, cell))
    except Exception as error:  # noqa: BLE001  # whatever broke, a judge that crashed has shown nothing
        got = f"the judge crashed: {type(error).__name__}: {error}"
        checks = (Check("judge", Verdict.UNKNOWN, (), "a judgement", got),)
    return StepOutcome(cell.name, worst(check.verdict for check in checks), 1, "", checks, elapsed)


def _why_not_run(view: MatrixView) -> str:
    for event in view.events():
        if event.type == "orch.lane.stopped":
            return f"not run: {event.data['reason']}"
    return "not run"


def _checks(view: MatrixView, cell: Cell) -> Iterator[Check]:
    """The cell's bundle: of this matrix, sound, judged as a lane; then equal to its reference's."""
    lane = View(view.bundles(cell)[0])
    yield _as_declared(view, cell, lane)
    sealed = _sealed(view, cell, lane.bundle)
    yield sealed
    if sealed.verdict is not Verdict.PASS:
        return
    yield _lane(view, lane)
    reference = view.spec.reference(cell)
    others = view.bundles(reference)
    if reference == cell or not others:
        return
    # another shape's results are bracketed by other owners: they are not to be the same
    is_same_shape = reference.shape == cell.shape
    against = "replicated" if is_same_shape else reference.shape
    pair, inside = (View(others[0]), lane), partial(_inside, view)
    yield from _states_equal(pair, against, inside)
    if is_same_shape:
        yield from _losses_equal(pair, inside)


def _inside(view: MatrixView, bundle: Path, name: str) -> str:
    return (bundle / name).relative_to(view.bundle).as_posix()


def _as_declared(view: MatrixView, cell: Cell, inner: View) -> Check:
    """The cell's files are the matrix's, and its bundle was made from them and from the matrix's specs."""
    declared = cell_files(view.spec, view.bundle, cell)
    problems = [
        f"{name} is not what the matrix says" for name, data in declared.items() if view.bytes(name) != data
    ]
    problems += [f"{each.name} is a second bundle" for each in view.bundles(cell)[1:]]
    problems += [f"{each} was begun, and is no cell of the matrix" for each in view.strangers]
    bundle, begun, ours = inner.bundle, inner.events()[0], view.events()[0]
    if inner.lane_copy != bundle / "specs" / CELLS / cell.name / LANE:
        problems.append("its lane is another")
    for path in sorted((bundle / "specs").rglob("*.*")):
        name = path.relative_to(bundle / "specs").as_posix()
        # beside the cell's own files, the specs lie in a cell's bundle as they lie in the matrix's
        if name != "index.json" and inner.bytes(f"specs/{name}") != view.bytes(name):
            problems.append(f"specs/{name} is not the matrix's")
    if inner.plan.digest != view.plan.plans[cell].digest:
        problems.append(f"its plan is {inner.plan.digest}")
    expected = {key: ours.data.get(key) for key in ("content_sha256", "keep", "owner")}
    expected["pods"] = place_of(view.spec, cell, str(ours.data.get("pods")))
    problems += [
        f"{key} is {begun.data.get(key)!r}" for key, value in expected.items() if begun.data.get(key) != value
    ]
    fine = "the matrix's own files and specs"
    return equal("as-declared", (*declared, _inside(view, bundle, STREAM)), fine, "; ".join(problems) or fine)


def _sealed(view: MatrixView, cell: Cell, bundle: Path) -> Check:
    """The cell's bundle is sound, and the one that the journal says was sealed."""
    seals = [
        str(event.data["seal"])
        for event in view.events()
        if event.type == "orch.cell.finished" and event.data.get("cell") == cell.name
    ]
    fine = "a sound bundle of the seal in the journal"
    inputs = (STREAM, _inside(view, bundle, "qualification.json"))
    if len(seals) != 1:
        return Check("sealed", Verdict.UNKNOWN, inputs, fine, f"{len(seals)} seals in the journal")
    problems = verify(bundle, seal=seals[0])
    return equal("sealed", inputs, fine, str(problems[0]) if problems else fine)


def _lane(view: MatrixView, lane: View) -> Check:
    """The cell's own verdict, recomputed: each run against the oracle, the split one against the whole."""
    found = judge_view(lane)
    fine = "pass, as recorded"
    inputs = (_inside(view, lane.bundle, "qualification.json"),)
    if found.verdict is Verdict.PASS and found.agrees:
        return Check("lane", Verdict.PASS, inputs, fine, fine)
    wrong = [
        f"{step.name}: {check.name}: expected {check.expected}, got {check.got}"
        for step in found.steps
        for check in step.checks
        if check.verdict == found.verdict
    ]
    reasons = [step.reason for step in found.steps if step.verdict == found.verdict and step.reason]
    why = next(iter((*found.differences, *wrong, *reasons)), "")
    verdict = Verdict.FAIL if found.verdict is Verdict.PASS else found.verdict
    return Check("lane", verdict, inputs, fine, f"{found.verdict}: {why}")


def _states_equal(pair: Pair, against: str, inside: Inside) -> Iterator[Check]:
    """The states after the split and after all updates are the reference's; `against` says which that is."""
    versions = (pair[1].split, pair[1].lane.updates)
    for step, launch in COMPARED:
        launched = [view.launch(step, launch) for view in pair]
        for version in versions if step == uninterrupted.NAME else versions[1:]:
            names = [each.manifest(version) if each else None for each in launched]
            states = [
                view.json(name)["state"] if name else None for view, name in zip(pair, names, strict=True)
            ]
            inputs = [inside(view.bundle, name) for view, name in zip(pair, names, strict=True) if name]
            what = "resumed" if step == split.NAME else "state"
            yield equal(f"{what}-at-{version}-equals-{against}", inputs, states[0], states[1])


def _losses_equal(pair: Pair, inside: Inside) -> Iterator[Check]:
    """Every loss is the replicated learner's."""
    first, second = (view.launch(*COMPARED[0]) for view in pair)
    if first is not None and second is not None:
        yield equal(
            "losses-equal-replicated",
            (inside(each.view.bundle, each.file(each.view.roles[0], "progress")) for each in (first, second)),
            *map(_losses, (first, second)),
        )


def _losses(launched: Launched) -> str:
    return ", ".join(line.loss for line in launched.roles[launched.view.roles[0]].progress)


def grade_of(view: MatrixView) -> str:
    """What the evidence is evidence of: the least that one of its cells is, or says nothing of."""
    return least(_grade(bundle) for cell in view.cells for bundle in view.bundles(cell))


def _grade(bundle: Path) -> str:
    try:
        return str(read_qualification(bundle)["grade"])
    except (OSError, ValueError, LookupError):
        return EMULATED


def qualification(view: MatrixView, steps: tuple[StepOutcome, ...]) -> dict[str, Any]:
    """`qualification.json` less what sealing adds, in the form of a lane's; its steps are the cells."""
    return {
        **summary(view, view.plan, steps),
        "lane": view.spec.name,
        "lane_gate": None,
        "grade": grade_of(view),
        "omitted": dict(view.omitted),
        "parent": None,
    }
