"""Verification: a sound bundle has no problem; any change has one, which names the file."""

import json
import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence import bundle as sealing
from evidence.canonical import dumps
from evidence.digest import sha256_bytes, sha256_file
from evidence.event import GENESIS
from evidence.stream import Stream, read
from evidence.verify import Kind, Problem, verify

SUMS, QUALIFICATION, STREAM = "SHA256SUMS", "qualification.json", "stream.jsonl"
FILES = (
    SUMS,
    "binding.json",
    "plan.json",
    QUALIFICATION,
    "specs/données.csv",
    "specs/runs/star.yaml",
    "steps/split/1/worker1/checkpoint/w.safetensors",
    "steps/split/1/worker1/stderr",
    "steps/split/1/worker1/stdout",
    STREAM,
)


def named(bundle, **told):
    return {problem.name for problem in verify(bundle, **told)}


def kinds(bundle, **told):
    return {(problem.name, problem.kind) for problem in verify(bundle, **told)}


def resum(bundle, *names):
    """Make SHA256SUMS agree with the named files again, as one who covers his tracks would."""
    path = bundle / SUMS
    lines = dict(reversed(line.split("  ", 1)) for line in path.read_text().splitlines())
    lines.update({name: sha256_file(bundle / name) for name in names})
    path.write_text("".join(f"{lines[name]}  {name}\n" for name in sorted(lines)))


def requalify(bundle, change):
    """Rewrite qualification.json, canonically, and SHA256SUMS with it."""
    value = json.loads((bundle / QUALIFICATION).read_bytes())
    (bundle / QUALIFICATION).write_bytes(dumps(change(value) or value))
    resum(bundle, QUALIFICATION)


def replace(path, make):
    path.unlink()
    make(path)


def test_a_sound_bundle_has_no_problem(sealed):
    assert verify(sealed) == ()
    head = read(sealed / STREAM)[-1]
    assert verify(sealed, seal=sha256_file(sealed / QUALIFICATION), head=sha256_bytes(head.line())) == ()
    assert sorted(FILES) == sorted(str(one.relative_to(sealed)) for one in sealed.rglob("*") if one.is_file())


def test_a_sound_bundle_may_be_moved_linked_to_and_hardlinked(bundle, tmp_path):
    os.link(bundle / "plan.json", tmp_path / "elsewhere")
    (tmp_path / "last").symlink_to("bundle")
    assert verify(tmp_path / "last") == ()
    (bundle / "plan.json").unlink()
    os.link(tmp_path / "elsewhere", bundle / "plan.json")
    assert verify(bundle) == ()


@pytest.mark.parametrize("name", FILES)
def test_every_single_changed_byte_is_found(bundle, name):
    path = bundle / name
    data = path.read_bytes()
    for place, byte in enumerate(data):
        path.write_bytes(data[:place] + bytes([byte ^ (1 << place % 8)]) + data[place + 1 :])
        assert name in named(bundle), (place, byte)


