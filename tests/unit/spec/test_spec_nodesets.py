"""Node sets: what they stand for, and that nothing outside a text decides it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.spec.nodesets import MAX_NAMES, NodeSetError, assign, expand, fold


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
    assert expand(text) == names


@given(st.integers(0, 200), st.integers(0, 60))
def test_a_range_holds_every_number_in_order(low: int, more: int) -> None:
    assert expand(f"w[{low}-{low + more}]") == tuple(f"w{number}" for number in range(low, low + more + 1))


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


def test_the_first_key_that_names_a_role_has_it() -> None:
    assert assign({"a": ("w1", "w2"), "b": ("w2", "w3")}) == {"w1": "a", "w2": "a", "w3": "b"}


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
