"""The journal: its chain, its torn tails, its end."""

import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.canonical import dumps
from evidence.digest import sha256_bytes, sha256_file
from evidence.event import GENESIS, Event, EventError, parse
from evidence.stream import SEALED, TORN, Growing, Stream, StreamError, TornError, read

RUN = "0199d4c2-7f00-7000-8000-000000000001"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stream.jsonl"


def write(path, count, *, sealed=False):
    with Stream.create(path, RUN, fsync=False) as stream:
        for number in range(1, count + 1):
            stream.append("orch.step.started", f"step/{number}", {"attempt": number, "loss": 0.5, "ü": "\n"})
        if sealed:
            stream.append(SEALED, "bundle", {"verdict": "pass"})
        return stream.events


def test_a_line_is_a_canonical_cloudevent_that_names_the_line_before(path):
    write(path, 2)
    first, second = path.read_bytes().splitlines()
    value = json.loads(second)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", value.pop("time"))
    assert int(value.pop("monotonicns")) >= int(json.loads(first)["monotonicns"])
    assert json.loads(first)["prevhash"] == GENESIS
    assert value == {
        "specversion": "1.0",
        "id": "2",
        "source": RUN,
        "type": "orch.step.started",
        "subject": "step/2",
        "sequence": "2",
        "prevhash": sha256_bytes(first),
        "data": {"attempt": 2, "loss": 0.5, "ü": "\n"},
    }


def test_what_append_gives_is_what_a_reader_sees(path):
    written = write(path, 5, sealed=True)
    assert read(path) == written
    with Stream.reopen(path, RUN) as stream:
        assert stream.events == written
        assert (stream.records, stream.sealed) == (6, True)
        assert stream.head == sha256_bytes(path.read_bytes().splitlines()[-1])


def test_an_event_shares_nothing_with_its_writer(path):
    data = {"roles": ["a"]}
    with Stream.create(path, RUN) as stream:
        event = stream.append("orch.x", "x", data)
        data["roles"].append("b")
        assert event.data == {"roles": ["a"]} == read(path)[0].data


def test_an_empty_stream_is_sound(path):
    Stream.create(path, RUN).close()
    assert read(path) == ()
    with Stream.reopen(path, RUN) as stream:
        assert (stream.head, stream.records, stream.sealed, stream.events) == (GENESIS, 0, False, ())
        stream.append("orch.x", "x", {})
    assert len(read(path)) == 1


def test_a_stream_is_not_begun_twice(path):
    write(path, 1)
    with pytest.raises(FileExistsError):
        Stream.create(path, RUN)


def test_nothing_follows_the_sealing_record(path):
    write(path, 1, sealed=True)
    before = path.read_bytes()
    with Stream.reopen(path, RUN) as stream, pytest.raises(StreamError, match="line 3: the stream is sealed"):
        stream.append("orch.x", "x", {})
    assert path.read_bytes() == before


@pytest.mark.parametrize("tail", [b"x", b"x\n", b"\n", b"{}\n"])
def test_bytes_after_the_sealing_record_are_refused_and_left(path, tail):
    write(path, 1, sealed=True)
    path.write_bytes(path.read_bytes() + tail)
    before = path.read_bytes()
    with pytest.raises(StreamError, match="line 3: follows the sealing record"):
        Stream.reopen(path, RUN)
    with pytest.raises(StreamError, match="line 3: follows the sealing record"):
        read(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("type_", "subject", "data"),
    [
        ("step.started", "x", {}),
        ("orch.x", "", {}),
        ("orch.x", "\ud800", {}),
        ("orch.x", "x", {"a": 2**53}),
        ("orch.x", "x", {"a": float("nan")}),
        ("orch.x", "x", {"a": "x" * (16 << 20)}),
    ],
)
def test_an_event_that_breaks_a_rule_leaves_no_trace(path, type_, subject, data):
    with Stream.create(path, RUN) as stream:
        stream.append("orch.x", "x", {})
        before = path.read_bytes()
        with pytest.raises(StreamError, match="line 2: "):
            stream.append(type_, subject, data)
        assert path.read_bytes() == before
        stream.append("orch.x", "x", {})
    assert len(read(path)) == 2


def test_another_writer_is_noticed(path):
    with Stream.create(path, RUN) as one, Stream.reopen(path, RUN) as other:
        one.append("orch.x", "x", {})
        with pytest.raises(StreamError, match="something else wrote"):
            other.append("orch.y", "y", {})
    assert len(read(path)) == 1


@pytest.mark.parametrize("error", [OSError("no space"), KeyboardInterrupt()])
@pytest.mark.parametrize("where", ["os.fsync", "evidence.stream.sha256_bytes"])
def test_an_append_that_fails_or_is_interrupted_after_writing_is_undone(path, monkeypatch, where, error):
    def fail(_):
        raise error

    with Stream.create(path, RUN) as stream:
        stream.append("orch.x", "x", {})
        with monkeypatch.context() as patch:
            patch.setattr(where, fail)
            with pytest.raises(type(error)):
                stream.append("orch.y", "y", {})
        assert len(stream.events) == stream.records == 1
        stream.append("orch.z", "z", {})
    assert [event.type for event in read(path)] == ["orch.x", "orch.z"]