@pytest.mark.parametrize("name", FILES)
def test_every_length_but_the_right_one_is_found(bundle, name):
    path = bundle / name
    data = path.read_bytes()
    for cut in range(0, len(data), 1 + len(data) // 40):
        path.write_bytes(data[:cut])
        assert name in named(bundle), cut
    for more in (b"\0", b"\n", b" ", data):
        if more:
            path.write_bytes(data + more)
            assert name in named(bundle), more


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("make", [lambda _: None, os.mkfifo, os.mkdir], ids=["nothing", "fifo", "folder"])
def test_a_file_replaced_by_something_else_is_found(bundle, name, make):
    replace(bundle / name, make)
    assert name in named(bundle)


@pytest.mark.parametrize("name", FILES)
def test_a_file_replaced_by_a_link_to_the_same_bytes_is_found(bundle, tmp_path, name):
    shutil.copy(bundle / name, tmp_path / "same")
    replace(bundle / name, lambda path: path.symlink_to(tmp_path / "same"))
    assert (name, Kind.LINK) in kinds(bundle)


@pytest.mark.parametrize("name", FILES)
def test_a_file_moved_into_a_folder_of_its_name_is_found(bundle, tmp_path, name):
    (bundle / name).rename(tmp_path / "aside")
    (bundle / name).mkdir()
    (tmp_path / "aside").rename(bundle / name / "aside")
    assert {name, f"{name}/aside"} <= named(bundle)


@pytest.mark.parametrize("folder", ["specs", "steps/split", "steps/split/1/worker1/checkpoint"])
def test_a_folder_replaced_by_a_link_to_the_same_folder_is_found(bundle, tmp_path, folder):
    (bundle / folder).rename(tmp_path / "same")
    (bundle / folder).symlink_to(tmp_path / "same")
    inside = {name for name in FILES if name.startswith(f"{folder}/")}
    assert named(bundle) == {folder, *inside}
    assert (folder, Kind.LINK) in kinds(bundle)


def test_any_two_files_swapped_are_found(bundle, tmp_path):
    for number, one in enumerate(FILES):
        for other in FILES[number + 1 :]:
            copy = shutil.copytree(bundle, tmp_path / "copy")
            (copy / one).rename(copy / "aside")
            (copy / other).rename(copy / one)
            (copy / "aside").rename(copy / other)
            assert {one, other} <= named(copy)
            shutil.rmtree(copy)


def _socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))


@pytest.mark.parametrize(
    ("name", "make", "kind"),
    [
        ("new", Path.touch, Kind.EXTRA),
        ("steps/split/1/new", Path.touch, Kind.EXTRA),
        (".qualification.json.part", Path.touch, Kind.EXTRA),
        ("stream.torn-1", Path.touch, Kind.EXTRA),
        ("new", Path.mkdir, Kind.EMPTY_FOLDER),
        ("steps/new", Path.mkdir, Kind.EMPTY_FOLDER),
        ("new", os.mkfifo, Kind.SPECIAL),
        ("s", _socket, Kind.SPECIAL),
        ("steps/loop", lambda path: path.symlink_to("."), Kind.LINK),
        ("new", lambda path: path.symlink_to("plan.json"), Kind.LINK),
        ("views/report.html/x", Path.touch, Kind.EXTRA),
        ("views/other.html", Path.touch, Kind.EXTRA),
        ("views/report.html", Path.touch, Kind.EXTRA),
        ("views/junit.xml", Path.touch, Kind.EXTRA),
        ("views/report.html", lambda path: path.symlink_to("../plan.json"), Kind.LINK),
        ("views/new", Path.mkdir, Kind.EMPTY_FOLDER),
        ("attestations/one.jsonl", Path.touch, Kind.ATTESTATION),
        ("attestations/new", Path.mkdir, Kind.EMPTY_FOLDER),
        ("attestations/new", os.mkfifo, Kind.SPECIAL),
        ("viewsx", Path.touch, Kind.EXTRA),
    ],
)
def test_anything_added_is_found_and_is_the_only_problem(bundle, monkeypatch, name, make, kind):
    monkeypatch.chdir(bundle)
    (bundle / name).parent.mkdir(parents=True, exist_ok=True)
    make(bundle / name)
    assert kinds(bundle) == {(name, kind)}


@pytest.mark.parametrize("name", ["attestations", "views"])
def test_the_folders_that_may_grow_must_be_folders(bundle, name):
    (bundle / name).mkdir()
    assert verify(bundle) == ()
    (bundle / name).rmdir()
    (bundle / name).touch()
    assert kinds(bundle) == {(name, Kind.EXTRA)}
    replace(bundle / name, lambda path: path.symlink_to("specs"))
    assert kinds(bundle) == {(name, Kind.LINK)}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"\xff", "\\xff"),
        (b"a\nb", "a\\nb"),
        (b"a\x1b[2Jb", "a\\x1b[2Jb"),
        (b"a\\b", "a\\b"),
        ("\u2028".encode(), "\\u2028"),
        ("a\u202eb".encode(), "a\\u202eb"),
    ],
)
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: Path(os.fsdecode(path)).touch()])
def test_hostile_names_are_shown_harmless(bundle, name, shown, make):
    make(os.fsencode(bundle) + b"/" + name)
    assert kinds(bundle) == {(shown, Kind.NAME)}
    assert all(str(problem).isprintable() for problem in verify(bundle))


