"""Addresses that are further than one instruction reaches; regions that need no guard."""

from __future__ import annotations

import re

from orchestrator.build.ptx import THREAD, Code, constant
from orchestrator.plan.words import BINARY32, BINARY64


def test_a_run_of_any_length_is_stepped_over() -> None:
    for words in (1, 2**29 - 1, 2**29, 2**32 + 5):
        code = Code(BINARY64, 4)
        code.scaled(THREAD, words, code.buffer("work"), is_fixed=False)
        steps = [int(each) for each in re.findall(r"mad\.wide\.u32 a\d+,r0,(\d+),", code.entry("k"))]
        assert sum(steps) == 8 * words
        assert all(each < 2**32 for each in steps)


def test_a_word_far_away_has_an_address_of_its_own() -> None:
    code = Code(BINARY32, 4)
    assert code.at("a0", 2**29 - 1) == f"[a0+{2**31 - 4}]"
    far = code.at("a0", 2**29)
    assert f"add.u64 {far[1:-1]},a0,{2**31};" in code.entry("k")


def test_who_all_do_something_is_not_asked_who_they_are() -> None:
    code = Code(BINARY64, 4)
    for threads in (4, 9):
        with code.only(threads):
            code.put("mov.u32", "r1", 7)
    assert "L1" not in code.entry("k")
    with code.only(3):
        code.put("mov.u32", "r1", 7)
    assert "setp.ge.u32 p1,r0,3;\n@p1 bra L1;\nmov.u32 r1,7;\nL1:" in code.entry("k")


def test_constants_are_their_bits() -> None:
    assert constant(-0.0, BINARY64) == "0d8000000000000000"
    assert constant(5e-324, BINARY64) == "0d0000000000000001"
    assert constant(1.5, BINARY32) == "0f3FC00000"
