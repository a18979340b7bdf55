"""What roles must leave, by the oracle: held digests, losses and results after every update."""

from __future__ import annotations

import array
from itertools import islice

from role_bench import Bench, Outcome
from role_plans import Case

from orchestrator.oracle.reference import Reference, Version, bits, held_words, state_digest


def versions(case: Case, updates: int, begin: Version | None = None) -> list[Version]:
    return list(islice(Reference(case.plan, array.array("d", case.words)).versions(begin), updates))


def check(
    run: Bench, outcomes: dict[str, Outcome], updates: int, start: int = 0, before: Case | None = None
) -> None:
    """Every role's progress and results, to the bit; the first `start` updates are those of `before`."""
    plan = run.case.plan
    made = versions(before or run.case, start)
    made += versions(run.case, updates - start, made[-1] if made else None)
    for role in plan.roles:
        held = [held_words(plan, role, version.words) for version in made]
        lines = [
            f"{at} {state_digest(words)} {bits(version.results['loss'])}"
            for at, (words, version) in enumerate(zip(held, made, strict=True), 1)
        ]
        results = outcomes[role.name].results
        assert run.progress(role.name) == lines[start:], role.name
        assert (results["held"], results["state"]) == (len(held[-1]), state_digest(held[-1]))
        assert results["results"] == {name: bits(value) for name, value in made[-1].results.items()}