# --- accounts that disagree


def test_a_file_and_its_sum_changed_together(bundle):
    (bundle / "plan.json").write_bytes((bundle / "plan.json").read_bytes().replace(b"0.5", b"0.6"))
    resum(bundle, "plan.json")
    assert {"plan.json", SUMS, QUALIFICATION} == named(bundle)


def test_a_file_added_with_its_sum(bundle):
    (bundle / "new").write_bytes(b"new")
    resum(bundle, "new")
    assert {SUMS, QUALIFICATION} == named(bundle)
    assert all("new" in problem.message for problem in verify(bundle))


def test_a_file_removed_with_its_sum(bundle):
    (bundle / "plan.json").unlink()
    lines = (bundle / SUMS).read_text().splitlines(keepends=True)
    (bundle / SUMS).write_text("".join(line for line in lines if "plan.json" not in line))
    assert {"plan.json", SUMS, QUALIFICATION} == named(bundle)


def test_a_file_changed_with_both_listings_contradicts_the_sealing_record(bundle):
    (bundle / "plan.json").write_bytes((bundle / "plan.json").read_bytes().replace(b"0.5", b"0.6"))
    resum(bundle, "plan.json")

    def change(value):
        entry = next(file for file in value["files"] if file["name"] == "plan.json")
        entry["sha256"] = sha256_file(bundle / "plan.json")

    requalify(bundle, change)
    assert kinds(bundle) == {(STREAM, Kind.DISAGREES), (QUALIFICATION, Kind.DISAGREES)}
    assert all("on the listing of files" in problem.message for problem in verify(bundle))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda value: value.update(verdict="fail"), "verdict"),
        (lambda value: value.pop("verdict"), "verdict"),
        (lambda value: value.update(run_id="another"), "run id"),
        (lambda value: value["steps"][0].update(attempts=True), "qualification"),
        (lambda value: value.update(note="by another hand"), "qualification"),
        (lambda value: value["stream"].update(records=2), "stream's head and number of records"),
        (lambda value: value["stream"].update(head=GENESIS), "stream's head and number of records"),
        (lambda value: value["stream"].update(more=1), "stream's head and number of records"),
        (lambda value: value.update(stream=[]), "stream's head and number of records"),
    ],
)
def test_a_qualification_rewritten_with_its_sum_contradicts_the_stream(bundle, change, what):
    requalify(bundle, lambda value: change(value) and None)
    assert kinds(bundle) == {(STREAM, Kind.DISAGREES), (QUALIFICATION, Kind.DISAGREES)}
    assert any(f"on the {what}" in problem.message for problem in verify(bundle))


def test_a_stream_cut_before_its_sealing_record_with_all_listings(bundle):
    lines = (bundle / STREAM).read_bytes().splitlines(keepends=True)
    (bundle / STREAM).write_bytes(b"".join(lines[:-1]))
    resum(bundle, STREAM)

    def change(value):
        value["files"][-1].update(sha256=sha256_file(bundle / STREAM), size=(bundle / STREAM).stat().st_size)
        value["stream"] = {"head": sha256_bytes(lines[-2][:-1]), "records": len(lines) - 1}

    requalify(bundle, change)
    assert kinds(bundle) == {(STREAM, Kind.UNSEALED)}


