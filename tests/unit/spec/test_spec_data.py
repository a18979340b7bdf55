"""Sample files: every decimal rounded once to binary64, and everything else refused at its place."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.errors import Label, RefusedError
from orchestrator.spec.data import MAX_REFUSALS, read_samples

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(text: str) -> Path:
        path = tmp_path / "data.csv"
        path.write_bytes(text.encode())
        return path

    return put


def refusals(path: Path, width: int, header: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(RefusedError) as caught:
        read_samples(path, width, header)
    return [
        f"{refusal.label} {refusal.where.line}:{refusal.where.column}" for refusal in caught.value.refusals
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=width, max_size=width),
            min_size=1,
            max_size=5,
        )
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n"]),
)
def test_every_word_comes_back_to_the_bit(write: Write, rows: list[list[float]], end: str, last: str) -> None:
    text = end.join(",".join(map(repr, row)) for row in rows) + last
    samples = read_samples(write(text), len(rows[0]))
    words = [word for row in rows for word in row]
    assert samples.rows == len(rows)
    assert samples.words.tobytes() == struct.pack(f"={len(words)}d", *words)


def test_a_header_must_name_the_columns(write: Write) -> None:
    path = write("x0,x1,y\n1,2,3\n")
    assert read_samples(path, 3, ("x0", "x1", "y")).rows == 1
    assert read_samples(path, 3).rows == 1
    assert refusals(path, 3, ("x0", "y", "x1")) == ["data-format 1:4"]


@pytest.mark.parametrize(
    "word",
    [
        "nan",
        "inf",
        "-inf",
        "Infinity",
        "1e999",
        "0x10",
        "1_0",
        "\N{ARABIC-INDIC DIGIT ONE}",
        "1d3",
        "--1",
        "1 2",
        '"1"',
        "",
    ],
)
def test_what_is_no_word(write: Write, word: str) -> None:
    assert refusals(write(f"1,2\n1,{word}\n"), 2) == ["data-format 2:3"]


def test_columns_count_from_the_word_itself(write: Write) -> None:
    assert refusals(write("1,  x,2\n"), 3) == ["data-format 1:5"]


def test_faults_without_end_are_told_up_to_a_bound(write: Write) -> None:
    assert len(refusals(write("1,x\n" * 1000), 2)) == MAX_REFUSALS


def test_faults_in_one_row_are_told_up_to_the_same_bound(write: Write) -> None:
    assert len(refusals(write(",".join("x1" * 1000)), 2000)) == MAX_REFUSALS


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{rows}1,x\n", "data-format {line}:3"),
        ("{rows}1,2,3\n{rows}", "data-shape {line}:1"),
        ("{rows}\n{rows}", "data-shape {line}:1"),
        ("{rows}1,1\r2\n", "data-format {line}:3"),
        ("{rows}1,1e999\n{rows}", "data-format {line}:3"),
        ("a,b\n{rows}1,.\n", "data-format {line1}:3"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_fault_far_down_is_found_at_its_place(write: Write, text: str, place: str, end: str) -> None:
    rows = 100_000
    written = text.format(rows=f"1,2{end}" * rows)
    assert refusals(write(written), 2) == [place.format(line=rows + 1, line1=rows + 2)]


def test_many_rows_are_the_same_read_together_as_one_by_one(write: Write) -> None:
    cells = ["1", "-2.5", "+.5e-3", "1.", " 7", "7 ", "1E5", "0.1", "5e-324", "-0"]
    rows = [f"{cells[row % 10]},{cells[row * 7 % 10]}" for row in range(30_000)]
    samples = read_samples(write("\n".join(rows) + "\r\n"), 2)
    assert samples.rows == len(rows)
    assert samples.words.tolist() == [float(cell) for row in rows for cell in row.split(",")]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("0159.eE+- ,\r\n", max_size=12).filter(lambda text: not text.endswith("\r")))
def test_what_is_read_together_is_what_is_read_cell_by_cell(write: Write, text: str) -> None:
    """A second row, with a fault of its own, leaves no line of the first to be read together with others.

    A row's end would make one line end of a last `\\r`, and another text of what stands before.
    """
    try:
        first: object = read_samples(write(text), 2)
    except RefusedError as error:
        first = {(each.label, each.where.line) for each in error.refusals if each.where.line}
    end = "" if text.endswith("\n") or not text else "\n"
    with pytest.raises(RefusedError) as caught:
        read_samples(write(f"{text}{end}1,x\n"), 2)
    line = (text + end).count("\n") + 1
    found = {(refusal.label, refusal.where.line) for refusal in caught.value.refusals}
    assert (Label.DATA_FORMAT, line) in found
    others = {each for each in found if each[1] != line}
    assert others == (first if isinstance(first, set) else set())
