"""Partitioned parameters, optimizer state and gradients: the same bits, held by their owners alone."""

from __future__ import annotations

import re
import shutil
from itertools import product

import pytest
import role_plans
import role_truth
from covering import each, some
from role_bench import ARM, CONTENT, X86, Setup, altered_content
from safetensors import deserialize

from orchestrator.build.compile import Made, build_program
from orchestrator.plan.ownership import Ownership

HOW = ("replicated", "partitioned")
COMBINATIONS = [Ownership(*how) for how in product(HOW, HOW, HOW)]
ALL = COMBINATIONS[-1]
RANGES = (range(2, 3), range(0), range(2), range(3, 9))
SHAPES = {
    "single": ((5,), 0),
    "pair": ((2, 3), 0),
    "star": ((1, 2, 0, 2), 0),
    "seven": ((1, 0, 2, 0, 1, 0, 1), 2),
}
SYSTEMS = {"momentum": role_plans.MOMENTUM, "adam": role_plans.ADAM}


def shown(ownership):
    how = (ownership.parameters, ownership.optimizer_state, ownership.gradients)
    return "".join(letter if each == "partitioned" else "-" for letter, each in zip("psg", how, strict=True))


def partitioned(system="adam", shape="star", ownership=ALL):
    return role_plans.among(SYSTEMS[system], *SHAPES[shape], ownership)


def names(case):
    return [role.name for role in case.plan.roles]


EVERYWHERE = [
    (system, shape, ownership)
    for system, shape in [("momentum", "star"), *(("adam", shape) for shape in SHAPES)]
    for ownership in COMBINATIONS
]


@pytest.mark.parametrize(
    ("system", "shape", "ownership"),
    some(EVERYWHERE, lambda at: at[:2] == ("adam", "star") or at[2] in (COMBINATIONS[0], ALL)),
    ids=lambda value: shown(value) if isinstance(value, Ownership) else value,
)
def test_who_holds_what_changes_no_bit(bench, system, shape, ownership):
    run = bench(partitioned(system, shape, ownership))
    role_truth.check(run, run.run(Setup(target=5)), 5)


@pytest.mark.parametrize("ownership", each(3, COMBINATIONS[1:]), ids=shown)
def test_declared_ranges(bench, ownership):
    """Out of order, one of them empty, one beyond every field."""
    how = Ownership(ownership.parameters, ownership.optimizer_state, ownership.gradients, RANGES)
    run = bench(partitioned(ownership=how))
    role_truth.check(run, run.run(Setup(target=5)), 5)


def ranges_of(shape):
    """Runs of coordinates in role order; the last role has none."""
    count = len(SHAPES[shape][0])
    return (*tuple(range(at, at + 1) for at in range(count - 1)), range(0))


def test_declared_ranges_on_a_tree(bench):
    how = Ownership("partitioned", "partitioned", "partitioned", ranges_of("seven"))
    run = bench(partitioned(shape="seven", ownership=how))
    role_truth.check(run, run.run(Setup(target=5)), 5)


@pytest.mark.parametrize("system", SYSTEMS)
def test_on_both_instruction_sets(bench, tmp_path, system):
    case = partitioned(system)
    first, then = (
        {name: (X86, ARM)[(at + turn) % 2] for at, name in enumerate(names(case))} for turn in (0, 1)
    )
    before, after = bench(case), bench(case)
    before.run(Setup(target=3, targets=first))
    restore = before.published(3, tmp_path / "three")
    role_truth.check(after, after.run(Setup(target=5, epoch=2, restore=restore, targets=then)), 5, start=3)


LINEAGE = [
    ("seven", ALL),
    ("single", COMBINATIONS[0]),
    ("star", COMBINATIONS[4]),
    ("pair", COMBINATIONS[3]),
    ("star", Ownership("partitioned", "partitioned", "replicated", RANGES)),
    ("seven", COMBINATIONS[0]),
    ("seven", ALL),
]


def test_one_lineage_through_every_distribution(bench, tmp_path):
    restore, begin = None, None
    for epoch, (shape, ownership) in enumerate(LINEAGE, 1):
        case = partitioned("adam", shape, ownership)
        run = bench(case)
        outcomes = run.run(Setup(target=epoch, epoch=epoch, restore=restore))
        (begin,) = role_truth.versions(case, 1, begin)
        for role in case.plan.roles:
            held = role_truth.held_words(case.plan, role, begin.words)
            assert outcomes[role.name].results["state"] == role_truth.state_digest(held)
        restore = run.published(epoch, tmp_path / str(epoch))


