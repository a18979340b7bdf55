"""What forbids a card is refused by its own label and no other; what cannot be decided is unknown."""

from __future__ import annotations

import re

import pytest
from captures import Said, inventory_of, machine, raw, said

from orchestrator.probe import Wanted, checks, read, state_rows

UUID = "GPU-64e0abd0-5f45-1794-b245-8d1dcbd47ed1"
NAME = "NVIDIA GeForce RTX 3070"
WANTED = Wanted(NAME, "8.6", UUID, 0, ("550.54", "580.126.20"), needs_driver=True)
INFORMATION = f"Model: \t {NAME}\nGPU UUID: \t {UUID}\nBus Location: \t 0000:08:00.0\nDevice Minor: \t 0\n"
TEXT = re.sub(" +: ", " : ", raw("r01_rtx3070_550.txt").decode())
SECOND = TEXT[TEXT.index("GPU 00000000:08:00.0") :]


def asked(*changes, proc=None, apps="", text=TEXT):
    """A machine with one RTX 3070, some of whose words are others."""
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    answers = {
        "machine": machine(**{"information": INFORMATION, **(proc or {})}),
        "text": said(text),
        "capability": said("pci.bus_id, compute_cap\n00000000:08:00.0, 8.6\n"),
        "apps": said(f"gpu_bus_id, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n{apps}"),
    }
    return read(answers)


def rows_of(inventory, wanted=WANTED):
    return {row.name: row for row in checks(inventory, wanted)}


def failing(inventory, wanted=WANTED):
    return {(row.name, str(row.label)) for row in checks(inventory, wanted) if row.verdict == "fail"}


def unknown(inventory, wanted=WANTED):
    return {row.name for row in checks(inventory, wanted) if row.verdict == "unknown"}


def two_cards(**second):
    """A second card like the first, but for what is said."""
    block = SECOND.replace("08:00.0", "09:00.0").replace("0x08", "0x09")
    for name, after in second.items():
        block = block.replace(UUID if name == "uuid" else "Minor Number : 0", after)
    return TEXT.replace("Attached GPUs : 1", "Attached GPUs : 2") + block


OTHER = UUID.replace("GPU-6", "GPU-7")
MINOR_1 = "Minor Number : 1"


def test_a_good_card_passes_in_every_row():
    rows = rows_of(asked())
    assert {row.verdict for row in rows.values()} == {"pass"}
    assert asked().assurance == "proc"
    assert not any(row.warning for row in rows.values())


@pytest.mark.parametrize(
    ("changes", "name", "label"),
    [
        (
            [("Used : 0 MiB", "Used : 116 MiB")],
            "memory-in-use",
            "device-busy",
        ),
        (
            [("Gpu : 0 %", "Gpu : 93 %")],
            "utilisation",
            "device-busy",
        ),
        (
            [("Reset Required : No", "Reset Required : Yes")],
            "no-reset-pending",
            "device-reset",
        ),
        (
            [("Drain and Reset Recommended : N/A", "Drain and Reset Recommended : Yes")],
            "no-reset-pending",
            "device-reset",
        ),
        (
            [("GPU Reset Status", "GPU Recovery Action : Reset\n    GPU Reset Status")],
            "no-reset-pending",
            "device-reset",
        ),
        (
            [
                (
                    "Fan Speed : 30 %",
                    "Fan Speed : ERR!",
                )
            ],
            "no-errors",
            "device-reset",
        ),
        (
            [
                (
                    "Performance State : P0",
                    "Performance State : [GPU requires reset]",
                )
            ],
            "no-errors",
            "device-reset",
        ),
        (
            [
                (
                    "        Current : N/A\n        Pending : N/A\n    Accounting",
                    "        Current : Enabled\n        Pending : N/A\n    Accounting",
                )
            ],
            "mig-off",
            "device-mig",
        ),
    ],
)
def test_the_state_of_a_card(changes, name, label):
    assert failing(asked(*changes)) == {(name, label)}


def test_processes():
    line = f"00000000:08:00.0, {UUID}, 4711, python, 160 MiB\n"
    assert failing(asked(apps=line)) == {("compute-processes", "device-busy")}
    assert "python (pid 4711" in rows_of(asked(apps=line))["compute-processes"].got
    none = asked(("    Processes : None\n", ""))
    assert failing(none) == set(), "the list of compute processes is there, and empty"
    alone = read({"text": said(TEXT.replace("    Processes : None\n", ""))})
    assert "compute-processes" in unknown(alone)
    assert "compute-processes" in unknown(read({"text": said(TEXT.replace("Processes : None", "Processes"))}))


def test_which_card_it_is():
    assert failing(asked(), Wanted(NAME, minor=5)) == {("minor", "device-minor")}
    assert failing(asked(), Wanted(NAME, minor=0, uuid=OTHER)) == {("uuid", "device-uuid")}
    assert failing(asked(), Wanted(NAME, uuid=OTHER)) == {("uuid", "device-uuid")}
    assert failing(asked(), Wanted("NVIDIA GeForce RTX 3090", minor=0)) == {("product", "nvidia-plan-host")}
    assert failing(asked(), Wanted(NAME, "8.9", minor=0)) == {("compute-capability", "nvidia-plan-host")}
    no_minor = asked(
        ("Minor Number : 0", "Minor Number : N/A"),
        proc={"information": ""},
    )
    assert failing(no_minor, Wanted(NAME, uuid=UUID)) == {("minor", "device-minor")}
    assert failing(no_minor) == {("minor", "device-minor")}


