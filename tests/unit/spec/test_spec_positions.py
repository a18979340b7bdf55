"""Places: for any document, in both notations, a place is where the very text of the key or value begins."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.spec.document import Document, load

# letters of one, two, three and four bytes, and marks that only quoted text can hold
TEXT = st.text(alphabet="abcxyz 0189-_.:#[]{},'é漢𝄞\u2028", max_size=8)
NUMBERS = st.one_of(
    st.integers(-(2**53) + 1, 2**53 - 1), st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
)
SCALARS = st.one_of(NUMBERS, st.booleans(), TEXT)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(TEXT, VALUES, min_size=1, max_size=4)
Path_ = tuple[str | int, ...]


class Writer:
    """Writes a document and notes, independently of any parser, where each key and value begins."""

    def __init__(self) -> None:
        self.text = ""
        self.keys: dict[Path_, int] = {}
        self.values: dict[Path_, int] = {}

    def yaml(self, value: Any, path: Path_ = (), depth: int = 0) -> None:
        """Block style for the outer two levels, flow style inside."""
        if isinstance(value, dict) and value and depth < 2:
            for index, (key, part) in enumerate(value.items()):
                self.text += "  " * depth if index or depth else ""
                if index == 0:
                    self.values[path] = len(self.text)
                self._key((*path, key), key)
                self.text += ":"
                if isinstance(part, dict) and part and depth < 1:
                    self.text += "  # é, then what belongs to it\n"
                    self.yaml(part, (*path, key), depth + 1)
                else:
                    self.text += " "
                    self.flow(part, (*path, key), ": ")
                    self.text += "\n"
            return
        self.flow(value, path, ": ")

    def flow(self, value: Any, path: Path_, colon: str) -> None:
        self.values[path] = len(self.text)
        if isinstance(value, dict):
            self.text += "{"
            for index, (key, part) in enumerate(value.items()):
                self.text += ", " if index else " "
                self._key((*path, key), key)
                self.text += colon
                self.flow(part, (*path, key), colon)
            self.text += "}"
        elif isinstance(value, list):
            self.text += "["
            for index, part in enumerate(value):
                self.text += ", " if index else ""
                self.flow(part, (*path, index), colon)
            self.text += "]"
        else:
            self.text += quoted(value)

    def toml(self, value: dict[str, Any]) -> None:
        """Plain values first, then a table for each mapping, with inline tables inside."""
        self.values[()] = 0
        plain = {key: part for key, part in value.items() if not isinstance(part, dict)}
        tables = {key: part for key, part in value.items() if isinstance(part, dict)}
        for key, part in plain.items():
            self._pair((key,), part)
        for key, table in tables.items():
            self.text += "# é\n"
            self.values[(key,)] = len(self.text)
            self.text += "["
            self._key((key,), key)
            self.text += "]\n"
            for name, part in table.items():
                self._pair((key, name), part)

    def _pair(self, path: Path_, value: Any) -> None:
        self._key(path, str(path[-1]))
        self.text += " = "
        self.flow(value, path, " = ")
        self.text += "\n"

    def _key(self, path: Path_, key: str) -> None:
        self.keys[path] = len(self.text)
        self.text += quoted(key)


def quoted(value: Any) -> str:
    """Text in double quotes, which both notations read alike; the line separator as an escape."""
    return json.dumps(value, ensure_ascii=False).replace("\u2028", "\\u2028")


def places(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def mismatches(document: Document, written: Writer) -> Iterator[tuple[object, ...]]:
    for path, offset in written.values.items():
        where = document.where(path)
        if (where.line, where.column) != places(written.text, offset):
            yield "value", path, (where.line, where.column), places(written.text, offset)
    for path, offset in written.keys.items():
        where = document.where(path, key=True)
        if (where.line, where.column) != places(written.text, offset):
            yield "key", path, (where.line, where.column), places(written.text, offset)


@given(DOCUMENTS, st.sampled_from([b"", b"\xef\xbb\xbf"]))
def test_yaml_places_are_where_the_text_is(value: dict[str, Any], mark: bytes) -> None:
    written = Writer()
    written.yaml(value)
    document, refusals = load(Path("a.yaml"), mark + written.text.encode())
    assert refusals == ()
    assert document is not None
    assert document.value == value
    assert list(mismatches(document, written)) == []


@given(DOCUMENTS)
def test_toml_places_are_where_the_text_is(value: dict[str, Any]) -> None:
    written = Writer()
    written.toml(value)
    document, refusals = load(Path("a.toml"), written.text.encode())
    assert refusals == ()
    assert document is not None
    assert document.value == value
    assert list(mismatches(document, written)) == []


@given(DOCUMENTS)
def test_line_ends_of_windows_change_no_place(value: dict[str, Any]) -> None:
    for name in ("a.yaml", "a.toml"):
        written = Writer()
        if name.endswith(".yaml"):
            written.yaml(value)
        else:
            written.toml(value)
        document, _ = load(Path(name), written.text.replace("\n", "\r\n").encode())
        assert document is not None
        assert list(mismatches(document, written)) == []


def test_toml_dotted_keys_and_arrays_of_tables() -> None:
    text = '"é".b."c d" = [1,\n  {x = 2, y.z = 3}]\n[[item]]\nn = 1\n[[item]]\nn = 2\n[item.sub]\nm = 3\n'
    document, refusals = load(Path("a.toml"), text.encode())
    assert refusals == ()
    assert document is not None
    where = {
        path: (str(document.where(path)), str(document.where(path, key=True)))
        for path in [
            ("é", "b", "c d"),
            ("é", "b", "c d", 1, "y", "z"),
            ("item", 1, "n"),
            ("item", 1, "sub", "m"),
        ]
    }
    assert where == {
        ("é", "b", "c d"): ("a.toml:1:15", "a.toml:1:7"),
        ("é", "b", "c d", 1, "y", "z"): ("a.toml:2:17", "a.toml:2:13"),
        ("item", 1, "n"): ("a.toml:6:5", "a.toml:6:1"),
        ("item", 1, "sub", "m"): ("a.toml:8:5", "a.toml:8:1"),
    }


def test_what_is_not_there_points_at_its_parent() -> None:
    document, _ = load(Path("a.yaml"), b"# first\nouter:\n  inner: [1, 2]\n")
    assert document is not None
    assert str(document.where(("outer", "inner", 7))) == "a.yaml:3:3"
    assert str(document.where(("outer", "nothing", "at", "all"))) == "a.yaml:2:1"
    assert str(document.where(("nothing",))) == "a.yaml:2:1"


def test_places_inside_a_text_only_where_it_stands_letter_by_letter() -> None:
    text = 'plain: e = x\nquoted: "e = x"\nescaped: "e \\u003d x"\nfolded: >-\n  e =\n  x\n'
    document, _ = load(Path("a.yaml"), text.encode())
    assert document is not None
    inner = {key: document.inner((key,)) for key in ("plain", "quoted", "escaped", "folded")}
    assert {key: where and str(where) for key, where in inner.items()} == {
        "plain": "a.yaml:1:8",
        "quoted": "a.yaml:2:10",
        "escaped": None,
        "folded": None,
    }
