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


def mutate(workshop: Workshop, file: str, change: Callable[[str], str]) -> dict[str, Any]:
    code, result = workshop.run(
        "lanes/samples.yaml", "--content", content(workshop, file, change), "--db", "t.sqlite3"
    )
    assert (code, result["verdict"]) == (1, "fail")
    assert workshop.strays() == []
    return result


def test_the_unweighted_mean_is_refused_at_update_1(workshop: Workshop):
    """Each owner's mean counted once: 9/16 where the mean over all samples gives 1/2."""

    def average_the_owners(text: str) -> str:
        return text.replace(
            "    combined[MASS_WORD] = (double)ROLE_SAMPLES;",
            "    for (size_t word = 0; word < MEAN_WORDS; word++)\n"
            "        combined[word] /= (double)ROLE_SAMPLES;\n"
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
    """The root adds a little of the clock to the total from the second update on; replicas still agree."""

    def add_the_clock(text: str) -> str:
        return text.replace(
            "        peers_send(FRAME_TOTAL, round, words, BYTES);",
            "        if (round > 1)\n"
            "            words[0] += (double)(clock_wall_ms() % 8191) * 0x1p-40;\n"
            "        peers_send(FRAME_TOTAL, round, words, BYTES);",
        )

    result = mutate(workshop, "native/rounds.c", add_the_clock)
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


def test_contributions_added_in_another_order_are_refused(workshop: Workshop):
    """On data whose sums depend on the order, the last owner's is added first."""

    def backwards(text: str) -> str:
        return text.replace(
            "for (uint32_t peer = 0; peer < PEER_COUNT; peer++)\n            for (uint32_t word",
            "for (uint32_t peer = PEER_COUNT; peer-- > 0;)\n            for (uint32_t word",
        )

    code, result = workshop.run(
        "lanes/diabetes.yaml",
        "--content",
        content(workshop, "native/rounds.c", backwards),
        "--db",
        "t.sqlite3",
    )
    assert (code, result["verdict"]) == (1, "fail")
    assert "deterministic" not in {check["name"] for _, check in failed(result)}
