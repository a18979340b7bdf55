"""The stand-in's driver: what it computes, what it keeps apart, what it refuses, what it counts."""

from __future__ import annotations

import ctypes
import math
import shutil
import struct
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from role_bench import ARM, EMULATORS, X86
from standin_bench import CARD, HEAD, OTHER, SQUARE, Driver, doubles, kernel, unit

from orchestrator.build.standin import Calls, cards_text
from orchestrator.oracle.arithmetic import divide
from orchestrator.plan.words import BINARY32

Start = Callable[..., Driver]

INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, UNAVAILABLE, NO_DEVICE = 1, 2, 3, 46, 100
INVALID_DEVICE, INVALID_CONTEXT, ILLEGAL_ADDRESS, TIMEOUT, MISALIGNED, FAILED = 101, 201, 700, 702, 716, 719

OPERATIONS = ("add", "sub", "mul", "div", "sqrt", "neg")
STORE = "mov.f64 f0,0d3FF0000000000000; st.global.f64 [a1],f0; ret;"


def launched(driver: Driver, body: str, at: int, **shape: int) -> int:
    return driver.launch(driver.function(HEAD + kernel(body)), at, **shape)


def test_a_kernel_computes_in_the_card_s_memory(ready: Driver) -> None:
    at = ready.put(doubles(*range(256)))
    assert launched(ready, SQUARE, at, grid=2, block=128) == 0
    assert ready.get(at, 2048) == doubles(*(value * value for value in range(256)))
    other, ours = ready.calls()
    assert other == Calls(OTHER.minor, 0, 0, 0, 0, 0, 0, 0, 0)
    assert ours == Calls(CARD.minor, 10, 1, 1, 2048, 2048, 2048, 0, 0)


def expected(left: float, right: float) -> tuple[float, ...]:
    root = math.sqrt(left) if left >= 0 or math.isnan(left) else math.nan
    return (left + right, left - right, left * right, divide(left, right), root, -left)


def arithmetic(kind: str, size: int) -> str:
    """Rows of two words, each followed by six that the operations of them come to."""
    lines = [
        f"mad.wide.u32 a1,r0,{8 * size},a0;",
        f"ld.global.{kind} f0,[a1];",
        f"ld.global.{kind} f1,[a1+{size}];",
    ]
    for at, operation in enumerate(OPERATIONS):
        name = operation if operation == "neg" else f"{operation}.rn"
        operands = "f0" if operation in ("sqrt", "neg") else "f0,f1"
        lines += [f"{name}.{kind} f2,{operands};", f"st.global.{kind} [a1+{size * (2 + at)}],f2;"]
    return "\n".join((*lines, "ret;"))


@pytest.mark.parametrize(("kind", "size"), [("f64", 8), ("f32", 4)])
def test_every_operation_is_rounded_once(ready: Driver, kind: str, size: int) -> None:
    function = ready.function(HEAD + kernel(arithmetic(kind, size), word=kind))
    letter, rows = ("d" if size == 8 else "f"), 32
    at = ready.put(bytes(rows * 8 * size))
    words = st.floats(width=8 * size, allow_nan=False)

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(st.tuples(words, words), min_size=1, max_size=rows))
    def each(pairs: list[tuple[float, float]]) -> None:
        given = b"".join(struct.pack(f"<8{letter}", *pair, *[0.0] * 6) for pair in pairs)
        assert ready.copy_to(at, given) == 0
        assert ready.launch(function, at, block=len(pairs)) == 0
        got = list(struct.iter_unpack(f"<8{letter}", ready.get(at, len(given))))
        for (left, right), row in zip(pairs, got, strict=True):
            wanted = [word if size == 8 else BINARY32.rounded(word) for word in expected(left, right)]
            for operation, mine, theirs in zip(OPERATIONS, row[2:], wanted, strict=True):
                same = math.isnan(mine) if math.isnan(theirs) else doubles(mine) == doubles(theirs)
                assert same, (operation, left, right, mine, theirs)

    each()


