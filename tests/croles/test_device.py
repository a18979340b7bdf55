"""Device roles on the stand-in: the reference's bits, one card touched, every launch and byte as counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import role_cards
import role_plans
from covering import some
from role_bench import Bench, Setup, altered_content
from role_cards import BOUND, OTHER, OWN, Machine
from role_narrow import narrow
from role_plans import Case
from test_kinds import shipped
from test_partitions import partitioned

from orchestrator.build.compile import FLAGS
from orchestrator.build.counted import Counted
from orchestrator.plan.topology import star

PLAIN = Machine()
SHADOWED = Machine(bound=replace(BOUND, is_shadowed=True))
CASES: dict[str, Callable[[Path], Case]] = {
    "pair": lambda _: role_plans.pair(),
    "star": lambda _: role_plans.star(),
    "partitioned": lambda _: partitioned("adam"),
    "narrow": lambda folder: narrow(folder, "adam", star(2)),
    "columns": lambda _: shipped("coordinates", star(2)),
    "alone": lambda _: shipped("correlations", star(4)),
}


def check(
    run: Bench, updates: int, start: int = 0, names: Sequence[str] = (), machine: Machine = PLAIN
) -> None:
    """Bits by the reference, counts by the plan and by the stand-in, no other card touched."""
    case = run.case
    ends = run.ends()
    lines = {role: every[start:] for role, every in role_cards.expected(case, updates).items()}
    assert {role: run.progress(role) for role in ends} == lines, ends
    for role in (each for each in case.plan.roles if not names or each.name in names):
        told = ends[role.name].results["device"]
        assert (told["uuid"], told["minor"], told["product"]) == (OWN.uuid, OWN.minor, OWN.name)
        assert told["inventory"] in ("proc", "nvml")
        assert (told["simulated"], told["shadowed"]) == (True, machine.bound.is_shadowed)
        counted = role_cards.account(case, role, updates - start)
        assert role_cards.told(ends[role.name]) == counted
        calls = role_cards.asked(run.work(role.name))
        own = calls[OWN.minor]
        assert counted == Counted(own.launches, own.to_device, own.from_device, own.bytes_allocated)
        assert (own.races, own.error) == (0, 0)
        assert calls[OTHER.minor].calls == 0


@pytest.mark.parametrize("machine", [PLAIN, SHADOWED], ids=["plain", "shadowed"])
@pytest.mark.parametrize("name", CASES)
def test_a_card_yields_what_the_host_yields(bench, tmp_path: Path, name: str, machine: Machine) -> None:
    run = bench(CASES[name](tmp_path))
    role_cards.place(run, Setup(target=3), machine=machine)
    run.start()
    check(run, 3, machine=machine)


@pytest.mark.parametrize("name", ["partitioned", "columns"])
def test_nothing_that_it_does_is_undefined(bench, monkeypatch, tmp_path: Path, name: str) -> None:
    traps = ("-fsanitize=undefined", "-fsanitize-trap=undefined")
    monkeypatch.setattr("orchestrator.build.compile.FLAGS", (*FLAGS, *traps))
    case = partitioned("adam", "pair") if name == "partitioned" else CASES[name](tmp_path)
    run = bench(case)
    role_cards.place(run, Setup(target=2), machine=SHADOWED)
    run.start()
    check(run, 2, machine=SHADOWED)


def test_hosts_and_cards_go_on_from_each_other(bench, tmp_path: Path) -> None:
    case = partitioned("adam")
    names = [role.name for role in case.plan.roles]
    host, mixed, cards = bench(case), bench(case), bench(case)
    host.run(Setup(target=1))
    role_cards.place(
        mixed, Setup(target=2, epoch=2, restore=host.published(1, tmp_path / "one")), names[1::2]
    )
    mixed.start()
    check(mixed, 2, start=1, names=names[1::2])
    role_cards.place(cards, Setup(target=3, epoch=3, restore=mixed.published(2, tmp_path / "two")))
    cards.start()
    check(cards, 3, start=2)


@pytest.mark.parametrize("name", ["partitioned", "columns"])
def test_an_evaluation_captures_what_it_restored(bench, tmp_path: Path, name: str) -> None:
    case = CASES[name](tmp_path)
    trained, run = bench(case), bench(case)
    states = {role: end.results["state"] for role, end in trained.run(Setup(target=2)).items()}
    setup = Setup(mode="evaluate", target=0, epoch=2, restore=trained.published(2, tmp_path / "set"))
    role_cards.place(run, setup, machine=SHADOWED)
    run.start()
    ends = run.ends()
    assert {role: end.results["state"] for role, end in ends.items()} == states
    for role in case.plan.roles:
        counted = role_cards.account(case, role, 0, "evaluate")
        assert role_cards.told(ends[role.name]) == counted


LEARNER = "native/learner_device.c"
UPLOAD = "    write(PARAMETERS, parameters, REPLICA_WORDS);\n"
SPOILING = "    if (is_shadowed)\n        spoil_copies(parameters);\n"
STALE = "    write(STATE, learner_field(0), HELD_WORDS);\n"
UPDATING = "    for (uint32_t i = 0; i < UPDATE_KERNELS; i++)\n        launch(kernels.update[i]"
READING = {
    "a pass": (SPOILING, f"{SPOILING}{STALE}"),
    "an update": (UPDATING, f"{STALE}{UPDATING}"),
    "a replica": (UPLOAD + SPOILING, SPOILING + UPLOAD),
}


@pytest.mark.parametrize("machine", [PLAIN, SHADOWED], ids=["plain", "shadowed"])
@pytest.mark.parametrize("where", READING)
def test_the_shadow_shows_a_program_that_reads_its_copies(
    bench, tmp_path: Path, where: str, machine: Machine
) -> None:
    """Its bits are right until the copies are not. A replica that is read late has the right counts too."""
    content = altered_content(tmp_path / "content", LEARNER, *READING[where])
    case = partitioned("adam", "pair") if where == "a replica" else role_plans.pair()
    name = case.plan.roles[-1].name
    run = bench(case)
    role_cards.place(run, Setup(target=3, content={name: content}), machine=machine)
    run.start()
    run.ends()
    is_right = run.progress(name) == role_cards.expected(case, 3)[name]
    assert is_right != machine.bound.is_shadowed


ONCE = "    launch(kernels.sums, SUMS_THREADS);\n"
CAPTURE = "    learner_capture();\n    learner_check_state"
OTHERWISE = {
    "a kernel twice": (LEARNER, ONCE, ONCE * 2),
    "a capture twice": (LEARNER, CAPTURE, f"    learner_capture();\n{CAPTURE}"),
    "samples again": (
        LEARNER,
        UPLOAD,
        f"{UPLOAD}    write(SAMPLES, learner_samples(), buffer_words[SAMPLES]);\n",
    ),
    "a launch untold": ("runtime/device.c", "device.launches++", "device.launches += device.launches < 3"),
}


@pytest.mark.parametrize("what", some(OTHERWISE, lambda what: "again" not in what and "capture" not in what))
def test_counts_show_a_program_that_asks_something_else_of_its_card(bench, tmp_path: Path, what: str) -> None:
    content = altered_content(tmp_path / "content", *OTHERWISE[what])
    run = bench(role_plans.single())
    role_cards.place(run, Setup(target=3, content={"alone": content}))
    run.start()
    told = role_cards.told(run.end("alone"))
    assert run.progress("alone") == role_cards.expected(run.case, 3)["alone"]
    assert told != role_cards.account(run.case, run.case.plan.roles[0], 3)


def test_words_that_the_host_has_looked_at_are_no_other_rounding(bench) -> None:
    """A denormal is widened when samples are checked; the processor notes it beside how it rounds."""
    system = replace(role_plans.SCALAR, numerics="binary32-ordered")
    words = (2.0**-149, *role_plans.PAIR_WORDS[1:])
    run = bench(role_plans.case(system, words, role_plans.roles(("alone", 3))))
    role_cards.place(run, Setup(target=2))
    run.start()
    check(run, 2)


def test_a_container_that_shows_no_files_of_the_kernels(bench) -> None:
    run = bench(role_plans.single())
    role_cards.place(run, Setup(target=1), machine=Machine(proc=()))
    run.start()
    assert run.end("alone").results["device"]["inventory"] == "nvml"
    check(run, 1)


def test_a_card_bound_by_its_minor_alone(bench) -> None:
    run = bench(role_plans.single())
    role_cards.place(run, Setup(target=1), machine=Machine(bound=replace(BOUND, uuid=None)))
    run.start()
    check(run, 1)
