"""A system that declares a bound is judged by it: near enough passes, further fails, and the verdict says so.

Mutants are programs of other C: what they compute differs by a little that is known.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from lane_workshop import Workshop
from test_mutants import content, failed

from orchestrator.qualify.judge import judge_bundle

SHORT = {"omit": "{refusals: shown elsewhere, evaluate: shown elsewhere}"}


def approximate(workshop: Workshop, system: str, lane: str, relative: str, **lines: str) -> str:
    """A shipped lane whose system is held to a bound instead of to the bit."""
    changed = workshop.lane(lane, **lines)
    path = workshop.folder / "specs" / "systems" / f"{system}.yaml"
    contract = f"numerics: {{kind: approximate, word: binary64, relative: {relative}}}"
    path.write_text(re.sub("^numerics: .*$", contract, path.read_text(), flags=re.MULTILINE))
    return changed


def by_name(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for step in result["steps"] for check in step["checks"]}


def backwards(text: str) -> str:
    """The same words, in the opposite order after the root's."""
    return text.replace(
        "at[role] = role == mesh->role",
        "at[role == 0 ? 0 : mesh->count - role] = role == mesh->role",
    )


def average_the_owners(text: str) -> str:
    """Each owner's mean counted once."""
    return text.replace(
        "    combined[MASS_WORD] = (word)ROLE_MASS;",
        "    for (size_t at = 0; at < MEAN_WORDS; at++)\n"
        "        combined[at] /= (word)ROLE_SAMPLES;\n"
        "    combined[MASS_WORD] = 1.0;",
    )


def add_the_clock(text: str) -> str:
    """The root's own sum is a little of the clock more, for all roles alike."""
    return text.replace(
        "    schedule_run(&mesh,",
        "    if (IS_ROOT)\n"
        "        words[0] += (word)(clock_wall_ms() % 8191) * 0x1p-40;\n"
        "    schedule_run(&mesh,",
    )


def test_a_right_program_passes_whole_and_says_within_what(workshop: Workshop):
    lane = approximate(workshop, "samples", "samples", "1e-9")
    code, result = workshop.run(lane)
    assert (code, result["verdict"]) == (0, "pass"), failed(result)
    assert result["headline"] == "pass (approximate, relative 1e-09)"
    assert result["numerics"] == "binary64-approximate, relative 1e-09"
    bundle = Path(result["bundle"])
    sealed = json.loads((bundle / "qualification.json").read_bytes())
    assert sealed["numerics"] == "binary64-approximate, relative 1e-09"
    assert judge_bundle(bundle).agrees
    said = workshop.orch("judge", str(bundle))
    assert "verdict: pass (approximate, relative 1e-09)\n" in said.stdout
    checks = by_name(result)
    left_out = {name for name, check in checks.items() if check["verdict"] == "not-applicable"}
    assert left_out == {
        "order-kept",
        "deterministic",
        "part-1-equals-uninterrupted-at-3",
        "part-2-equals-uninterrupted-at-5",
    }
    assert checks["run-1-checkpoint-5"]["got"].endswith("; largest relative difference 0")
    assert not list(bundle.glob("steps/build/1/witness-programs"))


def test_another_order_of_additions_is_within_a_sane_bound_and_beyond_a_tighter_one(workshop: Workshop):
    omit = "{refusals: shown elsewhere, split: shown elsewhere, evaluate: shown elsewhere}"
    short = {"omit": omit, "updates": "4", "split": "2"}
    lane = approximate(workshop, "least-squares", "diabetes", "1e-9", **short)
    other = content(workshop, "native/schedule.c", backwards)
    code, result = workshop.run(lane, "--content", other)
    assert (code, result["verdict"]) == (0, "pass"), failed(result)
    assert (
        result["headline"] == "pass (5 of 8; omitted: refusals, split, evaluate; approximate, relative 1e-09)"
    )
    seen = by_name(result)["run-1-checkpoint-4"]["got"]
    largest, word = re.search(r"largest relative difference (\S+) \((w\[\d\])\)$", seen).groups()
    assert 0 < float(largest) < 1e-13

    tighter = approximate(workshop, "least-squares", "diabetes", "1e-17", **short)
    code, result = workshop.run(tighter, "--content", other)
    assert (code, result["verdict"]) == (1, "fail")
    check = by_name(result)["run-1-checkpoint-4"]
    assert check["verdict"] == "fail"
    assert re.match(r"w\[\d\] = .* within relative 1e-17 at update 4$", check["expected"])
    assert f"largest relative difference {largest} ({word})" in check["got"]
    # and the declared order is within any bound
    code, result = workshop.run(tighter)
    assert (code, result["verdict"]) == (0, "pass"), failed(result)


def test_an_unweighted_mean_is_beyond_the_bound_and_its_word_is_named(workshop: Workshop):
    lane = approximate(workshop, "samples", "samples", "1e-3")
    code, result = workshop.run(lane, "--content", content(workshop, "native/learner.c", average_the_owners))
    assert (code, result["verdict"]) == (1, "fail")
    check = by_name(result)["base-checkpoint-1"]
    assert check["expected"] == "w[0] = 0.5 = 1/2 (3fe0000000000000) within relative 0.001 at update 1"
    word = "w[0] = 0.5625 = 9/16 (3fe2000000000000)"
    assert check["got"] == f"{word}; largest relative difference 0.125 (w[0])"


def test_two_runs_may_differ_within_the_bound_and_another_may_go_on_from_one(workshop: Workshop):
    lane = approximate(workshop, "samples", "samples", "1e-6", **SHORT)
    code, result = workshop.run(lane, "--content", content(workshop, "native/mesh.c", add_the_clock))
    assert (code, result["verdict"]) == (0, "pass"), failed(result)
    origin = Path(result["bundle"])
    runs = {path.read_bytes() for path in origin.glob("steps/uninterrupted/1/run-*/coordinator/progress")}
    assert len(runs) == 2
    onwards = workshop.lane("samples", **SHORT, updates="8", split="6")
    code, result = workshop.run(onwards, "--from", f"{origin}:checkpoint@5")
    assert (code, result["verdict"]) == (0, "pass"), failed(result)
    assert re.search(
        r"largest relative difference [\d.]+e-\d+ \(w\[0\]\)$", by_name(result)["parent-checkpoint"]["got"]
    )


def test_replicas_still_agree_to_the_bit(workshop: Workshop):
    """One role's word is within the bound and not the others': nothing is published."""

    def one_differs(text: str) -> str:
        return text.replace(
            "    plan_update(state, total);",
            "    plan_update(state, total);\n    state[0] += IS_ROOT * 0x1p-40;",
        )

    lane = approximate(workshop, "samples", "samples", "1e-3", **SHORT)
    code, result = workshop.run(lane, "--content", content(workshop, "native/learner.c", one_differs))
    assert (code, result["verdict"]) == (1, "fail")
    assert "replica-divergence" in by_name(result)["run-1-ended"]["got"]


def test_owners_of_parts_and_of_coordinates_are_judged_by_the_bound_too(workshop: Workshop):
    for system, lane in (("least-squares-momentum", "hierarchy"), ("coordinates", "coordinates-host")):
        changed = approximate(workshop, system, lane, "1e-9", **SHORT)
        code, result = workshop.run(changed)
        assert (code, result["verdict"]) == (0, "pass"), failed(result)
        assert result["headline"].endswith("; approximate, relative 1e-09)")
