"""What is seen on machines and has no capture here: errors, other tools and formats, retyped."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path, PurePosixPath

import pytest
from captures import Said, inventory_of, machine, raw, said

from orchestrator.probe import Wanted, checks, commands, read
from orchestrator.probe.machine import read_information
from orchestrator.probe.nvml import read_nvml
from orchestrator.probe.recognise import recognise
from orchestrator.probe.smi_csv import read_apps, read_query
from orchestrator.probe.smi_tables import read_list, read_pmon, read_table

UUID = "GPU-01234567-89ab-cdef-0123-456789abcdef"


SILENT = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n\n"
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\n"
HANDLE = "Unable to determine the device handle for GPU"
ABSENT, INVENTORY, DRIVER = "device-absent", "device-inventory", "device-driver"


@pytest.mark.parametrize(
    ("text", "code", "label", "words"),
    [
        ("No devices were found\n", 6, ABSENT, "there is no card"),
        (SILENT, 9, INVENTORY, "the driver does not answer"),
        (f"{SILENT}Failed to properly shut down NVML: Driver Not Loaded\n", 9, INVENTORY, "does not answer"),
        (f"{MISMATCH}NVML library version: 570.1\n", 18, DRIVER, "driver and library differ"),
        (MISMATCH, 18, DRIVER, "restart the pod"),
        ("Failed to initialize NVML: Unknown Error\n", 255, INVENTORY, "recreate the pod"),
        (f"{HANDLE} 0000:0B:00.0: Unknown Error\n", 255, INVENTORY, "lost"),
        (f"{HANDLE}0000:07:00.0: Unknown Error\n", 255, INVENTORY, "lost"),
        (f"{HANDLE} 0000:02:00.0: GPU is lost.  Reboot\n", 15, INVENTORY, "reboot the host"),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n", 12, INVENTORY, "libnvidia-ml"),
        ("Failed to initialize NVML: GPU access blocked by the operating system\n", 255, INVENTORY, "kept"),
        ("Failed to initialize NVML: Insufficient Permissions\n", 4, INVENTORY, "this user"),
        ("Failed to initialize NVML: Driver Not Loaded\n", 9, INVENTORY, "load the driver"),
        ("bash: line 1: nvidia-smi: command not found\n", 127, ABSENT, "install the NVIDIA driver"),
        ("GPU 00000000:01:00.0: GPU requires reset\n", 255, "device-reset", "a card is lost"),
        ("", 4, INVENTORY, "no permission"),
        ("something new\n", 77, INVENTORY, "something new"),
        ("", 0, INVENTORY, "no whole document"),
    ],
)
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_errors_have_their_label_and_their_way_out(text, code, label, words, stream):
    answer = Said(code, text.encode()) if stream == "stdout" else Said(code, b"", text.encode())
    inventory = read({"xml": answer})
    assert [str(fault.label) for fault in inventory.faults] == [label]
    assert words in str(inventory.faults[0])
    assert "(got " in inventory.faults[0].message
    assert inventory.faults[0].message.endswith(")")
    assert not inventory.cards
    (row, *_) = checks(inventory, Wanted(minor=0))
    assert (row.name, row.verdict, str(row.label)) == ("inventory", "fail", label)


def test_an_error_is_recognised_and_its_library_is_kept():
    text = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124\n"
    assert recognise(text) == "xml"
    assert read({"xml": said(text, 255)}).notes == ("NVML library version: 570.124",)


def test_a_hung_tool_is_said_to_hang():
    (fault,) = read({"xml": Said(None, b"<nvidia_smi_log>")}).faults
    assert str(fault.label) == "device-inventory"
    assert "hung" in fault.message
    assert "60 s" in fault.message


def test_no_tool_is_no_card():
    (fault,) = read({"xml": Said(127, b"", b"there is no nvidia-smi\n")}).faults
    assert str(fault.label) == "device-absent"


def test_a_warning_does_not_make_data_wrong():
    inventory = read({"xml": Said(14, b"WARNING: infoROM is corrupted\n" + raw("x31_rtx3060_570.xml"))})
    assert not inventory.faults
    assert len(inventory.cards) == 1
    assert "exit code 14" in " ".join(inventory.notes)
    inventory = read({"xml": Said(15, raw("x31_rtx3060_570.xml"))})
    assert "fallen off the bus" in str(inventory.faults[0])


def test_a_banner_is_not_data():
    banner = b"==========\n== CUDA ==\n==========\n\nGPU 00000000:99:00.0\n    Minor Number : 9\n"
    for name in ("x31_rtx3060_570.xml", "r01_rtx3070_550.txt"):
        (card,) = inventory_of(name).cards
        kind = "xml" if name.endswith("xml") else "text"
        assert read({kind: Said(0, banner + raw(name) + b"\nbye\n")}).cards == (card,)


def test_memory_that_is_not_told_is_unknown_and_never_zero():
    text = "index, name, memory.total [MiB], memory.free [MiB]\n0, NVIDIA GB10, [N/A], [N/A]\n"
    inventory = read({"query": said(text), "machine": machine()})
    (card,) = inventory.cards
    assert (card.product.known, card.total_mib.state, card.total_mib.known) == (
        "NVIDIA GB10",
        "unsupported",
        None,
    )
    assert any("MemTotal" in note for note in inventory.notes)


def test_columns_without_a_header_are_those_that_were_asked_for():
    columns = ("fan.speed", "memory.total", "memory.used", "pstate", "name", "uuid", "index")
    reading = read_query("[N/A], 32510, 0, P0, Tesla V100-SXM2-32GB, GPU-124-1241-24, 3\n", columns)
    (card,) = reading.cards
    assert (card.index, card.product.known) == (3, "Tesla V100-SXM2-32GB")
    assert (card.total_mib.known, card.used_mib.known) == (32510, 0)
    assert card.uuid.state == "broken"
    assert (
        read_query("0, Orin (nvgpu), [N/A]\n", ("index", "name", "memory.total")).cards[0].total_mib.known
        is None
    )


def test_a_process_under_no_known_card_is_somebody():
    columns = ("gpu_uuid", "pid", "process_name", "used_memory")
    apps = read_apps("GPU-..., 114687, /usr/local/bin/python, 19135\n", columns)
    (process,) = apps.elsewhere
    assert (process.pid.known, process.used_mib.known, process.is_compute) == (114687, 19135, True)
    inventory = read(
        {"query": said(f"pci.bus_id, uuid, name\n0000000F:01:00.0, {UUID}, NVIDIA GB10\n")}, (apps,)
    )
    rows = {row.name: row for row in checks(inventory, Wanted(uuid=UUID))}
    assert (rows["compute-processes"].verdict, str(rows["compute-processes"].label)) == (
        "fail",
        "device-busy",
    )


def test_a_process_name_may_hold_commas():
    text = (
        "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
        f"{UUID}, 7, python train.py --sizes 1, 2, 16 MiB\n"
    )
    ((process,),) = (card.processes or () for card in read_apps(text).cards)
    assert (process.name, process.used_mib.known) == ("python train.py --sizes 1, 2", 16)


def test_a_column_that_a_driver_does_not_have_is_no_fault():
    refused = said('Field "compute_cap" is not a valid field to query.\n\n', 2)
    inventory = read({"xml": Said(0, raw("x29_p4000_440.xml")), "capability": refused})
    assert not inventory.faults
    assert inventory.cards[0].capability.state == "untold"
    rows = {row.name: row for row in checks(inventory, Wanted(capability="6.1", minor=0))}
    assert rows["compute-capability"].verdict == "not-applicable"


def test_tables_for_people():
    cards = read_list(
        f"GPU 0: NVIDIA H200 (UUID: {UUID})\n"
        "  MIG 1g.18gb     Device  0: (UUID: MIG-00000003-0000-0000-0000-1)\n"
    ).cards
    assert [(card.product.known, card.uuid.known, card.mig_devices, card.mig.known) for card in cards] == [
        ("NVIDIA H200", UUID, 1, "Enabled")
    ]
    table = (
        "| NVIDIA-SMI 580.1.2   Driver Version: 580.1.2   CUDA Version: 13.0     |\n"
        "|   0  NVIDIA GB10            On  |   0000000F:01:00.0 Off |                  N/A |\n"
        "| N/A   36C    P8   3W /  N/A  | Not Supported          |      0%      Default |\n"
        "|   1  NVIDIA GeForce RTX ...  Off  | 00000000:01:00.0  On |                  N/A |\n"
        "| N/A   36C    P8   3W /  10W  |   3MiB /  8192MiB |      2%      Default |\n"
    )
    reading = read_table(table)
    assert reading.driver.known == "580.1.2"
    first, second = reading.cards
    assert (first.product.known, first.bus.known) == ("NVIDIA GB10", "0000000F:01:00.0")
    assert first.total_mib.state == "unsupported"
    assert second.product.known is None, "the table has cut the name"
    assert (second.used_mib.known, second.total_mib.known, second.utilization.known) == (3, 8192, 2)


def test_the_table_lists_processes_and_shows_errors():
    table = (
        "| NVIDIA-SMI 525.1.2   Driver Version: 525.1.2   CUDA Version: 12.0     |\n"
        "|   0  NVIDIA TITAN V      Off  | 00000000:01:00.0 Off |                  N/A |\n"
        "|ERR!  ERR! ERR!    ERR! / ERR! |    301MiB / 12288MiB |     93%      Default |\n"
        "|   1  Orin (nvgpu)        N/A  | N/A              N/A |                  N/A |\n"
        "| N/A   N/A  N/A     N/A /  N/A | Not Supported        |     N/A          N/A |\n"
        "|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |\n"
        "|    0   N/A  N/A      1234      G   /usr/lib/xorg/Xorg                101MiB |\n"
        "|    0   N/A  N/A      4711    C+G   python train.py                   200MiB |\n"
    )
    first, second = read_table(table).cards
    assert [(str(each.pid), each.kind, each.name) for each in first.processes or ()] == [
        ("1234", "G", "/usr/lib/xorg/Xorg"),
        ("4711", "C+G", "python train.py"),
    ]
    assert first.broken
    assert (second.product.known, second.bus.state, second.processes) == ("Orin (nvgpu)", "unsupported", ())
    assert read_table(table[: table.index("|  GPU   GI")]).cards[0].processes is None


def test_data_with_an_error_beside_it_is_shown_and_refused():
    inventory = read(
        {"text": Said(0, raw("r01_rtx3070_550.txt") + f"{HANDLE} 0000:0B:00.0: Unknown\n".encode())}
    )
    assert [card.minor.known for card in inventory.cards] == [0]
    assert [str(fault.label) for fault in inventory.faults] == [INVENTORY]


@pytest.mark.parametrize(
    "text", ["AMD-SMI 24.6.3 | version\n", "ROCk module is loaded\n", "= ROCM-SMI version: 5 =\n"]
)
def test_another_vendors_tool_is_no_nvidia_card(text):
    assert recognise(text) == "rocm"
    assert [str(fault.label) for fault in read({"rocm": said(text)}).faults] == [ABSENT]


def test_a_table_without_blanks_between_its_cells():
    reading = read_query(f"index,name,uuid,memory.total [MiB]\n0,Tesla T4,{UUID},15360 MiB\n")
    assert [(card.product.known, card.total_mib.known) for card in reading.cards] == [("Tesla T4", 15360)]


def test_pmon_tells_of_processes_only():
    text = (
        "# gpu         pid   type     sm    mem    command \n"
        "# Idx           #    C/G      %      %    name \n"
        "    0          -     -      -      -    -              \n"
        "    1       4711     C     12      3    python x\n"
    )
    assert recognise(text) == "pmon"
    (process,) = read_pmon(text).elsewhere
    assert (process.pid.known, process.kind, process.name) == (4711, "C", "python x")
    assert [str(fault.label) for fault in read({"pmon": said(text)}).faults] == ["device-inventory"]


INFORMATION = """\
Model: \t\t NVIDIA H100 80GB HBM3
IRQ:   \t\t 10
GPU UUID: \t {uuid}
Video BIOS: \t 96.00.99.00.01
Bus Type: \t PCIe
Bus Location: \t {bus}
Device Minor: \t {minor}
GPU Excluded:\t No
"""


def test_information_files_of_four_and_eight_digits():
    text = INFORMATION.format(uuid=UUID, bus="0000:62:00.0", minor=5)
    for bus in ("0000:62:00.0", "00000000:62:00.0"):
        inventory = read({"machine": machine(text, bus=bus)})
        assert [(card.minor.known, card.bus.known) for card in inventory.cards] == [(5, "00000000:62:00.0")]
        assert not inventory.faults
        assert inventory.assurance == "proc"
    two = (
        text
        + "\n"
        + INFORMATION.format(uuid=UUID, bus="0000:63:00.0", minor=6).replace("GPU Excluded", "Blacklisted")
    )
    assert [card.minor.known for card in read_information(two).cards] == [5, 6]
    excluded = read_information(text.replace("No\n", "Yes\n")).cards[0]
    assert excluded.broken
    unborn = read_information(text.replace(UUID, "GPU-????????-????-????-????-????????????")).cards[0]
    assert unborn.uuid.state == "unsupported"


def test_an_information_file_lies_where_it_says():
    text = INFORMATION.format(uuid=UUID, bus="0000:62:00.0", minor=5)
    inventory = read({"machine": machine(text, bus="0000:63:00.0")})
    assert inventory.cards[0].bus.state == "broken"
    assert [str(fault.label) for fault in inventory.faults] == [INVENTORY]
    placeless = read({"information": said(text.replace("Bus Location", "Bus"))})
    assert [str(fault.label) for fault in placeless.faults] == [INVENTORY]


def test_whoever_has_a_device_file_open_is_found(tmp_path):
    (tmp_path / "dev").mkdir()
    asked = {each.name: each for each in commands(PurePosixPath(tmp_path))}["holders"]
    with (tmp_path / "dev" / "nvidia5").open("w"):
        done = subprocess.run(asked.argv, capture_output=True, check=False)
    said_of = {"holders": Said(done.returncode, done.stdout)}
    assert read(said_of).holders == ((5, os.getpid()),)
    busy = raw("r01_rtx3070_550.txt").replace(b"Used                              : 0 MiB", b"Used : 900 MiB")
    listed = said("/proc/4711/fd:\nlrwx------ 1 a a 64 x 5 -> /dev/nvidia0\n== end\n")
    inventory = read({"text": Said(0, busy), "holders": listed})
    rows = {row.name: row for row in checks(inventory, Wanted(minor=0))}
    assert (rows["memory-in-use"].verdict, "open in 4711" in rows["memory-in-use"].got) == ("fail", True)
    assert read({"holders": said("/proc/4711/fd:\n")}).notes


def test_documents_of_old_drivers():
    text = """<nvidia_smi_log><driver_version>319.37</driver_version><attached_gpus>1</attached_gpus>
    <gpu id="0000:05:00.0"><product_name>Tesla K20m</product_name><minor_number>1</minor_number>
    <uuid>{uuid}</uuid><pci><pci_bus_id>0000:05:00.0</pci_bus_id></pci>
    <memory_usage><total>4799 MB</total><used>12 MB</used></memory_usage>
    <compute_processes>{processes}</compute_processes></gpu></nvidia_smi_log>
    """
    told = "<pid>7</pid><process_name>a</process_name><used_memory>9 MB</used_memory>"
    process = f"<process_info>{told}</process_info>"
    for listed, count in (("", 0), (process, 1)):
        inventory = read({"xml": said(text.format(uuid=UUID, processes=listed))})
        assert not inventory.faults
        (card,) = inventory.cards
        assert (card.total_mib.known, card.used_mib.known, card.minor.known) == (4799, 12, 1)
        assert [each.is_compute for each in card.processes or ()] == [True] * count


def test_the_kernel_tells_its_release():
    version = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build  (x)"
    assert read({"machine": machine(version=version)}).driver.known == "570.124.06"


@pytest.mark.skipif(Path("/proc/driver/nvidia/version").exists(), reason="this machine has the library")
def test_a_machine_without_nvml_says_so():
    reading = read_nvml()
    assert (reading.cards, reading.faults) == ((), ())
    assert reading.notes[0].startswith("NVML was not asked: ")
