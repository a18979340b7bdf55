"""Shipped profiles: each reads, has every fact told, and agrees with what real cards were seen to report."""

from __future__ import annotations

import pytest
from captures import NAMES, inventory_of

from orchestrator.probe.profile import profile_name
from orchestrator.spec.device import release_for
from orchestrator.spec.read import read_device

# product -> (compute capability, MiB of memory under any driver, (generation, lanes))
PRODUCTS = {
    "NVIDIA GeForce GTX 1650": ("7.5", None, None),
    "NVIDIA GeForce GTX 1080 Ti": ("6.1", 11264, None),
    "Tesla V100-SXM2-16GB": ("7.0", 16384, (3, 16)),
    "Tesla V100-PCIE-32GB": ("7.0", 32510, (3, 16)),
    "Tesla T4": ("7.5", 15360, (3, 16)),
    "NVIDIA GeForce RTX 2080 Ti": ("7.5", 11264, (3, 16)),
    "NVIDIA GeForce RTX 3060": ("8.6", 12288, (4, 16)),
    "NVIDIA GeForce RTX 3070": ("8.6", 8192, (4, 16)),
    "NVIDIA GeForce RTX 3080": ("8.6", 10240, (4, 16)),
    "NVIDIA GeForce RTX 3090": ("8.6", 24576, (4, 16)),
    "NVIDIA A10": ("8.6", 23028, (4, 16)),
    "NVIDIA A100-SXM4-40GB": ("8.0", 40960, (4, 16)),
    "NVIDIA A100-SXM4-80GB": ("8.0", 81920, (4, 16)),
    "NVIDIA GeForce RTX 4090": ("8.9", 24564, (4, 16)),
    "NVIDIA GeForce RTX 5060 Ti": ("12.0", 16311, (5, 8)),
    "NVIDIA GeForce RTX 5090": ("12.0", 32607, (5, 16)),
    "NVIDIA L4": ("8.9", 23034, (4, 16)),
    "NVIDIA L40S": ("8.9", 46068, (4, 16)),
    "NVIDIA H100 80GB HBM3": ("9.0", 81559, (5, 16)),
    "NVIDIA H200": ("9.0", 143771, (5, 16)),
    "NVIDIA B200": ("10.0", 183359, None),
    "NVIDIA GB10": ("12.1", None, None),
    "AMD Instinct MI300X (gfx942)": (None, None, None),
    "AMD Radeon RX 7900 XTX (gfx1100)": (None, None, (4, 16)),
}


@pytest.fixture(scope="module")
def shipped(pytestconfig):
    folder = pytestconfig.rootpath / "specs" / "devices"
    return {path.stem: read_device(path) for path in sorted(folder.iterdir())}


def test_there_is_one_for_each_product(shipped):
    products = [device.product for device in shipped.values()]
    assert set(PRODUCTS) <= set(products)
    assert len(set(products)) == len(products)
    for name, device in shipped.items():
        assert device.name == name, "a profile is found by its name"
        assert device.name == profile_name(device.product.partition(" (")[0])
        assert device.vendor == ("amd" if device.product.startswith("AMD") else "nvidia")


def test_facts_are_those_that_are_known(shipped):
    for device in (each for each in shipped.values() if each.product in PRODUCTS):
        capability, memory, link = PRODUCTS[device.product]
        facts = device.facts
        assert facts["compute_capability"].value == capability
        assert set((facts["memory_total"].value or {}).values()) == ({memory << 20} if memory else set())
        assert (facts["pcie_generation"].value, facts["pcie_width"].value) == (link or (None, None))
        if capability is not None:
            assert facts["float16"].value == "native"
            assert facts["bfloat16"].value == ("native" if float(capability) >= 8 else "none")
        for fact in facts.values():
            assert (fact.reference is None) == (fact.value is None)
            assert (fact.reason is None) == (fact.value is not None)


def test_cards_that_were_seen_report_what_their_profile_says(shipped):
    by_product = {device.product: device.facts for device in shipped.values()}
    compared = 0
    for name in NAMES:
        if not name.startswith(("x", "q", "r", "u")):
            continue
        inventory = inventory_of(name)
        for card in inventory.cards:
            facts = by_product.get(card.product.known or "")
            for fact, value in (("memory_total", card.total_mib), ("memory_reserved", card.reserved_mib)):
                told = facts[fact].value if facts else None
                for driver, size in (told or {}).items():
                    if release_for(inventory.driver.known or "", (driver,)):
                        assert value.known == size >> 20, (name, fact, driver)
                        compared += 1
    assert compared > 60
