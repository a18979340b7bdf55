"""Packed texts: unpacked they are what they were, and they are never longer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.build.packed import FIRST, Packed, packed


def unpacked(made: Packed) -> str:
    def text(byte: int) -> str:
        return chr(byte) if byte < FIRST else "".join(map(text, made.pairs[byte - FIRST]))

    return "".join(map(text, made.data))


@given(st.text("ab.\n\x00\x7f") | st.text(st.characters(max_codepoint=127)))
def test_what_is_packed_is_unpacked(given_text: str) -> None:
    made = packed(given_text)
    assert unpacked(made) == given_text
    assert made.size == len(given_text)
    assert len(made.data) + 2 * len(made.pairs) <= len(given_text)
    assert packed(given_text) == made


def test_what_repeats_shrinks() -> None:
    text = "".join(f"mul.rn.f64 f{number},f1,f2;\n" for number in range(200))
    made = packed(text)
    assert unpacked(made) == text
    assert len(made.data) + 2 * len(made.pairs) < len(text) / 4
