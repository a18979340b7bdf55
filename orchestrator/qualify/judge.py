"""The verdict of a bundle, from its files alone: steps, lane, grade. Reaches no machine and writes nothing.

A judge that crashes yields unknown, never a pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from evidence.digest import sha256_file, sha256_json
from evidence.event import Event
from evidence.verify import read_qualification
from orchestrator import __version__
from orchestrator.oracle.reference import NonFiniteError
from orchestrator.plan.command import CommandPlan
from orchestrator.plan.matrix import MatrixPlan
from orchestrator.plan.model import Plan
from orchestrator.qualify import pinned_cards
from orchestrator.qualify.bundle_files import BundleFiles
from orchestrator.qualify.checks import Check, StepOutcome, Verdict, worst
from orchestrator.qualify.grade import grade_of
from orchestrator.qualify.journal_checks import journal
from orchestrator.qualify.steps import ALL, Step, not_applicable
from orchestrator.qualify.view import View

SCHEMA = "orch-qualification/v1"
JUDGING = ("build", "oracle", "plan", "qualify", "spec")


@dataclass(frozen=True)
class Judgement:
    """What a bundle shows, and whether that is what it says of itself.

    Attributes:
        verdict: of the lane: the worst of its steps.
        grade: what the evidence is evidence of.
        steps: in order, without those left out.
        agrees: whether the recorded verdict, grade, steps and checks are these.
        differences: where they are not, one line each.
        numerics: the numerical contract that the verdict is about; None of a user's own program or a matrix.
    """

    verdict: Verdict
    grade: str
    steps: tuple[StepOutcome, ...]
    agrees: bool
    differences: tuple[str, ...]
    numerics: str | None = None


def judge_bundle(bundle: Path) -> Judgement:
    """Recomputes what the sealed bundle of a run says of itself, and compares."""
    return judge_view(View(bundle))


def judge_view(view: View) -> Judgement:
    """The same, of a bundle that is looked at already."""
    steps = judge_steps(view)
    recomputed = qualification(view, steps)
    found = differences(read_qualification(view.bundle), recomputed)
    verdict, contract = worst(step.verdict for step in steps), numerics_of(view)
    return Judgement(verdict, grade_of(view), steps, not found, found, contract)


def judge_steps(view: View) -> tuple[StepOutcome, ...]:
    """Every step's outcome, those left out by the lane excepted."""
    return tuple(judge_step(view, step) for step in ALL if step.NAME not in view.lane.omit)


def judge_step(view: View, step: Step) -> StepOutcome:
    """One step's outcome."""
    events = view.events()
    reason = not_applicable(step, view.lane)
    if reason:
        return StepOutcome(step.NAME, Verdict.NOT_APPLICABLE, 0, reason, ())
    attempts, elapsed = _attempts(events, step.NAME)
    if attempts == 0:
        return StepOutcome(step.NAME, Verdict.UNKNOWN, 0, _why_not_run(events), ())
    failed = _failure(events, step.NAME)
    if failed is not None:
        check = Check(
            "acted",
            Verdict(failed["verdict"]),
            ("stream.jsonl",),
            "the step's own actions succeed",
            failed["reason"],
        )
        return StepOutcome(step.NAME, check.verdict, attempts, failed["reason"], (check,), elapsed)
    checks = _checks(view, step)
    verdict = worst(check.verdict for check in checks)
    said = [event.data["verdict"] for event in events if _is_judgement(event, step)]
    if said and said != [verdict]:
        got = f"judged {', '.join(map(str, said))} when it ran"
        checks += (Check("judged-before", Verdict.FAIL, ("stream.jsonl",), f"judged {verdict}", got),)
        verdict = Verdict.FAIL
    return StepOutcome(step.NAME, verdict, attempts, "", checks, elapsed)


def _is_judgement(event: Event, step: Step) -> bool:
    return event.type == "orch.step.judged" and event.data.get("step") == step.NAME


def _checks(view: View, step: Step) -> tuple[Check, ...]:
    try:
        return (*step.judge(view), *pinned_cards.judge(view, step.NAME), journal(view, step.NAME))
    except NonFiniteError as error:
        return (
            Check(
                "reference", Verdict.FAIL, ("specs/index.json",), "finite words at every update", str(error)
            ),
        )
    except Exception as error:  # noqa: BLE001  # whatever broke, a judge that crashed has shown nothing
        return (
            Check(
                "judge",
                Verdict.UNKNOWN,
                (),
                "a judgement",
                f"the judge crashed: {type(error).__name__}: {error}",
            ),
        )


def _attempts(events: tuple[Event, ...], step: str) -> tuple[int, float]:
    about = [event for event in events if event.data.get("step") == step]
    started = [event for event in about if event.type == "orch.step.started"]
    if not started:
        return 0, 0.0
    seconds = (
        datetime.fromisoformat(about[-1].time) - datetime.fromisoformat(started[0].time)
    ).total_seconds()
    return len(started), seconds