def test_threads_may_append_together(path):
    with Stream.create(path, RUN, fsync=False) as stream, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: stream.append("orch.x", str(number), {}), range(200)))
    assert {event.subject for event in read(path)} == {str(number) for number in range(200)}


# --- tampering


def test_every_changed_byte_breaks_the_chain_or_the_head(path):
    """But for the last line, which only a head kept elsewhere protects, no byte can change unnoticed."""
    write(path, 3)
    data = path.read_bytes()
    head = sha256_bytes(data.splitlines()[-1])
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        try:
            events = read(path)
        except StreamError:
            continue
        assert sha256_bytes(events[-1].line()) != head


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[1:],
        lambda lines: lines[:1] + lines[2:],
        lambda lines: [lines[1], lines[0], *lines[2:]],
        lambda lines: [lines[0], *lines],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [lines[0], b"", *lines[1:]],
        lambda lines: [lines[0], b" " + lines[1], *lines[2:]],
        lambda lines: [lines[0], lines[1] + b"\r", *lines[2:]],
        lambda lines: [*lines[:2], b"{}"],
        lambda lines: [*lines[:2], b"[]"],
        lambda lines: [*lines[:2], lines[2].replace(b'"orch.', b'"other.')],
        lambda lines: [*lines[:2], lines[2].replace(b'"data":{', b'"data":{"a":{"b":1,"b":1},')],
        lambda lines: [*lines[:2], lines[2].replace(b'"specversion":"1.0"', b'"specversion":"1.1"')],
        lambda lines: [*lines[:2], lines[2].replace(RUN.encode(), b"another")],
        lambda lines: [*lines[:2], b'{"a":' * 5000 + b"1" + b"}" * 5000, lines[2]],
        lambda lines: [*lines[:2], b"9" * 5000, lines[2]],
        lambda lines: [*lines[:2], b"\xff", lines[2]],
    ],
)
def test_a_stream_that_was_edited_is_refused_whoever_reads_it(path, change):
    write(path, 3)
    path.write_bytes(b"".join(line + b"\n" for line in change(path.read_bytes().splitlines())))
    before = path.read_bytes()
    with pytest.raises(StreamError) as caught:
        read(path)
    assert caught.value.line > 0
    with pytest.raises(StreamError):
        Stream.reopen(path, RUN)
    assert path.read_bytes() == before


def test_another_runs_stream_is_not_gone_on_with(path):
    write(path, 1)
    with pytest.raises(StreamError, match="another run's stream"):
        Stream.reopen(path, "another")


def test_a_line_without_end_is_not_read_into_memory(path):
    write(path, 1)
    with path.open("ab") as file:
        file.truncate(1 << 33)
    with pytest.raises(StreamError, match="line 2: longer than"):
        read(path)


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/etc/passwd"), os.mkfifo, os.mkdir])
def test_only_a_regular_file_is_a_stream(path, make):
    make(path)
    with pytest.raises(StreamError, match="cannot be read"):
        read(path)
    with pytest.raises(OSError, match=r"regular file|directory|symbolic"):
        Stream.reopen(path, RUN)


def test_a_missing_number_is_noticed_though_the_hashes_chain(path):
    first, second = write(path, 2)
    path.write_bytes(first.line() + b"\n" + replace(second, sequence=3).line() + b"\n")
    with pytest.raises(StreamError, match="line 2: breaks the chain"):
        read(path)


# --- torn tails


def test_a_last_line_cut_anywhere_is_set_aside_and_noted(path):
    written = write(path, 3)
    data = path.read_bytes()
    start = len(b"".join(data.splitlines(keepends=True)[:2]))
    for cut in range(start + 1, len(data)):
        torn = path.with_name("stream.torn-1")
        torn.unlink(missing_ok=True)
        path.write_bytes(data[:cut])
        with pytest.raises(TornError, match="line 3: "):
            read(path)
        with Stream.reopen(path, RUN, fsync=False) as stream:
            assert stream.events[:2] == written[:2]
            note = stream.events[2]
            stream.append("orch.x", "x", {})
        assert torn.read_bytes() == data[start:cut]
        assert (note.type, note.subject) == (TORN, torn.name)
        assert note.data == {"name": torn.name, "sha256": sha256_file(torn), "size": cut - start}
        assert len(read(path)) == 4


def test_a_stream_cut_between_lines_is_merely_shorter(path):
    written = write(path, 3)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    with Stream.reopen(path, RUN) as stream:
        assert stream.events == written[:2]


def test_a_last_line_that_is_no_json_is_torn_though_it_has_a_newline(path):
    write(path, 1)
    with path.open("ab") as file:
        file.write(b'{"data":\0\0\0\0\n')
    with Stream.reopen(path, RUN) as stream:
        assert stream.events[-1].data["size"] == 13
    assert path.with_name("stream.torn-1").read_bytes() == b'{"data":\0\0\0\0\n'