def test_a_bundle_forged_whole_is_told_by_the_seal_or_the_head(bundle):
    seal = sha256_file(bundle / QUALIFICATION)
    head = sha256_bytes((bundle / STREAM).read_bytes().splitlines()[-1])
    qualification = json.loads((bundle / QUALIFICATION).read_bytes())
    given = {key: value for key, value in qualification.items() if key not in {"stream", "files"}}
    events = read(bundle / STREAM)
    for name in (SUMS, QUALIFICATION, STREAM):
        (bundle / name).unlink()
    (bundle / "plan.json").write_bytes(b"{}")
    with Stream.create(bundle / STREAM, events[0].source) as stream:
        for event in events[:-1]:
            stream.append(event.type, event.subject, event.data)
        sealing.seal(bundle, stream, "pass", given)
    assert verify(bundle) == ()
    assert kinds(bundle, seal=seal) == {(QUALIFICATION, Kind.SEAL)}
    assert kinds(bundle, head=head) == {(STREAM, Kind.HEAD)}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"files": 6}, "number of files"),
        ({"files": True}, "number of files"),
        ({"listing": GENESIS}, "listing of files"),
        ({"verdict": "fail"}, "verdict"),
        ({"qualification": {}}, "qualification"),
    ],
)
def test_a_sealing_record_of_another_hand_contradicts_the_qualification(bundle, change, what):
    """The stream, its digests and its head are all consistent; only what the record says is not."""
    *events, record = read(bundle / STREAM)
    (bundle / STREAM).unlink()
    with Stream.create(bundle / STREAM, record.source) as stream:
        for event in events:
            stream.append(event.type, event.subject, event.data)
        stream.append(record.type, record.subject, {**record.data, **change})
    resum(bundle, STREAM)

    def follow(value):
        value["files"][-1].update(sha256=sha256_file(bundle / STREAM), size=(bundle / STREAM).stat().st_size)
        value["stream"]["head"] = stream.head

    requalify(bundle, follow)
    assert kinds(bundle) == {(STREAM, Kind.DISAGREES), (QUALIFICATION, Kind.DISAGREES)}
    assert {problem.message.partition(": ")[2] for problem in verify(bundle)} == {f"on the {what}"}


# --- documents that an adversary wrote


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"[" * 200_000,
        b'{"files":' * 500 + b"1" + b"}" * 500,
        b"1" * 100_000,
        b"\xff\xfe",
        b'{"files":[],"stream":{}}',
        b'{"files":{},"stream":{}}',
        b'{"files":[1],"stream":{}}',
        b'{"files":[{"name":"a"}],"stream":{}}',
    ],
)
def test_a_hostile_qualification(bundle, data):
    (bundle / QUALIFICATION).write_bytes(data)
    assert (QUALIFICATION, Kind.FORMAT) in kinds(bundle)
    resum(bundle, QUALIFICATION)
    assert (QUALIFICATION, Kind.FORMAT) in kinds(bundle)


def entry(name, **other):
    return {"name": name, "sha256": GENESIS, "size": 0, **other}


@pytest.mark.parametrize(
    "extra",
    [
        entry("../outside"),
        entry("/etc/passwd"),
        entry("a//b"),
        entry("./plan.json"),
        entry("a\\b"),
        entry("a\nb"),
        entry(""),
        entry("plan.json"),
        entry(SUMS),
        entry(QUALIFICATION),
        entry("views/report.html"),
        entry("attestations/x"),
        entry("x", size=-1),
        entry("x", size=True),
        entry("x", size=0.5),
        entry("x", size=None),
        entry("x", sha256="0"),
        entry("x", sha256=GENESIS.replace("0", "A")),
        entry(7),
        entry("x", more=1),
    ],
)
def test_a_listing_with_an_entry_that_sealing_never_writes(bundle, extra):
    def change(value):
        value["files"] = sorted([*value["files"], extra], key=lambda file: str(file["name"]))

    requalify(bundle, change)
    assert kinds(bundle) == {(QUALIFICATION, Kind.FORMAT)}


