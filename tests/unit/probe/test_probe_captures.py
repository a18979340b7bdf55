"""Every capture reads as it must, and is judged as it must be: values, processes, what forbids it."""

from __future__ import annotations

import pytest
from captures import FOLDER, NAMES, READINGS, inventory_of, manifest

from orchestrator.probe import Card, Inventory, Wanted, checks
from orchestrator.probe.values import bus_id

FACTS = {
    "minor": "minor",
    "uuid": "uuid",
    "name": "product",
    "mem_total_mib": "total_mib",
    "mem_reserved_mib": "reserved_mib",
    "mem_used_mib": "used_mib",
    "compute_cap": "capability",
}
WORDS = {
    "pcie_max_gen": "pcie_generation",
    "pcie_max_width": "pcie_width",
    "mig_mode": "mig",
    "compute_mode": "compute_mode",
}
ALONE = {"preloaded-libraries", "kernel-lists-it"}
"""What no capture of nvidia-smi shows."""
COMPUTES, USED, BUSY, MIG, MINOR = "compute-processes", "memory-in-use", "utilisation", "mig-off", "minor"
HEALTH = {"no-reset-pending", "no-errors"}
CSV = {None: {MINOR, COMPUTES, USED, BUSY}}
# capture -> minor -> all that does not pass; a card that is not here passes, and so does a capture
BARRED: dict[str, dict[int | None, set[str]]] = {
    "x07_4xk80_out_of_order_430.xml": {1: {COMPUTES, BUSY}, 2: {COMPUTES, BUSY}},
    "x09_v100_460_4procs.xml": {0: {COMPUTES, BUSY}},
    "x16_t4_xorg_and_python_515.xml": {0: {COMPUTES}},
    "x18_rtx4000sff_cplusg_595.xml": {0: {COMPUTES, USED}},
    "x22_gtx1070ti_stub.xml": {None: {"inventory", MINOR, COMPUTES, USED}},
    "x25_gtx1070_attached6_listed2_384.xml": {
        0: {"inventory", COMPUTES, BUSY},
        1: {"inventory", COMPUTES, USED, BUSY},
    },
    "x27_rtxpro6000_maxq_590.xml": {0: {COMPUTES}},
    "x31_rtx3060_570.xml": {0: {USED}},
    "x32_rtx3080_edited_536.xml": {None: {MINOR}},
    "q01_8x4090_minor_reversed_535.txt": {
        **{minor: {COMPUTES} for minor in (0, 1, 3, 4, 7)},
        **{minor: {COMPUTES, BUSY} for minor in (2, 5)},
    },
    "q04_8x4090_leading_blank_lines_535.txt": {2: {COMPUTES, BUSY}, 7: {COMPUTES, BUSY}},
    "q07_8xh100_one_busy_535.txt": {2: {COMPUTES}},
    "q10_4x2080ti_545.txt": {0: {COMPUTES, BUSY}, 1: {COMPUTES}},
    "t02_table_8xh100_550.txt": {None: {"uuid", "uuids-differ"}},
    "u4080s_595_load_q.txt": {0: {COMPUTES, USED, BUSY}},
    "u4080s_595_load_query_gpu.csv": CSV,
    "uh100_590_load_q.txt": {0: {COMPUTES, BUSY}},
    "uh100_590_load_query_gpu.csv": CSV,
    "uh200_590_load_q.txt": {0: {COMPUTES, BUSY}},
    "uh200_590_load_query_gpu.csv": CSV,
    "uh200mig_590_load_q.txt": {0: {COMPUTES, USED, BUSY, MIG}},
    "uh200mig_590_load_query_gpu.csv": {None: {*CSV[None], MIG}},
    "uh200mig_590_L.txt": {None: {MINOR, COMPUTES, USED, BUSY, MIG, *HEALTH}},
    "ul40s_595_load_q.txt": {0: {COMPUTES, BUSY}},
    "ul40s_595_load_query_gpu.csv": CSV,
    "u2080s_win_591_load_q.txt": {None: {MINOR, COMPUTES, USED, BUSY}},
    "u2080s_win_591_load_query_gpu.csv": CSV,
    "p01_proc_information_v100.txt": {0: {COMPUTES, USED, BUSY, MIG, *HEALTH}},
}


def barred(inventory: Inventory, card: Card) -> set[str]:
    rows = checks(inventory, Wanted(minor=card.minor.known, uuid=card.uuid.known))
    return {row.name for row in rows if row.verdict not in ("pass", "not-applicable")} - ALONE


def check_card(told: dict, card: Card):
    got = {key: getattr(card, name).known for key, name in FACTS.items() if key in told}
    assert got == {key: told[key] for key in got}
    texts = {key: getattr(card, name).text for key, name in WORDS.items() if told.get(key)}
    assert texts == {key: told[key].strip("[]") for key in texts}
    assert told.get("index", card.index) == card.index
    if told.get("bus_id"):
        assert card.bus.known == bus_id(told["bus_id"])


