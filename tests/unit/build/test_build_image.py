"""Files that say more of themselves than they hold."""

from __future__ import annotations

import struct
import tracemalloc

import pytest

from orchestrator.build.image import MOST_BYTES, MOST_ENTRIES, UnreadableError, read_image

PROGBITS, STRINGS, NOBITS = 1, 3, 8


def overlapping(count: int, size: int, *, kind: int = PROGBITS) -> bytes:
    """An ELF file of `size` bytes with sections that each are, and are each named by, most of it."""
    table = 64 + 64 * count
    rest = (table, size - table, 0, 0, 1, 0)
    sections = [
        struct.pack("<IIQQQQIIQQ", 1, STRINGS if index == 1 else kind, 2, 0, *rest) for index in range(count)
    ]
    counts = (64, 0, 64, 56, 0, 64, count, 1)
    head = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, *counts)
    return (head + b"".join(sections)).ljust(size - 1, b"a") + b"\0"


def test_sections_that_are_all_the_whole_file_take_no_memory():
    data = overlapping(MOST_ENTRIES, MOST_BYTES)
    tracemalloc.start()
    try:
        image = read_image(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(image.sections) == MOST_ENTRIES
    assert peak < 8 * MOST_BYTES
    assert {len(section.name) for section in image.sections} == {64}
    table = 64 + 64 * MOST_ENTRIES
    assert {section.data for section in image.sections} == {data[table:]}


def test_a_section_without_bytes_has_none():
    assert read_image(overlapping(2, 4096, kind=NOBITS)).sections[0].data == b""


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (overlapping(MOST_ENTRIES + 1, 1 << 16), "too many"),
        (overlapping(2, MOST_BYTES + 1), f"got {MOST_BYTES + 1} bytes, expected {MOST_BYTES} at most"),
    ],
    ids=["sections", "bytes"],
)
def test_what_is_larger_than_a_program_of_ours_is_not_read(data, said):
    with pytest.raises(UnreadableError, match=said):
        read_image(data)
