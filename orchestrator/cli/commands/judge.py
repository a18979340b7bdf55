"""`orch judge`: a bundle's verdict, recomputed from its files alone."""

from __future__ import annotations

import argparse

from orchestrator.cli.arguments import add_bundle, add_json
from orchestrator.cli.output import complain, paint, plain, print_json, say
from orchestrator.cli.project import find_bundle, require_sealed
from orchestrator.cli.report import EXIT_OF, failed_checks, grade_line, step_json, steps_table
from orchestrator.errors import OrchError, UndecidedError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the bundle."""
    add_bundle(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Judge; the verdict's exit code, and 1 if it is not what the bundle records."""
    from evidence.verify import verify
    from orchestrator.qualify.judge import judge_bundle

    bundle = find_bundle(args.bundle)
    require_sealed(bundle)
    if problems := verify(bundle):
        first = f"{problems[0].name}: {problems[0].kind}: {problems[0].message}"
        more = (
            f" and {len(problems) - 1} more; `orch evidence verify` lists them" if len(problems) > 1 else ""
        )
        raise OrchError(f"{bundle} is not sound, so nothing is judged: {first}{more}")
    try:
        judgement = judge_bundle(bundle)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        # sound, and yet not what a lane run writes: another version's, or made by hand
        raise UndecidedError(f"{bundle} cannot be judged: {type(error).__name__}: {error}") from error
    if args.json:
        print_json(
            {
                "bundle": str(bundle),
                "verdict": str(judgement.verdict),
                "grade": judgement.grade,
                "agrees": judgement.agrees,
                "differences": list(judgement.differences),
                "steps": [step_json(step) for step in judgement.steps],
            }
        )
    else:
        say(steps_table(judgement.steps))
        for line in failed_checks(judgement.steps):
            say(line)
        verdict = str(judgement.verdict)
        say(f"verdict: {paint(verdict, verdict)}\n{grade_line(judgement.grade, judgement.steps)}")
        say(f"bundle: {bundle}")
        agrees = "yes" if judgement.agrees else "no"
        say(f"agrees with what was recorded: {agrees}")
    for difference in judgement.differences:
        complain(plain(difference))
    return EXIT_OF[str(judgement.verdict)] if judgement.agrees else 1
