"""Wrong programs that finish their communication: each is refused by the judge, by the check made for it.

A mutant is a copy of the content with one line of C changed; the oracle shares no code with it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lane_workshop import Workshop

ROOT = Path(__file__).resolve().parents[3]


def content(workshop: Workshop, file: str, change: Callable[[str], str]) -> str:
    target = workshop.folder / "content"
    for name in ("specs", "roles", "lanes"):
        shutil.copytree(ROOT / name, target / name)
    path = target / "roles" / file
    before = path.read_text()
    after = change(before)
    assert after != before, "the mutation must take"
    path.write_text(after)
    return str(target)


def failed(result: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (step["name"], check)
        for step in result["steps"]
        for check in step["checks"]
        if check["verdict"] == "fail"
    ]


def mutate(
    workshop: Workshop, file: str, change: Callable[[str], str], lane: str = "samples"
) -> dict[str, Any]:
    code, result = workshop.run(
        f"lanes/{lane}.yaml", "--content", content(workshop, file, change), "--db", "t.sqlite3"
    )
    assert (code, result["verdict"]) == (1, "fail")
    assert workshop.strays() == []
    return result


def test_the_unweighted_mean_is_refused_at_update_1(workshop: Workshop):
    """Each owner's mean counted once: 9/16 where the mean over all samples gives 1/2."""

    def average_the_owners(text: str) -> str:
        return text.replace(
            "    combined[MASS_WORD] = (word)ROLE_SAMPLES;",
            "    for (size_t at = 0; at < MEAN_WORDS; at++)\n"
            "        combined[at] /= (word)ROLE_SAMPLES;\n"
            "    combined[MASS_WORD] = 1.0;",
        )

    result = mutate(workshop, "native/learner.c", average_the_owners)
    bundle = Path(result["bundle"])
    assert [path.read_text() for path in sorted(bundle.glob("steps/refusals/1/base/*/exit"))] == [
        "0\n",
        "0\n",
    ]
    checks = {check["name"]: check for step, check in failed(result) if step == "refusals"}
    assert "w[0] = 0.5 = 1/2 (3fe0000000000000) at update 1" in checks["base-checkpoint-1"]["expected"]
    assert "w[0] = 0.5625 = 9/16 (3fe2000000000000)" in checks["base-checkpoint-1"]["got"]


def test_a_program_that_is_not_deterministic_is_called_so(workshop: Workshop):
    """The root adds a little of the clock to its words from the second update on; replicas still agree."""

    def add_the_clock(text: str) -> str:
        return text.replace(
            "    schedule_run(&mesh,",
            "    if (IS_ROOT && round > 1)\n"
            "        words[0] += (word)(clock_wall_ms() % 8191) * 0x1p-40;\n"
            "    schedule_run(&mesh,",
        )

    result = mutate(workshop, "native/mesh.c", add_the_clock)
    step, check = failed(result)[0]
    assert (step, check["name"]) == ("uninterrupted", "deterministic")
    assert re.search(
        r"not deterministic: coordinator at update 2: .*; first word that differs at version 3: w\[0\] = ",
        check["got"],
    )


def test_a_resume_that_forgets_is_refused_by_the_split_step(workshop: Workshop):
    """Deterministic, but what it goes on from is not quite what was restored."""

    def forget(text: str) -> str:
        return text.replace(
            "rounds_train(&binding, start, total);",
            "{ if (start) learner_forget(); rounds_train(&binding, start, total); }",
        )

    target = content(workshop, "native/main.c", forget)
    for name, more in (
        ("learner.h", "void learner_forget(void);\n#endif"),
        ("learner.c", "void learner_forget(void)\n{\n    state[0] += 0x1p-30;\n}\n"),
    ):
        path = Path(target) / "roles" / "native" / name
        text = path.read_text().rstrip().removesuffix("#endif")
        path.write_text(f"{text}\n{more}\n")
    code, result = workshop.run("lanes/samples.yaml", "--content", target, "--db", "t.sqlite3")
    assert (code, result["verdict"]) == (1, "fail")
    verdicts = {step["name"]: (step["verdict"], step["reason"]) for step in result["steps"]}
    assert (verdicts["uninterrupted"][0], verdicts["split"][0]) == ("pass", "fail"), verdicts
    names = [check["name"] for step, check in failed(result)]
    assert "part-2-equals-uninterrupted-at-5" in names
    assert not [name for name in names if name.startswith("part-1")]


def ran_to_its_end(result: dict[str, Any], launch: str) -> bool:
    """Whether every role of a launch finished: what is wrong is said by the judge alone."""
    exits = [path.read_text() for path in Path(result["bundle"]).glob(f"steps/{launch}/*/exit")]
    return len(exits) > 1 and set(exits) == {"0\n"}


def test_contributions_added_in_another_order_are_refused_by_their_bits(workshop: Workshop):
    """On data whose sums depend on the order, the last owner's is added first: a word's last bits tell it."""

    def backwards(text: str) -> str:
        return text.replace(
            "at[role] = role == mesh->role",
            "at[role == 0 ? 0 : mesh->count - role] = role == mesh->role",
        )

    result = mutate(workshop, "native/schedule.c", backwards, "diabetes")
    assert ran_to_its_end(result, "refusals/1/base")
    checks = {check["name"]: check for step, check in failed(result)}
    words = (checks["base-checkpoint-1"][side] for side in ("expected", "got"))
    expected, got = (int(re.search(r"\(([0-9a-f]{16})\)", word)[1], 16) for word in words)
    assert 0 < abs(expected - got) <= 16
    assert "deterministic" not in checks


def test_sums_delivered_to_the_next_owner_are_refused_by_what_each_role_holds(workshop: Workshop):
    """Right totals in wrong hands: the loss is right, and every role's own words are not."""

    def to_the_next(text: str) -> str:
        return text.replace(
            "uint32_t slot = partition_slot(i);",
            "uint32_t slot = partition_slot((i + 1) % MEAN_SIZES[field]);",
        )

    result = mutate(workshop, "native/combine.c", to_the_next, "hierarchy")
    assert ran_to_its_end(result, "refusals/1/base")
    checks = {check["name"]: check for step, check in failed(result) if step == "refusals"}
    assert "update 1: state differs" in checks["base-trajectory"]["got"]
    assert "results is " not in checks["base-said"]["got"]
    assert "base-left" not in checks


def test_a_stale_replica_whose_tag_lies_is_refused_by_the_loss_that_was_read(workshop: Workshop):
    """From the second round on every role reads the version before's parameters, tagged as the new one's."""

    def stale(text: str) -> str:
        return text.replace(
            "    replica.version = version;",
            "    static word before[PARAMETER_WORDS];\n"
            "    static int rounds;\n"
            "    for (uint64_t i = 0; i < PARAMETER_WORDS; i++) {\n"
            "        word now = replica.words[i];\n"
            "        if (rounds > 0)\n"
            "            replica.words[i] = before[i];\n"
            "        before[i] = now;\n"
            "    }\n"
            "    rounds++;\n"
            "    replica.version = version;",
        )

    result = mutate(workshop, "native/replica.c", stale, "hierarchy")
    assert ran_to_its_end(result, "uninterrupted/1/run-1")
    found = failed(result)
    assert {step for step, _ in found} == {"uninterrupted"}  # a first round is right
    checks = {check["name"]: check for _, check in found}
    assert "update 2: loss differs" in checks["run-1-trajectory"]["got"]
    assert "deterministic" not in checks
