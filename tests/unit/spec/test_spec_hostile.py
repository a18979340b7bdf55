"""Whatever the bytes, a reader gives a value or raises RefusedError; nothing else escapes it."""

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from covering import examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from orchestrator.errors import Label, Refusal, RefusedError
from orchestrator.spec import read
from orchestrator.spec.data import read_samples
from orchestrator.spec.document import MAX_BYTES, load

GOOD = sorted((Path(__file__).parents[2] / "refusals" / "good").glob("*.*"))
SPECS = [path for path in GOOD if path.suffix != ".csv"]
YAML_SCRAPS = st.lists(
    st.sampled_from(
        [
            *(
                "orch: run/v1\n",
                "- ",
                "? ",
                ": ",
                "[",
                "]",
                "{",
                "}",
                ",",
                "&a ",
                "*a ",
                "!!int ",
                "!x ",
                "<<: ",
            ),
            *(
                "---\n",
                "...\n",
                "%YAML 1.2\n",
                "# c\n",
                "'",
                '"',
                ">",
                "|",
                "\\",
                "-\n",
                "\n",
                "  ",
                "\t",
                "a",
                "1",
            ),
            *(
                ".inf",
                "0x",
                "0o7",
                "~",
                "roles: ",
                "samples: ",
                "\\ud800",
                "\u2028",
                "\x85",
                "\ufeff",
                "é",
                "@",
                "`",
            ),
            *("\r", "=", "\x00"),
        ]
    ),
    max_size=30,
).map("".join)
TOML_SCRAPS = st.lists(
    st.sampled_from(
        [
            *(
                'orch = "run/v1"\n',
                "[a]\n",
                "[[a]]\n",
                "a.b = ",
                "= ",
                "[",
                "]",
                "{",
                "}",
                ", ",
                '"',
                "'",
                '"""',
            ),
            *("1", "inf", "nan", "0x_", "1979-05-27", "\n", "# c", "\\u00", ".", "a", "é", "\r", "\x00"),
        ]
    ),
    max_size=30,
).map("".join)


def refusals(path: Path, data: bytes) -> tuple[Refusal, ...]:
    return load(path, data)[1]


def labels(name: str, data: bytes) -> list[Label]:
    return [refusal.label for refusal in refusals(Path(name), data)]


@given(st.one_of(st.binary(max_size=200), YAML_SCRAPS.map(str.encode), TOML_SCRAPS.map(str.encode)))
@example(b"\xff\xfeo\x00r\x00")
@example(b"%YAML 9.9\n--- a")
@example(b"%TAG ! !\n--- !a b")
@example(b'"\\ud800": "\\udfff"')
@example(b"? {a: 1}\n: 2\n? [x]\n: 3\n")
@example(b"a: |9\n x")
@example(b"- - - - -")
@example(b"a = 0x" + b"f" * 9000)
@example(b"a = " + b"9" * 9000)
@example(b"a = 1e" + b"9" * 9000)
@example(b"a: " + b"9" * 9000)
@example(b"a: 0x" + b"f" * 9000)
@example(b"a: 1e" + b"9" * 9000)
@example(b"[" * 5000)
@example(b"{a: " * 5000)
@example(b"a = " + b"[" * 5000)
@example(b"a = " + b"{a = " * 5000)
@example(b".".join([b"a"] * 5000) + b" = 1")
@example(b"- " * 5000)
@example(b"a: &a [*a]")
def test_no_bytes_escape_the_loader(data: bytes) -> None:
    for name in ("a.yaml", "a.toml"):
        for refusal in refusals(Path(name), data):
            assert "(got " in refusal.message
            assert ", expected " in refusal.message
            assert "\n" not in str(refusal)
            assert "\x1b" not in str(refusal)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60, 150))
