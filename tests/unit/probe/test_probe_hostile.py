"""Whatever is done to a capture: no exception, and never a card that was not there."""

from __future__ import annotations

import pytest
from captures import NAMES, Said, inventory_of, kind_of, machine, raw
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.probe import Inventory, Wanted, checks, read
from orchestrator.probe.reading import READERS
from orchestrator.probe.recognise import recognise

SMALL = tuple(name for name in NAMES if len(raw(name)) < 1 << 17)
NAMED = st.sampled_from(SMALL)
QUICK = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
JUNK = st.one_of(
    st.binary(max_size=40), st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace"))
)


def identities(inventory: Inventory) -> set[tuple[object, ...]]:
    return {
        (card.bus.known, card.minor.known, card.uuid.known, card.product.known) for card in inventory.cards
    }


def check_no_new_card(name: str, data: bytes) -> None:
    """Every fact that is known is one that the whole capture has of that card."""
    whole = {card.bus.known: card for card in inventory_of(name).cards}
    inventory = read({kind_of(raw(name)): Said(0, data)})
    for card in inventory.cards:
        if card.bus.known is None:
            continue  # of no place: it is bound by nothing, and the list says so
        before = whole[card.bus.known]
        for fact in ("minor", "uuid", "product", "total_mib"):
            value = getattr(card, fact)
            assert value.state != "known" or value == getattr(before, fact) or inventory.faults, (fact, value)
    usable(inventory)


def usable(inventory: Inventory) -> None:
    """Judging and showing never fails either."""
    for card in inventory.cards:
        checks(inventory, Wanted("NVIDIA GeForce RTX 3070", minor=card.minor.known, uuid=card.uuid.known))
    assert inventory.as_json()


@QUICK
@given(name=NAMED, at=st.floats(0, 1))
def test_truncated(name, at):
    data = raw(name)
    check_no_new_card(name, data[: int(at * len(data))])


@QUICK
@given(name=NAMED, at=st.floats(0, 1), size=st.integers(1, 400))
def test_with_a_piece_cut_out(name, at, size):
    lines = raw(name).split(b"\n")
    begin = int(at * len(lines))
    check_no_new_card(name, b"\n".join(lines[:begin] + lines[begin + size :]))


@QUICK
@given(name=NAMED, at=st.floats(0, 1))
def test_with_two_lines_in_another_order(name, at):
    lines = raw(name).split(b"\n")
    i = int(at * (len(lines) - 1))
    lines[i : i + 2] = reversed(lines[i : i + 2])
    check_no_new_card(name, b"\n".join(lines))


@QUICK
@given(name=NAMED, seed=st.randoms(use_true_random=False))
def test_in_any_order(name, seed):
    lines = raw(name).split(b"\n")
    seed.shuffle(lines)
    usable(read({kind_of(raw(name)): Said(0, b"\n".join(lines))}))


@QUICK
@given(name=NAMED, at=st.floats(0, 1), size=st.integers(0, 60), junk=JUNK)
def test_with_garbage(name, at, size, junk):
    data = raw(name)
    begin = int(at * len(data))
    data = data[:begin] + junk + data[begin + size :]
    recognise(data.decode("utf-8", "replace"))
    usable(read({kind_of(raw(name)): Said(0, data)}))


@QUICK
@given(
    kind=st.sampled_from(sorted(READERS)),
    out=JUNK,
    err=JUNK,
    code=st.one_of(st.none(), st.integers(-1, 260)),
)
def test_anything_at_all(kind, out, err, code):
    inventory = read({kind: Said(code, out, err)})
    usable(inventory)
    assert not any(card.minor.known is not None for card in inventory.cards)


INFORMATION = """\
Model: \t NVIDIA GeForce RTX 3070
GPU UUID: \t GPU-64e0abd0-5f45-1794-b245-8d1dcbd47ed1
Bus Location: \t 0000:08:00.0
Device Minor: \t 0
"""


@QUICK
@given(at=st.floats(0, 1), size=st.integers(0, 30), junk=st.text("0123456789", max_size=3))
def test_digits_among_digits_are_caught_by_the_kernels_own_list(at, size, junk):
    """One source can lie about a minor and nobody knows; two cannot."""
    data = raw("r01_rtx3070_550.txt")
    begin = int(at * len(data))
    data = data[:begin] + junk.encode() + data[begin + size :]
    inventory = read({"machine": machine(INFORMATION), "text": Said(0, data)})
    for card in inventory.cards:
        wrong = card.minor.known not in (0, None) or card.uuid.known not in (
            "GPU-64e0abd0-5f45-1794-b245-8d1dcbd47ed1",
            None,
        )
        assert not wrong or inventory.faults


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("x", "r", "q"))])
def test_half_a_number_is_no_number(name):
    """A text that ends within a minor's digits does not tell another minor."""
    data = raw(name)
    marks = (b"Minor Number                          : ", b"<minor_number>")
    for mark in marks:
        at = data.rfind(mark)
        if at >= 0:
            cut = data[: at + len(mark) + 1]
            inventory = read({kind_of(data): Said(0, cut)})
            assert identities(inventory) <= identities(inventory_of(name)) or inventory.faults
            assert inventory.faults


@pytest.mark.parametrize(
    ("kind", "begin", "unit"),
    [
        ("xml", "<nvidia_smi_log>", '<gpu id="{:08X}:01:00.0"/>'),
        ("text", "==============NVSMI LOG==============\n", "GPU {:08X}:01:00.0\n"),
        ("query", "index, pci.bus_id\n", "{0}, {0:08X}:01:00.0\n"),
        ("machine", "", "== /proc/driver/nvidia/gpus/{:08x}:01:00.0/information\n"),
        ("list", "", "GPU {}: NVIDIA H200 (UUID: GPU-0)\n"),
    ],
)
def test_more_cards_than_a_machine_can_have_are_none(kind, begin, unit):
    text = begin + "".join(map(unit.format, range(300))) + {"xml": "</nvidia_smi_log>"}.get(kind, "== end\n")
    inventory = read({kind: Said(0, text.encode())})
    assert not inventory.cards
    assert "more than 255 cards" in str(inventory.faults[0])


def test_more_than_a_machine_can_say_is_nothing():
    inventory = read({"xml": Said(0, raw("x31_rtx3060_570.xml") + b" " * (4 << 20))})
    assert not inventory.cards
    assert [str(fault.label) for fault in inventory.faults] == ["device-inventory"]
    assert "says more than a machine" in inventory.faults[0].message
