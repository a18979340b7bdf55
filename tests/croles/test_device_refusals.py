"""What a device role refuses, by name and in one order: before an allocation, with no other card touched."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import role_cards
import role_plans
from role_bench import X86, Setup, altered_content
from role_cards import BOUND, LIBCUDA, NVML, OTHER, OWN, Machine
from test_refusals_alone import FLUSHING

from orchestrator.build.binding import DeviceBinding
from orchestrator.build.standin import Card

SOUND = Machine()
ELSEWHERE = "0000:99:00.0"
LIBC = "/lib/x86_64-linux-gnu/libm.so.6"


def many(*cards):
    """More cards than a machine has."""
    more = [replace(OTHER, minor=100 + at, bus=f"0000:{at + 2:02x}:00.0") for at in range(32)]
    return (*more, *cards)


# What is wrong, each with the label that says it; all that come after it are wrong as well.
STAGES = (
    ("rows", "device-inventory"),
    ("minor", "device-minor"),
    ("twice", "device-minor-twice"),
    ("library", "device-library"),
    ("mark", "device-simulated"),
    ("none", "device-absent"),
    ("bus", "device-minor"),
    ("uuid", "device-uuid"),
    ("product", "nvidia-plan-host"),
    ("driver", "device-driver"),
    ("busy", "device-busy"),
    ("memory", "device-memory"),
    ("lost", "device-lost"),
)


def staged(first: str) -> tuple[Machine, Callable[[Path], None]]:
    """A machine on which this is wrong, and all that comes after it."""
    names = [name for name, _ in STAGES]
    wrong = set(names[names.index(first) :])
    fault = next((each for each in ("busy", "memory", "lost@1") if each.partition("@")[0] in wrong), "none")
    own = replace(OWN, fault=fault)
    if "driver" in wrong:
        own = replace(own, driver="551.54.14")
    if "product" in wrong:
        own = replace(own, name="NVIDIA GeForce RTX 3070 Laptop GPU")
    if "uuid" in wrong:
        own = replace(own, uuid=OTHER.uuid)
    beside = replace(OTHER, driver=own.driver)
    proc = {"rows": many(own), "minor": (OTHER,), "twice": (replace(OTHER, minor=OWN.minor), own)}
    cards = () if "none" in wrong else (OTHER, replace(own, bus=ELSEWHERE) if "bus" in wrong else own)
    bound = replace(BOUND, has_established_driver=True)

    def spoil(work: Path) -> None:
        if "mark" in wrong:
            shutil.copy(LIBC, work / LIBCUDA)
        if "library" in wrong:
            (work / LIBCUDA).write_bytes(b"no library")

    return Machine(cards=cards, proc=proc.get(first, (beside, own)), bound=bound), spoil


def refused(run, machine: Machine = SOUND, spoil: Callable[[Path], None] = lambda _: None, **setup) -> str:
    """How the one role ends; nothing is left of it, and no card but its own was asked anything."""
    role_cards.place(run, Setup(target=2, **setup), machine=machine)
    work = run.work("alone")
    spoil(work)
    run.start()
    label = run.end("alone").label
    assert (run.committed(), run.progress("alone")) == ([], [])
    assert all(each.calls == 0 for minor, each in role_cards.asked(work).items() if minor != OWN.minor)
    return label


@pytest.mark.parametrize(("first", "label"), STAGES)
def test_what_is_wrong_is_said_in_one_order(bench, first: str, label: str) -> None:
    machine, spoil = staged(first)
    run = bench(role_plans.single())
    assert refused(run, machine, spoil) == label
    own = role_cards.asked(run.work("alone")).get(OWN.minor)
    assert own is None or first in ("memory", "lost") or own.bytes_allocated == 0


def test_a_profile_knows_its_drivers(bench) -> None:
    run = bench(role_plans.single())
    role_cards.place(run, Setup(target=1), machine=Machine(bound=replace(BOUND, has_established_driver=True)))
    run.start()
    assert run.end("alone").results["version"] == 1


def test_a_card_of_another_capability(bench) -> None:
    machine = Machine(cards=(OTHER, replace(OWN, cc="8.9")))
    assert refused(bench(role_plans.single()), machine) == "nvidia-plan-host"


INFORMATION = f"standin/proc/driver/nvidia/gpus/{OWN.bus}/information"
UNREADABLE = {
    "no minor": ("Device Minor:", "Device Major:"),
    "no number": ("Device Minor:\t 3", "Device Minor:\t N/A"),
    "more than a number": ("Device Minor:\t 3", "Device Minor:\t 3x"),
    "elsewhere": ("Bus Location:\t 0000:41", "Bus Location:\t 0000:42"),
    "no place": ("Bus Location:", "Bus:"),
    "longer than it can be": ("Model:", "Model:" + " " * 5000),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_card_whose_file_cannot_be_read(bench, what: str) -> None:
    def spoil(work: Path) -> None:
        text = (
            (work / INFORMATION).read_text().replace("Minor:  \t", "Minor:\t").replace("tion:  \t", "tion:\t")
        )
        before, after = UNREADABLE[what]
        assert text.count(before) == 1
        (work / INFORMATION).write_text(text.replace(before, after))

    assert refused(bench(role_plans.single()), spoil=spoil) == "device-inventory"


def test_an_inventory_that_is_there_and_cannot_be_looked_through(bench) -> None:
    """Only where there is none does the management library say what there is."""

    def spoil(work: Path) -> None:
        folder = work / "standin/proc/driver/nvidia/gpus"
        shutil.rmtree(folder)
        folder.write_bytes(b"")

    assert refused(bench(role_plans.single()), spoil=spoil) == "device-inventory"


def test_no_inventory_at_all(bench) -> None:
    def spoil(work: Path) -> None:
        (work / NVML).unlink()

    assert refused(bench(role_plans.single()), Machine(proc=()), spoil) == "device-inventory"


TWICE = (replace(OTHER, minor=OWN.minor), OWN)


@pytest.mark.parametrize(
    ("cards", "label"),
    [((OTHER,), "device-minor"), (TWICE, "device-minor-twice"), ((), "device-minor")],
    ids=["another", "two", "none"],
)
def test_a_container_without_the_kernels_files(bench, cards: tuple[Card, ...], label: str) -> None:
    """Who says it then is the management library, by the same rules."""
    assert refused(bench(role_plans.single()), Machine(cards=cards, proc=())) == label


def test_a_stand_in_is_no_card(bench) -> None:
    """Where the machine's own libraries should be, and lies in no work folder's place for it."""
    run = bench(role_plans.single())
    role_cards.place(run, Setup(), machine=Machine(bound=replace(BOUND, is_simulated=False)))
    run.start(env={"LD_LIBRARY_PATH": str(run.work("alone") / "standin")})
    assert run.end("alone").label == "device-simulated"
    assert role_cards.asked(run.work("alone")) == {}


ALTERED = {
    "device-kernel": ("native/learner_device.c", 'find("terms"', 'find("no_terms"'),
    "device-lease": (
        "native/learner_device.c",
        "device_allocate(buffer_words[i] *",
        "device_allocate(256 + buffer_words[i] *",
    ),
}


@pytest.mark.parametrize("label", ALTERED)
def test_what_a_program_must_not_ask_of_its_card(bench, tmp_path: Path, label: str) -> None:
    content = altered_content(tmp_path / "content", *ALTERED[label])
    assert refused(bench(role_plans.single()), content={"alone": content}) == label


@pytest.mark.parametrize("bound", [None, DeviceBinding(OWN.minor, None)], ids=["no card", "no stand-in"])
def test_bound_to_no_card_or_to_no_simulated_one(bench, bound: DeviceBinding | None) -> None:
    machine = Machine(bound=bound)
    assert refused(bench(role_plans.single()), machine) == (
        "binding" if bound is None else "device-inventory"
    )


def test_a_library_that_changes_how_the_host_rounds(bench, tmp_path: Path) -> None:
    """As one does that was linked for fast mathematics: the host's sums would be others."""
    check = "    if (!machine_float_is_plain())"
    changing = f"{FLUSHING[X86]}\n{check}"
    content = altered_content(tmp_path / "content", "native/learner_device.c", check, changing)
    assert refused(bench(role_plans.single()), content={"alone": content}) == "float-environment"


def test_a_card_that_is_lost_during_a_run(bench) -> None:
    run = bench(role_plans.star())
    role_cards.place(
        run, Setup(target=5), machine=Machine(cards=(OTHER, replace(OWN, fault="lost@9"))), names=("worker",)
    )
    run.start()
    assert run.labels() == {"root": "peer-lost", "idle": "peer-lost", "worker": "device-lost"}
    assert run.committed() == []