@given(st.sampled_from(SPECS), st.data())
def test_no_change_of_a_good_file_escapes_the_readers(
    tmp_path: Path, good: Path, data: st.DataObject
) -> None:
    content = bytearray(good.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        scrap = data.draw(
            st.one_of(st.binary(max_size=3), st.sampled_from([b"[]", b"{}", b"-1", b"'", b"a: ", b"null"]))
        )
        content[at : at + data.draw(st.integers(0, 12))] = scrap
    folder = tmp_path / "changed"
    folder.mkdir(exist_ok=True)
    for path in GOOD:
        (folder / path.name).write_bytes(path.read_bytes())
    changed = folder / good.name
    changed.write_bytes(content)
    for refusal in read.validate((changed,)):
        assert "(got " in refusal.message
        assert ", expected " in refusal.message


@given(st.binary(max_size=60) | st.text(alphabet='0123456789.,eE+-xyna\r\n "_', max_size=60).map(str.encode))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_escape_the_sample_reader(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(data)
    with contextlib.suppress(RefusedError):
        samples = read_samples(path, 2)
        assert samples.rows >= 1
        assert len(samples.words) == 2 * samples.rows


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("NO", "NO"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("true", True),
        ("Null", None),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("+7", 7),
    ],
)
def test_plain_scalars_mean_what_yaml_1_2_says(text: str, value: object) -> None:
    document, found = load(Path("a.yaml"), f"a: {text}\n".encode())
    assert found == ()
    assert document is not None
    assert document.value == {"a": value}
    assert type(document.value["a"]) is type(value)


def test_an_octal_look_alike_is_refused_rather_than_guessed() -> None:
    assert labels("a.yaml", b"a: 010\n") == [Label.VALUE_FORMAT]
    assert labels("a.yaml", b"a: 0\n") == []


@pytest.mark.parametrize("text", ["1", "1.5", "true", "~", "null", "", "[a]", "{a: 1}"])
def test_keys_that_are_no_text(text: str) -> None:
    assert Label.VALUE_TYPE in labels("a.yaml", f"? {text}\n: 1\n".encode())


def test_norway_is_a_key() -> None:
    document, found = load(Path("a.yaml"), b"{no: 1, y: 2, n: 3, on: 4}")
    assert found == ()
    assert document is not None
    assert document.value == {"no": 1, "y": 2, "n": 3, "on": 4}


def test_laughs_are_refused_where_they_begin_and_never_multiplied() -> None:
    lines = ["a0: &a0 lol"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    found = refusals(Path("a.yaml"), "\n".join(lines).encode())
    assert {refusal.label for refusal in found} == {Label.YAML_FEATURE}
    assert len(found) == 10 + 9 * 9


def test_every_duplicate_in_a_flow_mapping_is_named_at_its_own_place() -> None:
    found = refusals(Path("a.yaml"), b"a: {b: 1, c: 2, b: 3, 'b': 4}\n")
    assert [(refusal.label, refusal.where.column, refusal.key) for refusal in found] == [
        (Label.KEY_DUPLICATE, 17, "a.b"),
        (Label.KEY_DUPLICATE, 23, "a.b"),
    ]


def test_a_duplicate_of_toml_hides_nothing_else() -> None:
    document, found = load(Path("a.toml"), b"a = 1\na = 2\nb = inf\n")
    assert [refusal.label for refusal in found] == [Label.KEY_DUPLICATE, Label.VALUE_RANGE]
    assert document is not None
    assert document.value == {"a": 1, "b": None}


def test_arrays_of_tables_are_no_duplicates() -> None:
    text = b"[[a]]\nn = 1\n[a.b]\nm = 1\n[[a]]\nn = 2\n[a.b]\nm = 2\n"
    document, found = load(Path("a.toml"), text)
    assert found == ()
    assert document is not None
    assert document.value == {"a": [{"n": 1, "b": {"m": 1}}, {"n": 2, "b": {"m": 2}}]}


def test_a_file_larger_than_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"#" * MAX_BYTES)
    assert load(path)[0] is None
    assert [refusal.label for refusal in load(path)[1]] == [Label.FIELD_MISSING]
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    assert [refusal.label for refusal in load(path)[1]] == [Label.FILE_UNREADABLE]


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _loop(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "label"),
    [(_folder, Label.FILE_UNREADABLE), (_pipe, Label.FILE_UNREADABLE), (_loop, Label.FILE_UNREADABLE)],
)
def test_what_is_no_regular_file(tmp_path: Path, make: Callable[[Path], None], label: Label) -> None:
    path = tmp_path / "lane.yaml"
    make(path)
    with pytest.raises(RefusedError) as caught:
        read.read_lane(path)
    assert [refusal.label for refusal in caught.value.refusals] == [label]


def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "lane.yaml"
    path.write_text("orch: lane/v1\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read every file")
    with pytest.raises(RefusedError) as caught:
        read.read_lane(path)
    assert [refusal.label for refusal in caught.value.refusals] == [Label.FILE_UNREADABLE]
    assert stat.S_IMODE(path.stat().st_mode) == 0


@pytest.mark.parametrize("name", ["\x00", "a\x00b", "x" * 5000, "\udcff\ud800"])
def test_names_that_no_file_can_have(name: str) -> None:
    with pytest.raises(RefusedError) as caught:
        read.read_lane(Path(name))
    assert caught.value.refusals[0].label in (Label.FILE_UNREADABLE, Label.FILE_MISSING)


@pytest.mark.parametrize("name", [r"\0", r"a\0b", r"\udcff", "x" * 5000, "~nobody-of-that-name/x", "/", "."])
def test_references_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    path = tmp_path / "lane.yaml"
    rest = "updates: 2\nsplit: 1\ndeadlines: {connect: 1s, round: 1s, run: 1s}\n"
    path.write_text(f'orch: lane/v1\nname: a\nrun: "{name}"\n{rest}')
    found = read.validate((path,))
    assert len(found) == 1
    assert found[0].where.line == 3