def test_cards_that_are_confused():
    twice = asked(text=two_cards(uuid=OTHER), proc={"information": ""})
    assert failing(twice) == {("minor", "device-minor-twice")}
    same = asked(text=two_cards(minor=MINOR_1), proc={"information": ""})
    assert failing(same) == {("uuids-differ", "device-uuid")}
    good = asked(text=two_cards(uuid=OTHER, minor=MINOR_1), proc={"information": ""})
    assert failing(good) == set()


def test_the_driver():
    assert failing(asked(("550.54.14", "560.35.03"))) == {("driver-release", "device-driver")}
    lenient = Wanted(NAME, minor=0, drivers=("550.54",))
    row = rows_of(asked(("550.54.14", "560.35.03")), lenient)["driver-release"]
    assert (row.verdict, bool(row.warning)) == ("pass", True)
    assert rows_of(asked(("550.54.14", "550.5.14")))["driver-release"].verdict == "fail", "whole parts count"
    changed = asked(proc={"version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  x"})
    assert failing(changed) == {("inventory", "device-driver")}


def test_cards_that_the_kernel_does_not_have():
    other = INFORMATION.replace("08:00.0", "09:00.0").replace(UUID, OTHER).replace("\t 0\n", "\t 4\n")
    elsewhere = asked(proc={"information": other, "bus": "0000:09:00.0"})
    assert failing(elsewhere) == {("kernel-lists-it", "device-forged")}
    assert [card.minor.known for card in elsewhere.cards] == [0]
    assert "00000000:09:00.0" in " ".join(elsewhere.notes)
    liar = asked(proc={"information": INFORMATION.replace(UUID, OTHER)})
    assert ("inventory", "device-forged") in failing(liar)
    minor = asked(proc={"information": INFORMATION.replace("\t 0\n", "\t 3\n")})
    assert failing(minor) == {("inventory", "device-forged"), ("minor", "device-minor")}
    hidden = rows_of(asked(proc={"information": ""}))["kernel-lists-it"]
    assert hidden.verdict == "not-applicable"
    assert asked(proc={"information": ""}).assurance == "nvidia-smi"
    eight = asked(text=two_cards(minor=MINOR_1).replace("09:00.0", "08:00.0"))
    assert ("inventory", "device-forged") in failing(eight)


@pytest.mark.parametrize(
    ("preload", "verdict"),
    [
        ("", "pass"),
        ("/usr/lib/libjemalloc.so.2", "pass"),
        ("# nothing", "pass"),
        ("/usr/local/vgpu/libvgpu.so", "fail"),
        ("/opt/x/libnvidia-ml-shim.so", "fail"),
        ("/lib/libsnoopy.so", "unknown"),
    ],
)
def test_libraries_that_are_loaded_first(preload, verdict):
    row = rows_of(asked(proc={"preload": preload}))["preloaded-libraries"]
    assert (row.verdict, str(row.label)) == (verdict, "device-forged")


def test_what_is_not_told_is_unknown():
    gone = asked(("Used : 0 MiB", "Used : N/A"))
    assert unknown(gone) == {"memory-in-use"}
    idle = asked(("Gpu : 0 %", "Gpu : N/A"))
    assert unknown(idle) == {"utilisation"}
    hung = {"machine": machine(INFORMATION), "text": Said(None, b"")}
    assert rows_of(read(hung))["inventory"].verdict == "unknown"
    assert (
        rows_of(asked(("GPU Reset Status", "GPU Other Status")))["no-reset-pending"].verdict
        == "not-applicable"
    )


def test_an_error_in_place_of_a_value_is_an_error_of_the_card():
    stuck = asked(("Used : 0 MiB", "Used : [Unknown Error]"), ("Gpu : 0 %", "Gpu : ERR!"))
    assert failing(stuck) == {("no-errors", "device-reset")}
    assert unknown(stuck) == {"memory-in-use", "utilisation"}


def test_used_memory_is_held_against_all_that_processes_take():
    inventory = inventory_of("q09_titanv_560.txt")
    rows = {row.name: row for row in state_rows(inventory, inventory.cards[0])}
    assert rows["memory-in-use"].verdict == "pass"
    assert "290 MiB in use, 286" in rows["memory-in-use"].got
    assert rows["graphics-processes"].warning


def test_memory_that_waits_for_a_reset_is_a_warning():
    inventory = inventory_of("q08_a10_535.txt")
    rows = {row.name: row for row in state_rows(inventory, inventory.cards[0])}
    assert (rows["no-reset-pending"].verdict, rows["no-reset-pending"].warning) == (
        "pass",
        "row remapping: Yes",
    )