def test_each_torn_line_gets_its_own_file(path):
    write(path, 1)
    for tail in (b"one", b"two", b"two"):
        with path.open("ab") as file:
            file.write(tail)
        Stream.reopen(path, RUN).close()
    assert [path.with_name(f"stream.torn-{number}").read_bytes() for number in (1, 2, 3)] == [
        b"one",
        b"two",
        b"two",
    ]
    assert [event.subject for event in read(path)[1:]] == ["stream.torn-1", "stream.torn-2", "stream.torn-3"]


def test_being_killed_after_moving_the_torn_line_loses_nothing(path):
    write(path, 1)
    sound = path.read_bytes()
    path.with_name("stream.torn-1").write_bytes(b"torn")
    for rest, expected in (
        (b"torn", [b"torn"]),
        (b"", [b"torn"]),
        (b"a torn note", [b"torn", b"a torn note"]),
    ):
        path.write_bytes(sound + rest)
        Stream.reopen(path, RUN).close()
        notes = [event for event in read(path) if event.type == TORN]
        assert [path.with_name(note.data["name"]).read_bytes() for note in notes] == expected
        assert [note.data["sha256"] for note in notes] == [sha256_bytes(one) for one in expected]


WRITER = """
import sys
from pathlib import Path
from evidence.stream import Growing, Stream
with Stream.create(Path(sys.argv[1]), sys.argv[2], fsync=False) as stream:
    while True:
        stream.append("orch.step.started", "x", {"filler": "y" * 5000})
        if stream.records == 20:
            print("ready", flush=True)
"""


@pytest.mark.parametrize("attempt", range(3))
def test_a_stream_whose_writer_was_killed_goes_on(path, attempt):
    command = [sys.executable, "-c", WRITER, str(path), RUN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as writer:
        assert writer.stdout.readline() == b"ready\n"
        writer.send_signal(signal.SIGKILL)
    lines = path.read_bytes().count(b"\n")
    with Stream.reopen(path, RUN) as stream:
        assert stream.records >= lines >= 20
        stream.append("orch.x", "x", {"attempt": attempt})
    assert read(path)[-1].data == {"attempt": attempt}


# --- one event

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
events = st.builds(
    Event,
    source=texts,
    sequence=st.integers(1, 10**18),
    type=texts.map("orch.".__add__),
    subject=texts,
    time=st.just("2026-11-29T09:00:00.000000Z"),
    monotonicns=st.integers(0, 10**18),
    prevhash=st.binary().map(sha256_bytes),
    data=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), st.integers(-9, 9) | texts | st.none()
    ),
)


@given(events)
def test_a_line_reads_back_as_its_event(event):
    assert parse(event.line()) == event
    assert b"\n" not in event.line()


@given(st.binary() | st.recursive(st.none() | st.text(), st.lists).map(lambda x: json.dumps(x).encode()))
def test_other_bytes_are_no_event(data):
    with pytest.raises(EventError):
        parse(data)


@pytest.mark.parametrize(
    "change",
    [
        {"prevhash": "x"},
        {"prevhash": GENESIS + "0"},
        {"time": "yesterday"},
        {"time": "2026-11-29T09:00:00Z"},
        {"monotonicns": "-1"},
        {"monotonicns": 1},
        {"sequence": "01"},
        {"sequence": 1},
        {"sequence": "1" * 5000},
        {"id": "2"},
        {"specversion": "1.1"},
        {"source": ""},
        {"subject": ""},
        {"subject": 5},
        {"type": "x"},
        {"data": []},
        {"data": {"a": 2**53}},
        {"more": "x"},
    ],
)
def test_an_attribute_that_breaks_its_rule_makes_no_event(path, change):
    value = json.loads(write(path, 1)[0].line())
    line = json.dumps({**value, **change}, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    with pytest.raises(EventError):
        parse(line)
    for name in change.keys() & value.keys():
        del value[name]
        with pytest.raises(EventError):
            parse(dumps(value))


def test_a_growing_stream_is_read_on_and_its_chain_with_it(tmp_path):
    path = tmp_path / "stream.jsonl"
    whole = tmp_path / "whole.jsonl"
    events = write(whole, 4)
    lines = whole.read_bytes().splitlines(keepends=True)
    growing = Growing(path)
    path.write_bytes(b"".join(lines[:2]))
    assert growing.events() == tuple(events[:2])
    path.write_bytes(b"".join(lines[:3]) + lines[3][:-9])
    with pytest.raises(TornError):
        growing.events()
    path.write_bytes(b"".join(lines))
    assert growing.events() == tuple(events) == read(path)
    # what does not follow from what was read breaks the chain
    path.write_bytes(b"".join(lines) + lines[1])
    with pytest.raises(StreamError, match="breaks the chain"):
        growing.events()
    # a stream cut back is another one
    path.write_bytes(lines[0])
    assert growing.events() == tuple(events[:1])
    path.unlink()
    with pytest.raises(FileNotFoundError):
        growing.events()