def _failure(events: tuple[Event, ...], step: str) -> Mapping[str, Any] | None:
    """Why the step's last attempt never finished; None if it did."""
    last: Mapping[str, Any] | None = {"verdict": "unknown", "reason": "begun and never finished"}
    for event in events:
        if event.data.get("step") != step:
            continue
        if event.type == "orch.attempt.failed":
            last = event.data
        elif event.type == "orch.step.started":
            last = {"verdict": "unknown", "reason": "begun and never finished"}
        elif event.type == "orch.step.finished":
            last = None
    return last


def _why_not_run(events: tuple[Event, ...]) -> str:
    for event in events:
        if event.type == "orch.lane.stopped":
            return f"not run: {event.data['reason']}"
    for event in events:
        if event.type == "orch.step.judged" and event.data["verdict"] in (Verdict.FAIL, Verdict.UNKNOWN):
            return f"not run: {event.data['step']} did not pass"
    return "not run"


def qualification(view: View, steps: tuple[StepOutcome, ...]) -> dict[str, Any]:
    """`qualification.json` less what sealing adds: the same from the same files, however often it is made."""
    return {
        **summary(view, view.plan, steps),
        "lane": view.lane.name,
        "lane_gate": view.lane.gate,
        "grade": grade_of(view),
        "numerics": numerics_of(view),
        "omitted": dict(view.lane.omit),
        "parent": _parent(view),
    }


def numerics_of(view: View) -> str | None:
    """The numerical contract that the verdict is about; None of a user's own program, which declares none."""
    return None if view.command else view.planned.plan.system.contract


def summary(
    files: BundleFiles, plan: Plan | CommandPlan | MatrixPlan, steps: tuple[StepOutcome, ...]
) -> dict[str, Any]:
    """What a qualification says of a run and of a matrix alike."""
    events = files.events()
    sealed = events[-1].type == "orch.lane.sealed"
    return {
        "schema": SCHEMA,
        "run_id": events[0].source,
        "system": plan.system_digest,
        "plan": plan.digest,
        "content_sha256": events[0].data["content_sha256"],
        "judge": {"version": __version__, "sources_sha256": sources_sha256()},
        "verdict": str(worst(step.verdict for step in steps)),
        "started": events[0].time,
        "ended": events[-2 if sealed else -1].time,
        "steps": [step.as_json() for step in steps],
    }


def _parent(view: View) -> dict[str, Any] | None:
    """The run that this one goes on from."""
    try:
        parent = view.parent
    except (ValueError, LookupError, TypeError):
        return None  # what it should be is preflight's to judge
    if parent is None:
        return None
    return {"run_id": parent.run_id, "version": parent.version, "seal": parent.seal}


@cache
def sources_sha256() -> str:
    """Digest of the code that judges: two builds of one version need not judge alike."""
    package = Path(__file__).resolve().parent.parent
    files = sorted(path for folder in JUDGING for path in (package / folder).rglob("*.py"))
    listing = [[path.relative_to(package).as_posix(), sha256_file(path)] for path in files]
    return sha256_json(listing)


def differences(recorded: Mapping[str, Any], recomputed: Mapping[str, Any]) -> tuple[str, ...]:
    """Where the record is not what the files show, one line each; who judged before is no difference."""
    found = [
        f"{name}: recorded {recorded.get(name)}, recomputed {value}"
        for name, value in recomputed.items()
        if name not in ("judge", "steps") and recorded.get(name) != value
    ]
    listed = recorded.get("steps")
    whole = isinstance(listed, list) and all(isinstance(step, dict) for step in listed)
    entries: list[dict[str, Any]] = list(listed) if isinstance(listed, list) and whole else []
    before = {str(step.get("name")): step for step in entries}
    after = {step["name"]: step for step in recomputed["steps"]}
    names = [str(step.get("name")) for step in entries]
    if names != list(after):
        found.append(f"steps: recorded {', '.join(names)}, recomputed {', '.join(after)}")
    for name, new in after.items():
        old = before.get(name)
        if old is not None and old != new:
            verdicts = f"recorded {old.get('verdict')}, recomputed {new['verdict']}"
            found.append(f"step {name}: {verdicts}{_first_check(old, new)}")
    if found and recorded.get("judge") != recomputed["judge"]:
        found.append(
            f"judge: recorded {recorded.get('judge')}, here {recomputed['judge']}: another build judges"
        )
    return tuple(found)


def _first_check(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    listed = old.get("checks")
    for left, right in zip(listed if isinstance(listed, list) else (), new["checks"], strict=False):
        if left != right and isinstance(left, dict):
            before, now = (f"{check.get('verdict')} ({check.get('got')})" for check in (left, right))
            return f"; check {right['name']}: recorded {before}, recomputed {now}"
    return ""