def test_a_listing_out_of_order(bundle):
    requalify(bundle, lambda value: value["files"].reverse())
    assert kinds(bundle) == {(QUALIFICATION, Kind.FORMAT)}


def test_duplicate_keys_and_other_spellings(bundle):
    data = (bundle / QUALIFICATION).read_bytes()
    for other in (data.replace(b"{", b'{"verdict":"fail",', 1), data + b"\n", data.replace(b":", b": ", 1)):
        (bundle / QUALIFICATION).write_bytes(other)
        resum(bundle, QUALIFICATION)
        assert kinds(bundle) == {(QUALIFICATION, Kind.FORMAT)}


@pytest.mark.parametrize(
    "change",
    [
        lambda _: "",
        lambda text: text[:-1],
        lambda text: text + "\n",
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("  plan", " *plan"),
        lambda text: text.upper(),
        lambda text: text + text.splitlines(keepends=True)[-1],
        lambda text: "".join(reversed(text.splitlines(keepends=True))),
        lambda text: text + f"{GENESIS}  ../outside\n",
        lambda text: text + f"{GENESIS}  /etc/passwd\n",
        lambda text: "# made by hand\n" + text,
        lambda text: f"\\{GENESIS}  a\\nb\n" + text,
        lambda _: "0" * 1_000_000,
    ],
)
def test_hostile_sums(bundle, change):
    (bundle / SUMS).write_text(change((bundle / SUMS).read_text()), newline="")
    assert (SUMS, Kind.FORMAT) in kinds(bundle)


def test_sums_that_list_themselves(bundle):
    resum(bundle, SUMS)
    assert SUMS in named(bundle)


def test_files_of_any_size_are_told_without_reading_them(bundle):
    content = set(FILES) - {SUMS, QUALIFICATION, STREAM}
    for names in (content, {SUMS, QUALIFICATION, STREAM}):
        for name in names:
            with (bundle / name).open("ab") as file:
                file.truncate(1 << 40)
        if names == content:
            assert kinds(bundle) == {(name, Kind.SIZE) for name in content}
    assert named(bundle) == set(FILES)


def test_a_tree_of_any_depth(bundle):
    descriptor = os.open(bundle, os.O_RDONLY)
    for _ in range(60):
        os.mkdir("d" * 100, dir_fd=descriptor)
        deeper = os.open("d" * 100, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = deeper
    os.close(descriptor)
    assert [problem.kind for problem in verify(bundle)] == [Kind.UNREADABLE]
    shutil.rmtree(bundle)


@pytest.mark.parametrize(
    "make", [Path.mkdir, Path.touch, os.mkfifo, lambda path: path.symlink_to(path), lambda _: None]
)
def test_what_is_no_bundle_at_all(tmp_path, make):
    make(tmp_path / "x")
    assert {QUALIFICATION, SUMS, STREAM} <= named(tmp_path / "x")


def test_problems_read_well():
    assert (
        str(Problem("plan.json", Kind.SIZE, "got 1 bytes, expected 2"))
        == "plan.json: size: got 1 bytes, expected 2"
    )


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_mixture_of_damage_is_found_and_never_raises(sealed, data):
    """Several files damaged at once: each of them is named, and so the bundle is never taken for sound."""
    with tempfile.TemporaryDirectory() as folder:
        bundle = shutil.copytree(sealed, Path(folder) / "bundle")
        victims = data.draw(st.lists(st.sampled_from(FILES), min_size=1, max_size=4, unique=True))
        for name in victims:
            path = bundle / name
            before = path.read_bytes()
            after = data.draw(st.binary(max_size=80) | st.just(before[::-1]) | st.none())
            if after is None or after == before:
                path.unlink()
            else:
                path.write_bytes(after)
        expected = set(victims)
        if {SUMS, QUALIFICATION} <= expected:  # nothing is left that says which files there were
            expected = {name for name in victims if (bundle / name).exists()} | {SUMS, QUALIFICATION}
        assert expected <= named(bundle)
