from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli.chart import can_draw, chart

finite = st.floats(allow_nan=False, allow_infinity=False)


def test_a_falling_series_falls():
    assert chart([4.0, 3.0, 2.0, 1.0], height=2) == ("4 █▃", "1 ██▆▁")


def test_without_blocks_only_ascii_is_used():
    lines = chart([3.0, 2.0, 1.0], height=3, blocks=False)
    assert all(line.isascii() for line in lines)
    assert [line.count("#") for line in lines] == [1, 2, 3]


@pytest.mark.parametrize(
    ("encoding", "can"), [("utf-8", True), ("ascii", False), ("latin-1", False), (None, False)]
)
def test_what_an_encoding_can_show(encoding, can):
    assert can_draw(encoding) is can


@pytest.mark.parametrize("values", [[0.0, 5e-324], [-1.7e308, 1.7e308], [-5e-324, 1.7e308]])
def test_the_lowest_and_the_highest_differ_however_near_or_far(values):
    upper, lower = bars_of(values, chart(values, height=2))
    assert (upper, lower) == (" █", "▁█")


@pytest.mark.parametrize("columns", [38, 20, 9, 1])
def test_a_chart_is_no_wider_than_the_terminal_but_for_its_labels(columns):
    lines = chart([100 / (n + 1) for n in range(200)], columns=columns)
    longest_label = len("0.507614")
    assert max(map(len, lines)) <= max(columns, longest_label + 2)
    assert len(lines) == 6


def test_values_that_are_no_numbers_draw_nothing():
    assert chart([]) == ()
    assert chart([math.nan, math.inf]) == ()


def bars_of(values: list[float], lines: tuple[str, ...]) -> list[str]:
    """The lines without their labels."""
    margin = max(len(f"{max(values):.6g}"), len(f"{min(values):.6g}")) + 1
    return [line[margin:] for line in lines]


@given(st.lists(finite, min_size=1, max_size=200), st.integers(2, 9), st.booleans())
def test_any_series_fits_its_frame(values, height, blocks):
    lines = chart(values, width=len(values), height=height, blocks=blocks)
    assert len(lines) == height
    bars = bars_of(values, lines)
    assert set("".join(bars)) <= set(" ▁▂▃▄▅▆▇█" if blocks else " #")
    # the lowest value still shows, so the last line has a bar in every column
    assert len(bars[-1]) == len(values)
    assert " " not in bars[-1]


def test_a_long_series_is_thinned_to_the_width_and_ends_with_its_last_value():
    lines = chart([float(value) for value in range(1000)], width=10, height=4)
    assert [len(line) for line in lines] == [len("999 ") + 10] * 4
    assert lines[0].startswith("999 ")
    assert lines[-1].startswith(" 99 ")


@given(st.lists(finite, min_size=2, max_size=40))
def test_a_higher_value_never_has_a_lower_bar(values):
    rows = [row.ljust(len(values)) for row in bars_of(values, chart(values))]
    heights = [sum(" ▁▂▃▄▅▆▇█".index(row[column]) for row in rows) for column in range(len(values))]
    in_order = [height for _, height in sorted(zip(values, heights, strict=True))]
    assert in_order == sorted(in_order)
