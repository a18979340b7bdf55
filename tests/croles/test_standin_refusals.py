"""What the stand-in's driver does not take: texts of modules, lists of cards."""

from __future__ import annotations

import ctypes
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from standin_bench import CARD, HEAD, SQUARE, Driver, doubles, kernel

Start = Callable[..., Driver]

NO_BINARY, INVALID_PTX, UNSUPPORTED, NOT_FOUND, UNKNOWN = 209, 218, 222, 500, 999

REFUSED = (
    "",
    "st.global.f64 [a1],f0;",  # goes past its end
    "setp.lt.u32 p0,r0,1; @p0 ret;",
    "@p0 bra there; ret;",
    "bra there; there:",
    "here: here: ret;",
    "add.f64 f0,f0,f1; ret;",
    "mul.f64 f0,f0,f1; ret;",
    "div.f64 f0,f0,f1; ret;",
    "add.rz.f64 f0,f0,f1; ret;",
    "add.rn.f32 f0,f0,f1; ret;",
    "add.rn.ftz.f64 f0,f0,f1; ret;",
    "fma.rn.f64 f0,f0,f1,f2; ret;",
    "mad.rn.f64 f0,f0,f1,f2; ret;",
    "div.approx.f64 f0,f0,f1; ret;",
    "sqrt.approx.f64 f0,f0; ret;",
    "bar.sync 0; ret;",
    "atom.global.add.f64 f0,[a0],f1; ret;",
    "ld.shared.f64 f0,[a0]; ret;",
    ".local .b8 depot[8]; ret;",
    "add.rn.f64 f0,f0; ret;",
    "add.rn.f64 f0,f0,f1,f2; ret;",
    "add.rn.f64 f0,f0,f1 ret;",
    "add.rn.f64 f0,f0,f5; ret;",
    "add.rn.f64 f0,f0,f00; ret;",
    "add.rn.f64 f0,f0,r0; ret;",
    "add.rn.f64 f0,f0,1.5; ret;",
    "add.rn.f64 f0,f0,0d3FF; ret;",
    "add.rn.f64 f0,f0,0f3F800000; ret;",
    "add.rn.f64 0d3FF0000000000000,f0,f1; ret;",
    "mov.u32 r0,4294967296; ret;",
    "mov.u32 r0,010; ret;",
    "mov.u32 r0,-1; ret;",
    "mov.u32 r0,%tid.y; ret;",
    "mov.u32 r0,%laneid; ret;",
    "mov.u32 %tid.x,r0; ret;",
    "setp.eq.u32 p0,r0,1; ret;",
    "@!p0 bra here; here: ret;",
    "@r0 ret; ret;",
    "@p0 @p1 ret; ret;",
    "ld.param.u64 a0,[B]; ret;",
    "ld.param.u64 a0,[A+8]; ret;",
    "ld.global.f64 f0,[r0]; ret;",
    "ld.global.f64 f0,[a0-8]; ret;",
    "ld.global.f64 f0,[a0+4294967296]; ret;",
    "ld.global.f64 f0,a0; ret;",
    "mov.u32 r2,1; .reg .f64 g<2>; ret;",
    ".reg .f64 f<2>; ret;",
    ".reg .f16 h<2>; ret;",
    "ret; } junk {",
    "ret; /* and no end",
)