@pytest.mark.parametrize("shape", ["star", "seven"])
def test_every_shard_holds_its_region_and_no_other(bench, tmp_path, shape):
    case = partitioned("adam", shape)
    run = bench(case)
    run.run(Setup(target=2))
    folder = run.published(2, tmp_path / "two")
    words = role_truth.versions(case, 2)[-1].words
    for role in case.plan.roles:
        expected, at = {}, 0
        for field in case.plan.system.state_fields:
            part = case.plan.published(field, role)
            if part.count:
                stride = f":{part.stride}" if part.stride > 1 else ""
                own = [words[at + i] for i in part.coordinates]
                end = part.coordinates[-1] + 1
                expected[f"{field.name}[{part.first}:{end}{stride}]"] = role_plans.words_bytes(tuple(own))
            at += field.size
        path = folder / f"2.{role.name}.safetensors"
        found = dict(deserialize(path.read_bytes())) if path.exists() else {}
        assert {name: bytes(tensor["data"]) for name, tensor in found.items()} == expected


# One line of a program changed: what the replica's protocol says of it.
READ = "    learner_contribute(replica_contribute(version), total);\n"
BROKEN_PROTOCOLS = {
    "data-parallel-replica-released": (READ, "    replica_release();\n" + READ),
    "data-parallel-replica-version": ("replica_contribute(version)", "replica_contribute(version + 1)"),
    "data-parallel-replica-retained": ("    replica_release();\n", "\n"),
}


@pytest.mark.parametrize("label", BROKEN_PROTOCOLS)
@pytest.mark.parametrize("target", [X86, ARM])
def test_a_replica_that_is_misused(bench, tmp_path, label, target):
    case = partitioned("momentum", "single")
    content = altered_content(tmp_path / "content", "native/rounds.c", *BROKEN_PROTOCOLS[label])
    run = bench(case)
    outcomes = run.run(Setup(target=2, content={"role0": content}, targets={"role0": target}))
    assert outcomes["role0"].label == label
    assert (run.committed(), run.progress("role0")) == ([], [])


def test_a_replica_that_is_live_at_a_publication(bench, tmp_path):
    content = altered_content(
        tmp_path / "content",
        "native/rounds.c",
        "            publish(binding, version);\n",
        "            replica_offer(version), publish(binding, version);\n",
    )
    run = bench(partitioned("momentum", "single"))
    outcomes = run.run(Setup(target=2, content={"role0": content}))
    assert outcomes["role0"].label == "data-parallel-replica-retained"
    assert run.committed() == []


def test_others_of_a_run_see_who_misused_a_replica_go(bench, tmp_path):
    case = partitioned("momentum", "seven")
    change = BROKEN_PROTOCOLS["data-parallel-replica-released"]
    content = altered_content(tmp_path / "content", "native/rounds.c", *change)
    run = bench(case)
    labels = {n: o.label for n, o in run.run(Setup(target=2, content={"role2": content})).items()}
    assert labels.pop("role2") == "data-parallel-replica-released"
    assert set(labels.values()) == {"peer-lost"}
    assert run.committed() == []


def test_released_memory_is_gone(bench, tmp_path):
    """Who keeps the address and reads through it is ended by the machine, not served a stale word."""
    content = altered_content(
        tmp_path / "content",
        "native/rounds.c",
        "    replica_release();\n",
        "    const word *kept = replica_contribute(version);\n"
        "    replica_release();\n"
        "    total[0] += *(const volatile word *)kept;\n",
    )
    run = bench(partitioned("momentum", "single"))
    outcome = run.run(Setup(target=2, content={"role0": content}))["role0"]
    assert outcome.code < 0
    assert (outcome.out, run.committed()) == ("", [])


GRADIENTS = re.compile(r"^#if GRADIENTS_PARTITIONED\n.*?^#else\n\n?(.*?)^#endif\n", re.MULTILINE | re.DOTALL)


def without_gradient_partition(folder):
    """The sources as if nobody had ever thought of it."""
    shutil.copytree(CONTENT / "roles", folder / "roles")
    found = 0
    for path in folder.glob("roles/native/*"):
        text = path.read_text()
        lines = [
            line for line in text.splitlines(keepends=True) if "define GRADIENTS_PARTITIONED" not in line
        ]
        known, count = GRADIENTS.subn(r"\1", "".join(lines))
        assert "GRADIENTS_PARTITIONED" not in known, path
        found += count
        path.write_text(known)
    assert found
    return folder


NOT_PARTED = [how for how in COMBINATIONS if how.gradients == "replicated"]


@pytest.mark.parametrize(
    ("ownership", "target"),
    each(7, product(NOT_PARTED, (X86, ARM))),
    ids=lambda value: shown(value) if isinstance(value, Ownership) else value,
)
def test_who_does_not_partition_gradients_pays_nothing_for_it(tmp_path, program_cache, ownership, target):
    content = without_gradient_partition(tmp_path / "content")
    plan = partitioned(shape="seven", ownership=ownership).plan
    for role in (plan.roles[0], plan.roles[2], plan.roles[6]):
        ours, theirs = (
            build_program(plan, role, Made(target), each, program_cache).data for each in (CONTENT, content)
        )
        assert ours == theirs