@pytest.mark.parametrize("name", [name for name in NAMES if "gpus" in (READINGS[name] or {})])
def test_values(name: str):
    expected = READINGS[name]
    inventory = inventory_of(name)
    assert inventory.driver.known == expected.get("driver")
    assert inventory.attached.text == (expected.get("attached", inventory.attached.text) or "")
    if name.startswith("o02"):
        assert inventory.others == tuple(card["name"] for card in expected["gpus"])
        assert not inventory.cards
        return
    for told, card in zip(expected["gpus"], inventory.cards, strict=True):
        check_card(told, card)


@pytest.mark.parametrize("name", [name for name in NAMES if "gpus" in (READINGS[name] or {})])
def test_processes(name: str):
    for told, card in zip(READINGS[name]["gpus"], inventory_of(name).cards, strict=False):
        if "processes" not in told:
            continue
        if name.startswith("x22"):
            assert card.processes is None, "a document without the list says nothing of processes"
            continue
        assert card.processes is not None
        got = [(str(each.pid), each.kind, each.name, each.used_mib.known) for each in card.processes]
        assert got == [
            (each["pid"], each["type"], each["name"], each["used_mib"]) for each in told["processes"]
        ]


@pytest.mark.parametrize("name", [name for name in NAMES if "compute_apps" in name])
def test_compute_processes(name: str):
    expected = READINGS[name]["processes"]
    reading = inventory_of(name).readings[0]
    listed = [(card, each) for card in reading.cards for each in card.processes or ()]
    assert [(each.pid.text, each.name) for _, each in listed] == [(e["pid"], e["name"]) for e in expected]
    assert [card.bus.known for card, _ in listed] == [each["bus"] for each in expected]
    for (_, process), told in zip(listed, expected, strict=True):
        assert process.used_mib.text == told["used"].strip("[]")
        assert process.is_compute


@pytest.mark.parametrize("name", NAMES)
def test_verdicts(name: str):
    inventory = inventory_of(name)
    found = {card.minor.known: barred(inventory, card) for card in inventory.cards}
    assert {minor: rows for minor, rows in found.items() if rows} == BARRED.get(name, {})


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("o02_mi300x_x4_rocm_smi_concise.txt", {"device-absent"}),
        ("x22_gtx1070ti_stub.xml", {"device-inventory"}),
        ("x25_gtx1070_attached6_listed2_384.xml", {"device-inventory"}),
        ("uh100_590_idle_compute_apps.csv", {"device-inventory"}),
        ("x01_rtx3090_590.xml", set()),
    ],
)
def test_whole_lists_are_refused_by_label(name: str, labels: set[str]):
    assert {str(fault.label) for fault in inventory_of(name).faults} == labels


def test_the_exact_product_decides():
    (a10g,) = inventory_of("x17_a10g_xorg_only_515.xml").cards
    for wanted, verdict in (("NVIDIA A10", "fail"), ("NVIDIA A10G", "pass")):
        rows = checks(inventory_of("x17_a10g_xorg_only_515.xml"), Wanted(wanted, uuid=a10g.uuid.known))
        assert [(row.verdict, str(row.label)) for row in rows if row.name == "product"] == [
            (verdict, "nvidia-plan-host")
        ]
    too_old = inventory_of("x20_gtx1660ti_as_graphics_device_418.xml")
    rows = checks(too_old, Wanted("NVIDIA GeForce GTX 1660 Ti", minor=0))
    assert {row.name for row in rows if row.verdict == "fail"} == {"product"}


def test_a_lone_graphics_process_warns():
    rows = checks(inventory_of("x17_a10g_xorg_only_515.xml"), Wanted(minor=0))
    (row,) = (row for row in rows if row.warning)
    assert (row.name, row.verdict) == ("graphics-processes", "pass")
    assert "/usr/lib/xorg/Xorg" in row.warning


def test_the_minor_is_not_the_place_in_the_list():
    assert [card.minor.known for card in inventory_of("r08_8x4090_minor_reversed_550.txt").cards] == [
        *(3, 2, 1, 0),
        *(7, 6, 5, 4),
    ]
    (card,) = inventory_of("r03_rtx5090_minor1_570.txt").cards
    rows = {row.name: row for row in checks(inventory_of("r03_rtx5090_minor1_570.txt"), Wanted(minor=0))}
    assert (card.index, card.minor.known) == (0, 1)
    assert (rows["minor"].verdict, str(rows["minor"].label)) == ("fail", "device-minor")


def test_two_tools_tell_of_one_card():
    names = ("uh100_590_load_q.txt", "uh100_590_load_query_gpu.csv", "uh100_590_load_compute_apps.csv")
    inventory = inventory_of(*names)
    (card,) = inventory.cards
    assert (card.minor.known, card.capability.known) == (0, "9.0")
    assert [each.kind for each in card.processes or ()] == ["C", "C", "C"]
    assert not inventory.faults
    assert len(card.sources) == 3


def test_each_capture_has_its_source_and_its_licence():
    rows = manifest()
    assert [row["file"] for row in rows] == [f"{name}.gz" for name in NAMES]
    assert {row["licence"] for row in rows} <= {"MIT", "Apache-2.0"}
    assert all(row["source"] for row in rows)
    shipped = {path.name for path in FOLDER.iterdir()}
    assert shipped == {"manifest.tsv", "readings.json", *(row["file"] for row in rows)}