@pytest.mark.parametrize("target", [X86, ARM])
def test_another_processor_gives_the_same_bits(target: str, program_cache: Path, tmp_path: Path) -> None:
    if any(shutil.which(each) is None for each in EMULATORS[target]):
        pytest.skip(f"needs {EMULATORS[target][0]}")
    (tmp_path / "standin").mkdir()
    (tmp_path / "standin" / "cards").write_text(cards_text((CARD,)))
    program = tmp_path / "card"
    program.write_bytes(unit("card", target, program_cache))
    program.chmod(0o755)

    def run(kind: str, row: bytes) -> bytes:
        text = HEAD + kernel(arithmetic(kind, len(row) // 8), word=kind)
        given = b"\0".join((CARD.bus.encode(), text.encode(), row))
        command = [*EMULATORS[target], program]
        return subprocess.run(command, cwd=tmp_path, input=given, capture_output=True, check=True).stdout

    for pair in ((0.1, 3.0), (5e-324, -0.75), (1e308, -1e-308), (2.0, 0.0)):
        assert run("f64", doubles(*pair, *[0.0] * 6)) == doubles(*pair, *expected(*pair))
    narrow = struct.unpack("<8f", run("f32", struct.pack("<8f", 2.0, 0.3, *[0.0] * 6)))
    rounded = BINARY32.rounded(0.3)
    assert narrow[2:] == tuple(BINARY32.rounded(word) for word in expected(2.0, rounded))
    assert run("f64", bytes(8)) == b"700"


def test_a_loop_ends_where_its_count_does(ready: Driver) -> None:
    body = """mov.u32 r2,0; mov.f64 f0,0d0000000000000000; mov.f64 f1,0d3FF0000000000000;
    again: add.rn.f64 f0,f0,f1; add.u32 r2,r2,1; setp.lt.u32 p0,r2,1000; @p0 bra again;
    setp.ge.u32 p1,r0,2; @p1 ret; st.global.f64 [a1],f0; ret;"""
    at = ready.put(doubles(1, 2, 3, 4))
    assert launched(ready, body, at, block=4) == 0
    assert ready.get(at, 32) == doubles(1000, 1000, 3, 4)


def test_a_loop_without_an_end_ends_too(ready: Driver) -> None:
    assert launched(ready, "again: add.u32 r2,r2,1; bra again;", ready.put(doubles(1))) == TIMEOUT


def test_addresses_are_none_of_the_host_s(ready: Driver) -> None:
    at = ready.put(doubles(1))
    assert at >> 47 != 0
    assert at % 256 == 0


@pytest.mark.parametrize(
    ("offset", "error"),
    [(16, ILLEGAL_ADDRESS), (12, ILLEGAL_ADDRESS), (4, MISALIGNED), (2**41, ILLEGAL_ADDRESS)],
)
@pytest.mark.parametrize("body", ["ld.global.f64 f0,[a0]; ret;", "st.global.f64 [a0],f0; ret;"])
def test_nothing_outside_an_allocation_is_touched(ready: Driver, body: str, offset: int, error: int) -> None:
    at = ready.put(doubles(1, 2))
    assert launched(ready, body, at + offset) == error
    # as on a card, every call says it from then on
    assert ready.copy_from(at, 16)[0] == error
    assert ready.allocate(8)[0] == error
    assert ready.calls()[1].error == error


@pytest.mark.parametrize("address", [0, 1 << 20, 0xD5 << 48])
def test_no_address_is_good_by_itself(ready: Driver, address: int) -> None:
    assert launched(ready, "ld.global.f64 f0,[a0]; ret;", address) == ILLEGAL_ADDRESS


def test_a_card_s_memory_is_not_another_s(ready: Driver) -> None:
    at = ready.put(doubles(1))
    ready.begin(OTHER.bus)
    assert ready.copy_from(at, 8)[0] == INVALID_VALUE
    assert launched(ready, SQUARE, at) == ILLEGAL_ADDRESS
    ready.begin(CARD.bus)
    assert ready.get(at, 8) == doubles(1)


def test_copies_stay_within_an_allocation(ready: Driver) -> None:
    at = ready.put(doubles(1, 2))
    assert ready.copy_to(at + 8, doubles(1, 2)) == INVALID_VALUE
    assert ready.copy_from(at - 8, 16)[0] == INVALID_VALUE
    assert ready.copy_to(at + 16, b"") == 0
    assert ready.get(at, 16) == doubles(1, 2)


def test_what_was_never_written_is_no_number(ready: Driver) -> None:
    _, at = ready.allocate(16)
    assert all(math.isnan(word) for word in struct.unpack("<2d", ready.get(at, 16)))
    assert all(math.isnan(word) for word in struct.unpack("<4f", ready.get(at, 16)))
    assert launched(ready, "st.global.f64 [a0],f3; ret;", at) == 0
    assert math.isnan(struct.unpack("<d", ready.get(at, 8))[0])
    assert launched(ready, "ld.global.f64 f0,[a4]; ret;", at) == ILLEGAL_ADDRESS


@pytest.mark.parametrize(
    "body",
    [
        "ld.global.f64 f0,[a0]; st.global.f64 [a1],f0; ret;",  # reads what the first thread writes
        "st.global.f64 [a0],f0; ret;",  # all write one word
        "st.global.f64 [a1],f0; ld.global.f64 f1,[a0]; ret;",  # reads what the first thread has written
    ],
)
def test_threads_that_meet_at_a_word_are_a_race(ready: Driver, body: str) -> None:
    at = ready.put(doubles(1, 2, 3))
    assert launched(ready, body, at, block=3) == FAILED
    assert ready.calls()[1].races == 1


def test_threads_that_read_one_word_or_come_later_are_none(ready: Driver) -> None:
    at = ready.put(doubles(1, 2, 3))
    assert launched(ready, "ld.global.f64 f0,[a0]; ret;", at, block=3) == 0
    for _ in range(2):
        assert launched(ready, SQUARE, at, block=3) == 0
        assert launched(ready, "ld.global.f64 f0,[a0]; mul.rn.f64 f0,f0,f0; ret;", at, block=3) == 0
    assert ready.calls()[1].races == 0


def test_grids_have_one_dimension(ready: Driver) -> None:
    function, pointers = ready.function(HEAD + kernel("ret;")), (ctypes.c_void_p * 1)()
    shapes = ((1, 2, 1, 1, 1, 1), (1, 1, 1, 1, 2, 1), (0, 1, 1, 1, 1, 1), (1, 1, 1, 1025, 1, 1))
    for shape in shapes:
        assert ready.cuda.cuLaunchKernel(function, *shape, 0, None, pointers, None) == INVALID_VALUE, shape
    assert ready.cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 8, None, pointers, None) == INVALID_VALUE
    assert ready.calls()[1].launches == 0


def test_a_card_is_lost_from_a_launch_on(driver: Start) -> None:
    made = driver((replace(CARD, fault="lost@2"),))
    made.begin()
    at = made.put(doubles(3))
    function = made.function(HEAD + kernel(SQUARE))
    assert [made.launch(function, at) for _ in range(3)] == [0, FAILED, FAILED]
    assert made.copy_from(at, 8)[0] == FAILED
    assert (made.calls()[0].launches, made.calls()[0].error) == (2, FAILED)


def test_a_card_computes_wrongly_once(driver: Start) -> None:
    made = driver((replace(CARD, fault="compute@2"),))
    made.begin()
    function, found = made.function(HEAD + kernel(STORE)), []
    at = made.put(doubles(0, 0))
    for _ in range(3):
        assert made.launch(function, at, block=2) == 0
        found.append(struct.unpack("<2d", made.get(at, 16)))
    assert found == [(1.0, 1.0), (math.nextafter(1, 2), 1.0), (1.0, 1.0)]


def test_a_card_is_busy(driver: Start) -> None:
    made = driver((replace(CARD, fault="busy"),))
    assert made.cuda.cuInit(0) == 0
    device = made.device(CARD.bus)
    assert made.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), device) == UNAVAILABLE


