"""`orch judge`: a bundle's verdict, recomputed from its files alone; if asked, its programs built again."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from orchestrator.cli.arguments import add_bundle, add_json, content_of
from orchestrator.cli.cells import cells_table, not_admitted
from orchestrator.cli.output import complain, counted, paint, plain, print_json, say
from orchestrator.cli.project import find_bundle, require_sealed
from orchestrator.cli.report import EXIT_OF, failed_checks, grade_line, open_checks, step_json, steps_table
from orchestrator.errors import OrchError, UndecidedError, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the bundle and what is looked at besides."""
    add_bundle(parser)
    parser.add_argument(
        "--rebuild",
        action="store_true",
        help="build its programs again from the content at hand, and compare their bytes",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Judge; the verdict's exit code, and 1 if it or a rebuilt program is not what the bundle records."""
    from evidence.verify import verify
    from orchestrator.qualify.matrix.judge import judgement_of
    from orchestrator.qualify.matrix.view import is_matrix
    from orchestrator.qualify.outcome import approximately, simulated

    bundle = find_bundle(args.bundle)
    require_sealed(bundle)
    if problems := verify(bundle):
        first = f"{problems[0].name}: {problems[0].kind}: {problems[0].message}"
        more = (
            f" and {len(problems) - 1} more; `orch evidence verify` lists them" if len(problems) > 1 else ""
        )
        raise OrchError(f"{bundle} is not sound, so nothing is judged: {first}{more}")
    try:
        judgement = judgement_of(bundle)
        rebuilt = _rebuild(bundle) if args.rebuild else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        # sound, and yet not what a lane run writes: another version's, or made by hand
        raise UndecidedError(f"{bundle} cannot be judged: {type(error).__name__}: {error}") from error
    if args.json:
        print_json(
            {
                "bundle": str(bundle),
                "verdict": str(judgement.verdict),
                "grade": judgement.grade,
                "numerics": judgement.numerics,
                "agrees": judgement.agrees,
                "differences": list(judgement.differences),
                "steps": [step_json(step) for step in judgement.steps],
                **({} if rebuilt is None else {"rebuilt": rebuilt.as_json()}),
            }
        )
    else:
        say(cells_table(judgement.steps) if is_matrix(bundle) else steps_table(judgement.steps))
        for line in (
            *(not_admitted(judgement.steps) if is_matrix(bundle) else ()),
            *failed_checks(judgement.steps),
            *open_checks(judgement.steps),
        ):
            say(line)
        verdict, of_cells = str(judgement.verdict), is_matrix(bundle)
        grade = f"grade: {judgement.grade}" if of_cells else grade_line(judgement.grade, judgement.steps)
        within = (
            (*approximately(judgement.numerics), *simulated(judgement.grade)) if verdict == "pass" else ()
        )
        said = "".join((verdict, *(f" ({bound})" for bound in within)))
        say(f"verdict: {paint(said, verdict)}\n{grade}")
        say(f"bundle: {bundle}")
        agrees = "yes" if judgement.agrees else "no"
        say(f"agrees with what was recorded: {agrees}")
        if rebuilt is not None:
            say(str(rebuilt))
    different = rebuilt.differences if rebuilt is not None else ()
    for difference in (*judgement.differences, *different):
        complain(plain(difference))
    return EXIT_OF[str(judgement.verdict)] if judgement.agrees and not different else 1


@dataclass(frozen=True)
class _Rebuilt:
    """Programs that were built again: how many, and which are not the bundle's."""

    programs: int
    differences: tuple[str, ...]

    def __str__(self) -> str:
        same = f"{len(self.differences)} not the same" if self.differences else "the same bytes"
        return f"rebuilt: {counted(self.programs, 'program')}, {same}"

    def as_json(self) -> dict[str, object]:
        return {"programs": self.programs, "differences": list(self.differences)}


def _rebuild(bundle: Path) -> _Rebuilt:
    """Build every program of a bundle again, of a matrix those of every cell; see `_rebuild_lane`."""
    from orchestrator.qualify.matrix.view import bundles_of, is_matrix

    if not is_matrix(bundle):
        return _rebuild_lane(bundle)
    rebuilt = {each: _rebuild_lane(each) for each in bundles_of(bundle)}
    found = tuple(
        f"{each.relative_to(bundle)}/{difference}"
        for each, part in rebuilt.items()
        for difference in part.differences
    )
    return _Rebuilt(sum(part.programs for part in rebuilt.values()), found)


def _rebuild_lane(bundle: Path) -> _Rebuilt:
    """Build every program of a bundle's plan again, those of its controls included.

    Raises:
        UndecidedError: the bundle was made from other content, or no program was built.
    """
    from orchestrator.build.rebuild import differences
    from orchestrator.qualify.steps.build import made_for, wanted
    from orchestrator.qualify.view import PROGRAM_FOLDERS, View

    view, content = View(bundle), content_of(None)
    if view.command is not None:
        raise UsageError(f"{bundle} is a run of a user's own program: nothing was built that could be again")
    recorded = view.events()[0].data["content_sha256"]
    if recorded != content.digest:
        digests = f"(got {content.digest} at {content.root}, expected {recorded})"
        raise UndecidedError(f"{bundle} was made from other content, so nothing is built again {digests}")
    if view.attempt("build") is None:
        raise UndecidedError(f"no program of {bundle} was built, so none is built again")
    count, found = 0, list[str]()
    for which, planned, names in wanted(view):
        made = made_for(view, which)
        pairings = [(role, made[role.name]) for role in planned.plan.roles if role.name in names]
        there = {name: view.program(name, which) for name in names}
        programs = {name: program.data for name, program in there.items() if program is not None}
        different = differences(planned.plan, pairings, programs, content.root)
        found += [f"{PROGRAM_FOLDERS[which]}/{difference}" for difference in different]
        count += len(pairings)
    return _Rebuilt(count, tuple(found))
