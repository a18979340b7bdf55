"""Wrong programs that finish their communication: each is refused by the judge, by the check made for it.

A mutant is a copy of the content with a line of C changed, and of a spec where other data tells it better;
the oracle shares no code with it. docs/lanes.md has the table of mutants and checks.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from lane_workshop import Workshop

ROOT = Path(__file__).resolve().parents[3]


Change = Callable[[str], str]


def content(workshop: Workshop, file: str, change: Change, specs: Mapping[str, Change] | None = None) -> str:
    target = workshop.folder / "content"
    for name in ("specs", "roles", "lanes"):
        shutil.copytree(ROOT / name, target / name)
    changes = {f"roles/{file}": change, **{f"specs/{name}": each for name, each in (specs or {}).items()}}
    for name, each in changes.items():
        path = target / name
        before = path.read_text()
        after = each(before)
        assert after != before, f"the mutation of {name} must take"
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
    workshop: Workshop,
    file: str,
    change: Change,
    lane: str = "samples",
    specs: Mapping[str, Change] | None = None,
) -> dict[str, Any]:
    code, result = workshop.run(
        f"lanes/{lane}.yaml", "--content", content(workshop, file, change, specs), "--db", "t.sqlite3"
    )
    assert (code, result["verdict"]) == (1, "fail")
    assert workshop.strays() == []
    return result


def test_the_unweighted_mean_is_refused_at_update_1(workshop: Workshop):
    """Each owner's mean counted once: 9/16 where the mean over all samples gives 1/2."""

    def average_the_owners(text: str) -> str:
        return text.replace(
            "    combined[MASS_WORD] = (word)ROLE_MASS;",
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


def dyadic(system: str, run: str, samples: str) -> dict[str, Change]:
    """Data and constants of so few bits that every sum is exact, and no order of additions shows in it."""
    rows = [[(row * 7 + at * 5 + row * at) % 3 - 1 for at in range(11)] for row in range(16)]
    lines = [[*(f"x{at}" for at in range(10)), "y"], *rows]
    text = "".join(",".join(map(str, line)) + "\n" for line in lines)
    return {
        "data/diabetes.csv": lambda _: text,
        f"systems/{system}.yaml": lambda old: re.sub("rate: .*", "rate: 0.25", old).replace("0.9", "0.5"),
        f"runs/{run}.yaml": lambda old: re.sub("samples: .*", f"samples: {{{samples}}}", old),
    }


BACKWARDS = {
    "a star's, over connections of their own": (
        "native/schedule.c",
        ("at[role] = role == mesh->role", "at[role == 0 ? 0 : mesh->count - role] = role == mesh->role"),
        "diabetes",
        dyadic("least-squares", "diabetes", "coordinator: 4, worker1: 0, worker2: 7, worker3: rest"),
    ),
    "a tree's": (
        "native/combine.c",
        ("for (uint32_t child = 0; child < CHILD_COUNT; child++)\n            for (uint64_t i",
         "for (uint32_t child = CHILD_COUNT; child-- > 0;)\n            for (uint64_t i"),
        "hierarchy",
        dyadic(
            "least-squares-momentum",
            "hierarchy",
            "coordinator: 2, worker1: 3, worker2: 0, worker3: 4, worker4: 1, worker5: 5, worker6: rest",
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("whose", BACKWARDS)
def test_contributions_added_in_another_order_are_refused_by_the_witness_alone(
    workshop: Workshop, whose: str
):
    """The last owner's are added first, where the run's own sums are the same in every order."""
    file, change, lane, specs = BACKWARDS[whose]
    result = mutate(workshop, file, lambda text: text.replace(*change), lane, specs)
    assert ran_to_its_end(result, "refusals/1/order")
    ((step, check),) = failed(result)
    assert (step, check["name"]) == ("refusals", "order-kept")
    assert "coordinator added in another order" in check["got"]


def of_four(text: str) -> str:
    """The shipped tree with four roles instead of seven; one of them still has a child and a parent."""
    fewer = text.replace("worker[1-6]", "worker[1-3]")
    return re.sub("samples: .*", "samples: {coordinator: 40, worker1: 102, worker2: 0, worker3: rest}", fewer)


TREE = {"runs/hierarchy.yaml": of_four}


def test_sums_delivered_to_the_next_owner_are_refused_by_what_each_role_holds(workshop: Workshop):
    """Right totals in wrong hands: the loss is right, and every role's own words are not."""

    def to_the_next(text: str) -> str:
        return text.replace(
            "uint32_t slot = partition_slot(i);",
            "uint32_t slot = partition_slot((i + 1) % MEAN_SIZES[field]);",
        )

    result = mutate(workshop, "native/combine.c", to_the_next, "hierarchy", TREE)
    assert ran_to_its_end(result, "refusals/1/base")
    checks = {check["name"]: check for step, check in failed(result) if step == "refusals"}
    said = checks["base-said"]["got"]
    assert all(f"{role}: state is " in said for role in ("coordinator", "worker1", "worker3"))
    assert not re.search(" (held|results|samples) is ", said)
    assert "base-left" not in checks


def test_a_replica_that_was_released_before_it_is_read_is_refused_by_the_loss(workshop: Workshop):
    """It is given back and there again when it is read, of the right version and with nothing in it."""

    def too_early(text: str) -> str:
        return text.replace(
            "    return replica.words;",
            "    replica_release();\n    replica.words = map();\n    return replica.words;",
        )

    def begin_elsewhere(text: str) -> str:
        return text.replace("{w: {size: 10, initial: 0}}", "{w: {size: 10, initial: 0.5}}")

    specs = {**TREE, "systems/least-squares-momentum.yaml": begin_elsewhere}
    result = mutate(workshop, "native/replica.c", too_early, "hierarchy", specs)
    assert ran_to_its_end(result, "refusals/1/base")
    checks = {check["name"]: check for step, check in failed(result) if step == "refusals"}
    assert "update 1: loss differs" in checks["base-trajectory"]["got"]


def test_a_replica_that_is_never_released_is_refused_by_how_every_role_ends(workshop: Workshop):
    """All totals are delivered, and no role computes an update beside a replica that it still holds."""

    def keep(text: str) -> str:
        return text.replace("    replica_release();\n", "")

    result = mutate(workshop, "native/rounds.c", keep, "hierarchy", TREE)
    checks = {check["name"]: check["got"] for step, check in failed(result) if step == "refusals"}
    said = [part.partition(": ")[2] for part in checks["base-ended"].split("; ")]
    assert said == ["exit 1, data-parallel-replica-retained"] * 4
    assert list(Path(result["bundle"]).glob("steps/refusals/1/base/*/checkpoint/*")) == []


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

    result = mutate(workshop, "native/replica.c", stale, "hierarchy", TREE)
    assert ran_to_its_end(result, "uninterrupted/1/run-1")
    found = failed(result)
    assert {step for step, _ in found} == {"uninterrupted"}  # a first round is right
    checks = {check["name"]: check for _, check in found}
    assert "update 2: loss differs" in checks["run-1-trajectory"]["got"]
    assert "deterministic" not in checks
