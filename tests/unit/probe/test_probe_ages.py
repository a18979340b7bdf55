"""What drivers write that are younger, or older, than any capture here; and cards that are lent in parts."""

from __future__ import annotations

import pytest
from captures import Said, raw, said

from orchestrator.probe import Inventory, Wanted, checks, read
from orchestrator.probe.profile import cannot_tell
from orchestrator.probe.recognise import recognise
from orchestrator.probe.smi_tables import read_table

UUID = "GPU-01234567-89ab-cdef-0123-456789abcdef"
GONE = "[Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]"
LOG = """\
==============NVSMI LOG==============

Timestamp                                    : Tue Sep  1 20:47:29 2026
{head}
Attached GPUs                                : 1
GPU 00000000:83:00.0
    Product Name                             : NVIDIA H200
    MIG Mode
        Current                              : Disabled
    GPU UUID                                 : {uuid}
    Minor Number                             : 3
    GPU Virtualization Mode
        Virtualization Mode                  : {mode}
        Host VGPU Mode                       : N/A
    GPU Recovery Action                      : None
    PCI
        Bus Id                               : 00000000:83:00.0
    FB Memory Usage
        Total                                : 143771 MiB
        Reserved                             : 623 MiB
        Used                                 : 4 MiB
    Utilization
        GPU                                  : 0 %
    ECC Errors
        Channel Repair Pending               : {channel}
        Unrepairable Memory                  : {memory}
    Remapped Rows
        Pending                              : No
        Remapping Failure Occurred           : {remap}
    GPU Power Readings
        Average Power Draw                   : 130.28 W
        Instantaneous Power Draw             : {draw}
{processes}
"""
PLAIN = {
    "head": f"Driver Version                               : 610.43.02 {GONE}\nKMD Version : 610.43.02",
    "uuid": UUID,
    "mode": "Pass-Through",
    "channel": "No",
    "memory": "No",
    "remap": "No",
    "draw": "130.66 W",
    "processes": "    Processes                                : None",
}
XML = """\
<nvidia_smi_log>{head}<attached_gpus>1</attached_gpus><gpu id="00000000:83:00.0">
<product_name>NVIDIA H200</product_name><uuid>{uuid}</uuid><minor_number>3</minor_number>
<pci><pci_bus_id>00000000:83:00.0</pci_bus_id></pci>
<fb_memory_usage><total>143771 MiB</total><used>900 MiB</used></fb_memory_usage>
<processes>{processes}</processes></gpu></nvidia_smi_log>
"""
PROCESS = (
    "<process_info><pid>{pid}</pid><type>{kind}</type><process_name>{name}</process_name>"
    "<used_memory>900 MiB</used_memory></process_info>"
)


def logged(**changes: str) -> Inventory:
    """A card as `-q` of release 610 tells of it, but for what is said."""
    return read({"text": said(LOG.format(**{**PLAIN, **changes}))})


def document(*processes: str, head: str = "<driver_version>610.43.02</driver_version>") -> Said:
    return said(XML.format(head=head, uuid=UUID, processes="".join(processes)))


def rows_of(inventory: Inventory):
    return {row.name: row for row in checks(inventory, Wanted(minor=3))}


def odd(inventory: Inventory) -> set[str]:
    rows = rows_of(inventory).values()
    alone = {"preloaded-libraries", "kernel-lists-it"}
    return {row.name for row in rows if row.verdict in ("fail", "unknown")} - alone


def test_a_release_under_its_old_name_and_its_new_one():
    inventory = logged()
    assert (inventory.driver.known, inventory.faults) == ("610.43.02", ())
    assert odd(inventory) == set()
    assert logged(head="KMD Version : 620.1").driver.known == "620.1"
    assert logged(head="Driver Version : 595.80").driver.known == "595.80"
    for head in (
        f"<driver_version>610.43.02 {GONE}</driver_version><kmd_version>610.43.02</kmd_version>",
        '<driver_version>Deprecated, see "KMD version"</driver_version><kmd_version>610.43.02</kmd_version>',
        "<kmd_version>610.43.02</kmd_version>",
    ):
        found = read({"xml": document(head=head)})
        assert (found.driver.known, found.faults) == ("610.43.02", ())
    table = read({"query": said("index, name, driver_version, kmd_version\n0, NVIDIA H200, [N/A], 620.1\n")})
    assert table.driver.known == "620.1"


