"""Sample files: every decimal rounded once to binary64, and everything else refused at its place."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.errors import RefusedError
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