def test_memory_has_an_end(driver: Start) -> None:
    made = driver((replace(CARD, memory_mib=4, reserved_mib=2, used_mib=1), replace(OTHER, fault="memory")))
    made.begin()
    assert made.allocate((1 << 20) + 1)[0] == OUT_OF_MEMORY
    assert made.allocate((1 << 20) - 256)[0] == 0
    assert made.allocate(257)[0] == OUT_OF_MEMORY
    assert made.allocate(1)[0] == 0
    assert made.allocate(1)[0] == OUT_OF_MEMORY
    assert made.allocate(2**64 - 1)[0] == OUT_OF_MEMORY
    assert made.allocate(0)[0] == INVALID_VALUE
    made.begin(OTHER.bus)
    assert made.allocate(1)[0] == OUT_OF_MEMORY
    first, second = made.calls()
    assert (first.allocations, first.bytes_allocated, second.allocations) == (2, 1 << 20, 0)


def test_a_card_is_asked_by_its_address(ready: Driver) -> None:
    assert ready.device("00000000:41:00.0") == ready.device("0000:41:00.0") == 1
    assert ready.device("0001:0A:00.0") == 0
    found = ctypes.c_int()
    for address in (b"0000:42:00.0", b"0000:41:00", b"0000:41:00.0 ", b"", b"GPU-0"):
        assert ready.cuda.cuDeviceGetByPCIBusId(ctypes.byref(found), address) == INVALID_DEVICE


def test_what_a_card_says_of_itself(ready: Driver) -> None:
    name, uuid, value = ctypes.create_string_buffer(64), ctypes.create_string_buffer(16), ctypes.c_int()
    cuda, device = ready.cuda, ready.device(CARD.bus)
    assert (cuda.cuDeviceGetName(name, 64, device), name.value.decode()) == (0, CARD.name)
    assert (cuda.cuDeviceGetName(name, 7, device), name.value) == (0, b"NVIDIA")
    for entry in (cuda.cuDeviceGetUuid, cuda.cuDeviceGetUuid_v2):
        assert (entry(uuid, device), uuid.raw.hex()) == (0, CARD.uuid[4:].replace("-", ""))
    said = [(cuda.cuDeviceGetAttribute(ctypes.byref(value), each, device), value.value) for each in (75, 76)]
    assert said == [(0, 8), (0, 6)]
    assert cuda.cuDeviceGetAttribute(ctypes.byref(value), 1, device) == INVALID_VALUE
    assert cuda.cuDeviceGetName(name, 64, 2) == INVALID_DEVICE
    assert ctypes.c_int.in_dll(cuda, "orch_stand_in").value == 1


def test_nothing_goes_before_the_beginning(driver: Start) -> None:
    made = driver(())
    assert made.cuda.cuCtxSynchronize() == NOT_INITIALIZED
    assert made.allocate(8)[0] == NOT_INITIALIZED
    assert made.cuda.cuInit(0) == NO_DEVICE


def test_a_context_comes_before_what_needs_one(driver: Start) -> None:
    made = driver()
    assert made.cuda.cuInit(0) == 0
    assert made.load(HEAD)[0] == INVALID_CONTEXT
    assert made.cuda.cuCtxSetCurrent(ctypes.c_void_p(1)) == INVALID_CONTEXT
    assert [each.calls for each in made.calls()] == [0, 0]