def test_a_release_that_is_no_release_refuses():
    for head in ("Driver Version : ERR!", f"Driver Version : {GONE}", "Driver Version : N/A", ""):
        assert [str(fault.label) for fault in logged(head=head).faults] == ["device-inventory"], head


def test_the_table_of_release_610():
    text = (
        "| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |\n"
        "|   0  NVIDIA H200                    On  |   00000000:83:00.0 Off |                   On |\n"
        "| N/A   40C    P0            130W /  700W |      44MiB / 143771MiB |     N/A      Default |\n"
    )
    assert recognise(text) == "table"
    reading = read_table(text)
    assert reading.driver.known == "610.43.02"
    assert [card.utilization.state for card in reading.cards] == ["unsupported"]


@pytest.mark.parametrize("mode", ["VGPU", "Host VGPU", "Host VSGA"])
def test_a_part_of_a_card_is_none_though_it_has_a_minor(mode):
    inventory = logged(mode=mode)
    assert odd(inventory) == {"mig-off"}
    row = rows_of(inventory)["mig-off"]
    assert (row.verdict, str(row.label)) == ("fail", "device-mig")
    assert mode in row.got
    assert [str(fault.label) for fault in cannot_tell(inventory, inventory.cards[0])] == ["device-mig"]
    assert odd(logged(mode="None")) == odd(logged(mode="N/A")) == set()


@pytest.mark.parametrize("changes", [{"memory": "Yes"}, {"remap": "Yes"}, {"draw": "Unknown Error"}])
def test_what_no_reset_mends_is_an_error(changes):
    inventory = logged(**changes)
    assert odd(inventory) == {"no-errors"}
    assert str(rows_of(inventory)["no-errors"].label) == "device-reset"


def test_a_repair_that_waits_is_a_warning():
    row = rows_of(logged(channel="Yes"))["no-reset-pending"]
    assert (row.verdict, row.warning) == ("pass", "channel repair: Yes")


@pytest.mark.parametrize("kinds", [("G", "C"), ("C", "G"), ("G", "C+G")])
def test_a_process_that_is_listed_twice_computes_if_one_line_says_so(kinds):
    inventory = read({"xml": document(*(PROCESS.format(pid=7, kind=kind, name="a") for kind in kinds))})
    assert odd(inventory) == {"compute-processes", "utilisation"}


def test_a_process_computes_if_one_of_two_tools_says_so():
    drawing = document(PROCESS.format(pid=7, kind="G", name="a"))
    assert odd(read({"xml": drawing})) == {"utilisation"}
    apps = said(f"gpu_bus_id, gpu_uuid, pid, process_name, used_memory\n00000000:83:00.0, {UUID}, 7, a, 1\n")
    assert "compute-processes" in odd(read({"xml": drawing, "apps": apps}))


@pytest.mark.parametrize(
    "name",
    [
        "AMD-SMI",
        "sh -c 'nvidia-smi || echo nvidia-smi: not found'",
        "couldn't communicate with the NVIDIA driver",
    ],
)
def test_what_somebody_calls_a_process_is_no_answer(name):
    inventory = read({"xml": document("\n", PROCESS.format(pid=7, kind="C", name=name))})
    assert not inventory.faults
    assert "compute-processes" in odd(inventory)


def test_the_log_of_old_drivers_lists_who_computes():
    assert [card.processes for card in logged(processes="    Compute Processes : None").cards] == [()]
    (card,) = logged(processes="    Compute Processes : N/A").cards
    assert card.processes is None
    listed = (
        "    Compute Processes\n        Process ID : 4711\n            Name : ./a.out\n"
        "            Used GPU Memory : 62 MB"
    )
    inventory = logged(processes=listed)
    ((process,),) = (card.processes or () for card in inventory.cards)
    assert (process.pid.known, process.name, process.used_mib.known) == (4711, "./a.out", 62)
    assert odd(inventory) == {"compute-processes"}


