"""Node sets: what they stand for, and that nothing outside a text decides it."""

import itertools
import re

import pytest
from ClusterShell.RangeSet import RangeSet, RangeSetException
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator.spec.names import expand, names_of
from orchestrator.spec.nodesets import MAX_BLOCKS, MAX_NAMES, NodeSetError, fold, parse


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("coordinator", ("coordinator",)),
        ("worker[1-3]", ("worker1", "worker2", "worker3")),
        ("worker[1,3]", ("worker1", "worker3")),
        ("worker[08-10]", ("worker08", "worker09", "worker10")),
        ("b,a", ("b", "a")),
        ("worker20261129", ("worker20261129",)),
        ("worker[3,1-2]", ("worker3", "worker1", "worker2")),
        ("w[1-2],v,w[3]", ("w1", "w2", "v", "w3")),
        ("rack[1-2]n[1-2]", ("rack1n1", "rack1n2", "rack2n1", "rack2n2")),
    ],
)
def test_expansion(text: str, names: tuple[str, ...]) -> None:
    assert tuple(expand(text)) == names


@given(st.integers(0, 200), st.integers(0, 60))
def test_a_range_holds_every_number_in_order(low: int, more: int) -> None:
    assert tuple(expand(f"w[{low}-{low + more}]")) == tuple(
        f"w{number}" for number in range(low, low + more + 1)
    )


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "@all",
            "@*",
            "a*",
            "a!b",
            "a&b",
            "a^b",
            "a b",
            "a\nb",
            "Worker",
            "1a",
            "-a",
            "a[",
            "a]",
            "a[]",
        ),
        *("a[3-1]", "a[1-x]", "a[1-2", ",", "a,", "w[1-99999999999]", f"w[1-{MAX_NAMES + 1}]", "é", "a" * 64),
        *(
            "w[1-999999]n[1-999999]",
            "a[1--2]",
            "a[-1]",
            "[1-2]",
            "a,a",
            "a[1,1]",
            "a[1-2],a2",
            "a[1-010]",
            "%s",
            "a%d",
            "a[0-4/2]",
        ),
    ],
)
def test_what_is_no_node_set(text: str) -> None:
    with pytest.raises(NodeSetError, match=r"\(got .*, expected .*\)$"):
        expand(text)


@given(st.text(alphabet="ab19[],-w", max_size=14))
def test_nothing_else_escapes(text: str) -> None:
    try:
        names = expand(text)
    except NodeSetError:
        return
    assert 1 <= len(names) <= MAX_NAMES


SETS = st.lists(
    st.from_regex(r"[ab](\[[0-9]{1,3}(-[0-9]{1,3})?(,[0-9]{1,3})?\]|[0-9]|[0-9]{2}b){1,2}b?", fullmatch=True),
    min_size=1,
    max_size=4,
)


@given(SETS)
def test_a_set_stands_for_what_its_ranges_do_one_by_one(parts: list[str]) -> None:
    assume(not re.search(r"\b(0-00+|00+-0|00-000|000-00)\b", ",".join(parts)))  # the same to ClusterShell
    try:
        listed = by_range_set(",".join(parts))
    except RangeSetException:
        listed = []
    assume(len(listed) <= MAX_BLOCKS)
    if not listed or len(set(listed)) < len(listed):
        with pytest.raises(NodeSetError):
            expand(",".join(parts))
    else:
        assert list(expand(",".join(parts), 1 << 20)) == listed


def by_range_set(text: str) -> list[str]:
    """Expands a set by the ranges of ClusterShell."""
    names: list[str] = []
    for part in re.split(r",(?![^\[]*\])", text):
        pieces = [
            [number for item in piece.strip("[]").split(",") for number in RangeSet(item).striter()]
            if piece.startswith("[")
            else [piece]
            for piece in re.split(r"(\[[^\]]*\])", part)
        ]
        names.extend(map("".join, itertools.product(*pieces)))
    return names


@given(SETS, SETS)
def test_a_name_is_found_where_it_stands_and_nowhere_else(parts: list[str], others: list[str]) -> None:
    try:
        names, strangers = expand(",".join(parts)), expand(",".join(others))
    except NodeSetError:
        return
    listed = list(names)
    assert [names.index(name) for name in listed] == list(range(len(names)))
    assert [names[index] for index in range(len(names))] == listed
    for block in strangers.blocks:
        found = [
            (block.name(cut.offset + more), None if cut.index is None else cut.index + more)
            for cut in names.cut(block)
            for more in range(cut.count)
        ]
        expected = [block.name(offset) for offset in range(block.count)]
        assert found == [(name, listed.index(name) if name in listed else None) for name in expected]


@given(SETS)
def test_the_same_names_have_the_same_blocks_however_they_are_written(parts: list[str]) -> None:
    try:
        names = expand(",".join(parts))
    except NodeSetError:
        return
    assert names_of(names) == names
    assert expand(names.text()) == names
    middle = len(names) // 2
    text = ",".join(filter(None, (names.text(0, middle), names.text(middle))))
    assert expand(text) == names


def test_a_fleet_is_one_block_and_is_never_laid_out() -> None:
    fleet = expand("coordinator,worker[1-199999]", 200_000)
    assert (len(fleet), len(fleet.blocks)) == (200_000, 2)
    assert (fleet[123_456], fleet.index("worker199999")) == ("worker123456", 199_999)
    assert "worker200000" not in fleet
    assert "worker0199999" not in fleet
    assert fleet[-2:] == ("worker199998", "worker199999")


@pytest.mark.parametrize("text", ["w[1-65]n[1-64]x0", "w[1-4097]x1,v", "[1-65]n[1-64]n1"])
def test_more_blocks_than_are_kept_are_refused_before_any_is_made(text: str) -> None:
    with pytest.raises(NodeSetError, match=f"at most {MAX_BLOCKS} ranges"):
        parse(text, 1 << 40)


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["root"], "root"),
        (["root", "worker1", "worker2", "worker3"], "root,worker[1-3]"),
        (["worker1-target", "worker2-target"], "worker[1-2]-target"),
        (["worker9", "worker10"], "worker[9-10]"),
        (["n08", "n09", "n10"], "n[08-10]"),
        (["n9", "n010"], "n9,n010"),
        (["n1", "n3", "n2"], "n1,n3,n2"),
        (["a1b1", "a2b2"], "a1b1,a2b2"),
        (["a1b1", "a1b2", "a2b2"], "a1b[1-2],a2b2"),
        (["p12345678", "p12345679"], "p12345678,p12345679"),
    ],
)
def test_names_are_folded_where_one_number_counts_up(names: list[str], folded: str) -> None:
    assert fold(names) == folded


@given(
    st.lists(st.from_regex(r"[ab]{1,2}[0-9]{1,2}([ab][0-9]{1,2})?", fullmatch=True), unique=True, min_size=1)
)
def test_what_is_folded_expands_to_the_same_names_in_order(names: list[str]) -> None:
    assert list(expand(fold(names))) == names
    assert list(expand(fold(sorted(names)))) == sorted(names)
