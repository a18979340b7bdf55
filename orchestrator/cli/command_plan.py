"""What `plan` and `build` say of the user's own program: nothing is compiled, all is named by digest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.cli.output import counted, say, table

if TYPE_CHECKING:
    from orchestrator.plan.command import CommandPlan
    from orchestrator.qualify.preview import StepPreview
    from orchestrator.spec.lane import LaneSpec
    from orchestrator.spec.program import SourceFile


def all_files(plan: CommandPlan) -> tuple[tuple[str, SourceFile], ...]:
    """Give every file that nodes are given: (what it is for, file)."""
    program = plan.program
    reference = program.reference.files if program.reference else ()
    return (
        *(("program", file) for file in program.files),
        *(("input", file) for file in program.uses),
        *(("reference", file) for file in reference),
    )


def as_json(plan: CommandPlan, lane: LaneSpec | None, steps: Sequence[StepPreview]) -> dict[str, Any]:
    """Give what `orch plan --json` prints."""
    value: dict[str, Any] = {
        "plan": plan.digest,
        "system": plan.system_digest,
        "program": {**plan.file_json()},
        "roles": [{"name": name, "target": target} for name, target in plan.targets.items()],
        "programs": [],
        "files": [
            {"for": use, "name": file.name, "sha256": file.sha256, "size": file.size}
            for use, file in all_files(plan)
        ],
    }
    if lane:
        value["lane"] = {"name": lane.name, "updates": lane.updates, "split": lane.split}
        value["steps"] = [
            {"name": step.name, "skipped": step.skipped, "does": step.does, "checks": list(step.checks)}
            for step in steps
        ]
    return value


def show(plan: CommandPlan, lane: LaneSpec | None, steps: Sequence[StepPreview]) -> None:
    """Print for people what `orch plan` says."""
    program = plan.program
    if lane:
        say(f"lane      {lane.name}: {counted(lane.updates, 'update')}, split after {lane.split}")
    say(f"program   {' '.join(program.argv)}")
    say(f"system    {plan.system_digest}")
    say(f"plan      {plan.digest}")
    say(f"roles     {', '.join(plan.roles)}")
    for argv in program.setup:
        say(f"setup     {' '.join(argv)}")
    if program.reference:
        within = program.reference.relative or program.reference.absolute
        how = f"within {program.reference.relative:g} relative, {program.reference.absolute:g} absolute"
        say(f"reference {' '.join(program.reference.argv)} ({how if within else 'bit by bit'})")
    if rows := [(use, file.name, file.size, file.sha256) for use, file in all_files(plan)]:
        say("\n" + table(("file for", "name", "bytes", "sha256"), rows))
    for number, step in enumerate(steps, start=1):
        say(f"\n{number}. {step.name}: {step.skipped or step.does}")
        for check in () if step.skipped else step.checks:
            say(f"   - {check}")