def test_a_card_whose_processes_are_not_told_has_no_empty_list():
    text = (
        "| NVIDIA-SMI 340.1   Driver Version: 340.1      |\n"
        "|   0  GeForce GTX 680     Off  | 0000:01:00.0     N/A |                  N/A |\n"
        "| 30%   40C    P8    N/A /  N/A |    427MiB /  2047MiB |     N/A      Default |\n"
        "|   1  Tesla K20m          Off  | 0000:02:00.0     Off |                    0 |\n"
        "| N/A   30C    P8    19W / 225W |     12MiB /  4799MiB |      0%      Default |\n"
        "|    0            Not Supported                                               |\n"
        "|    1      4711    C     ./a.out                                      100MiB |\n"
    )
    first, second = read_table(text).cards
    assert (first.processes, len(second.processes or ())) == (None, 1)


def test_memory_that_this_user_may_not_see_is_not_shared_memory():
    text = raw("r01_rtx3070_550.txt").decode().replace(": 0 MiB\n        Free", ": [{}]\n        Free", 1)
    rows = {}
    for word in ("Insufficient Permissions", "N/A"):
        inventory = read({"text": said(text.replace("{}", word))})
        rows[word] = {row.name: row for row in checks(inventory, Wanted(minor=0))}["memory-in-use"]
    assert {row.verdict for row in rows.values()} == {"unknown"}
    assert [bool(row.warning) for row in rows.values()] == [False, True]


def test_a_warning_among_rows_is_no_row():
    warning = "WARNING: infoROM is corrupted at gpu 0000:83:00.0\n"
    asked = {
        "xml": Said(14, document().stdout.replace(b"900", b"0") + warning.encode()),
        "query": said(f"index, pci.bus_id, uuid\n0, 00000000:83:00.0, {UUID}\n{warning}", 14),
        "apps": said(f"gpu_bus_id, gpu_uuid, pid, process_name, used_memory\n{warning}", 14),
    }
    inventory = read(asked)
    assert not inventory.faults
    assert [card.processes for card in inventory.cards] == [()]
    assert len([note for note in inventory.notes if "exit code 14" in note]) == 3
    odd_row = said(f"index, pci.bus_id, uuid\n0, 00000000:83:00.0, {UUID}\nwarned\n")
    assert [str(fault.label) for fault in read({"query": odd_row}).faults] == ["device-inventory"]


@pytest.mark.parametrize(
    "name", [b"\xff\xfe\x01\x00", b"a && b & c", b"\xef\xbf\xbe", b"&nbsp;", b"&amp;&#38;"]
)
def test_a_process_may_be_called_what_no_document_can_hold(name):
    text = document(PROCESS.format(pid=7, kind="C", name="NAME")).stdout.replace(b"NAME", name)
    inventory = read({"xml": Said(0, text)})
    assert not inventory.faults
    assert "compute-processes" in odd(inventory)
    minor = read({"xml": Said(0, text.replace(b"<minor_number>3", b"<minor_number>\x013"))})
    assert [card.minor.state for card in minor.cards] == ["broken"]


@pytest.mark.parametrize("row", ["[N/A]", "[Not Supported]", "[N/A], [N/A], [N/A], [N/A], [N/A]"])
def test_a_row_that_tells_nothing_is_no_process_and_not_none(row):
    apps = said(f"gpu_bus_id, gpu_uuid, pid, process_name, used_memory\n{row}\n")
    query = said(
        f"index, pci.bus_id, uuid, name, memory.used\n0, 00000000:83:00.0, {UUID}, NVIDIA H200, 0 MiB\n"
    )
    inventory = read({"query": query, "apps": apps})
    assert (inventory.faults, inventory.elsewhere) == ((), ())
    assert any("not told" in note for note in inventory.notes)
    rows = {row.name: row for row in checks(inventory, Wanted(uuid=UUID))}
    assert rows["compute-processes"].verdict == "unknown"