def test_what_is_not_known_is_refused(ready: Driver) -> None:
    for fine in (
        "ret;",
        "here: bra here;",
        "// a remark\nret; /* another */",
        "add.u64 a0,a0,18446744073709551615; ret;",
    ):
        assert ready.load(HEAD + kernel(fine))[0] == 0, fine
    for body in REFUSED:
        assert ready.load(HEAD + kernel(body))[0] == INVALID_PTX, body


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        (".version 6.3", ".version 7.1", 0),
        (".version 6.3", ".version 8.4", 0),
        (".version 6.3", ".version 8.5", UNSUPPORTED),  # newer than a driver 550
        (".version 6.3", ".version 6.2", INVALID_PTX),  # did not know sm_75
        (".version 6.3\n", "", INVALID_PTX),
        ("6.3\n.target sm_75", "7.1\n.target sm_86", 0),
        ("6.3\n.target sm_75", "7.8\n.target sm_90", NO_BINARY),
        ("sm_75", "sm_75, debug", INVALID_PTX),
        ("sm_75", "sm_76", INVALID_PTX),
        ("6.3\n.target sm_75", "8.4\n.target sm_90a", INVALID_PTX),
        ("size 64", "size 32", INVALID_PTX),
        (".visible .entry", ".entry", INVALID_PTX),
        (".visible .entry", ".visible .func", INVALID_PTX),
        ("(.param .u64 A)", "(.param .u32 A)", INVALID_PTX),
        ("(.param .u64 A)", "(.param .u64 A,.param .u64 A)", INVALID_PTX),
        ("(.param .u64 A)", "()", INVALID_PTX),
        ("(.param .u64 A)", "(.param .u64 A,)", INVALID_PTX),
        (
            "(.param .u64 A)",
            "(.param .u64 A" + "".join(f",.param .u64 B{i}" for i in range(16)) + ")",
            INVALID_PTX,
        ),
        ("}", "", INVALID_PTX),
    ],
)
def test_what_a_module_is_for(ready: Driver, before: str, after: str, error: int) -> None:
    text = HEAD + kernel("ret;")
    assert before in text
    assert ready.load(text.replace(before, after, 1))[0] == error


def test_a_module_has_each_kernel_once(ready: Driver) -> None:
    text = HEAD + kernel("ret;") + kernel(SQUARE, "other")
    assert ready.load(text + kernel("ret;"))[0] == INVALID_PTX
    at = ready.put(doubles(3))
    assert ready.launch(ready.function(text, "other"), at) == 0
    assert ready.get(at, 8) == doubles(9)
    _, module = ready.load(text)
    assert ready.cuda.cuModuleGetFunction(ctypes.byref(ctypes.c_void_p()), module, b"none") == NOT_FOUND


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("card minor=3 ", "card minor=03 "),
        ("card minor=3 ", "card minor=256 "),
        ("uuid=GPU-", "uuid=gpu-"),
        ("cdef\x20bus", "cdeF bus"),
        ("bus=0000:41:00.0", "bus=0000:141:00.0"),
        ("fault=none", "fault=some"),
        ("mig=0", "mig=0 more=1"),
        ("reserved_mib=3", "reserved_mib=65"),
        ("name=NVIDIA GeForce RTX 3070", "name="),
        ("3070\n", "3070"),
    ],
)
def test_cards_are_read_in_one_form(driver: Start, before: str, after: str) -> None:
    made = driver((CARD,))
    path = made.folder / "standin" / "cards"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    assert made.cuda.cuInit(0) == UNKNOWN
    path.write_text(text)
    assert made.cuda.cuInit(0) == 0


def test_more_cards_than_a_machine_has_are_refused(driver: Start) -> None:
    made = driver([CARD] * 33)
    assert made.cuda.cuInit(0) == UNKNOWN


LOOP = """mov.u32 r2,0; ld.global.f64 f0,[a1+8];
again: add.rn.f64 f0,f0,f1; add.u32 r2,r2,1; setp.lt.u32 p0,r2,10; @p0 bra again;
st.global.f64 [a1],f0; ret;"""


def changed(chance: random.Random, words: Sequence[str]) -> str:
    """Words left out, doubled, exchanged or made others."""
    made = list(words)
    for _ in range(chance.choice((1, 1, 2))):
        at, letter = chance.randrange(len(made)), chr(chance.randrange(1, 128))
        made[at] = chance.choice(("", made[at] * 2, chance.choice(words), made[at] + letter))
    return "".join(made)


def test_no_text_leads_anywhere_else(driver: Start) -> None:
    """It is refused, or is another kernel that does nothing which its card does not notice."""
    chance, words = random.Random(7), re.findall(r"[\w.%$]+|\s+|.", HEAD + kernel(LOOP))
    cards = [replace(CARD, bus=f"0000:{bus:02x}:00.0") for bus in range(32)]
    made, taken = driver(cards), []
    for card in cards:
        made.begin(card.bus)
        at, error = made.put(doubles(1, 2)), 0
        for _ in range(50):
            result, module = made.load(text := changed(chance, words))
            assert result in (0, NO_BINARY, INVALID_PTX, UNSUPPORTED), text
            if not result and not error and "entry k(" in text:
                error = made.launch(made.entry(module, "k"), at)
                taken.append(error)
            if error:
                break
    assert {0, 700} <= set(taken) <= {0, 700, 702, 716}
