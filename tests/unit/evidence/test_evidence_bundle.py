"""Sealing: its order, and that it can be finished from wherever it was interrupted."""

import json
import os
import shutil
import subprocess

import pytest

from evidence import bundle as sealing
from evidence.bundle import SealError, is_sealed, read_qualification, seal
from evidence.canonical import CanonicalError
from evidence.digest import sha256_file, sha256_json
from evidence.listing import FormatError
from evidence.stream import SEALED, Stream, read
from evidence.verify import verify


def contents(folder):
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def finish(unsealed, qualification=None):
    return seal(unsealed.path, unsealed.stream, "pass", qualification or unsealed.qualification)


def test_a_sealed_bundle_is_sound_and_says_what_it_was_given(unsealed):
    assert not is_sealed(unsealed.path)
    told = finish(unsealed)
    assert is_sealed(unsealed.path)
    assert verify(unsealed.path, seal=told, head=unsealed.stream.head) == ()
    assert told == sha256_file(unsealed.path / "qualification.json")
    document = dict(read_qualification(unsealed.path))
    assert document.pop("stream") == {"head": unsealed.stream.head, "records": 3}
    files = document.pop("files")
    assert document == unsealed.qualification
    names = [name for name in contents(unsealed.path) if name not in {"qualification.json", "SHA256SUMS"}]
    assert [file["name"] for file in files] == sorted(names, key=str.encode)
    assert all(file["sha256"] == sha256_file(unsealed.path / file["name"]) for file in files)
    assert all(file["size"] == (unsealed.path / file["name"]).stat().st_size for file in files)


def test_the_sealing_record_is_the_last_event(unsealed):
    finish(unsealed)
    record = read(unsealed.path / "stream.jsonl")[-1]
    files = [file for file in read_qualification(unsealed.path)["files"] if file["name"] != "stream.jsonl"]
    assert record.type == SEALED
    assert record.data == {
        "verdict": "pass",
        "files": len(files),
        "listing": sha256_json(files),
        "qualification": unsealed.qualification,
    }


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="no coreutils")
def test_coreutils_agrees(unsealed):
    finish(unsealed)
    command = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    assert subprocess.run(command, cwd=unsealed.path, check=False).returncode == 0
    lines = (unsealed.path / "SHA256SUMS").read_text().splitlines()
    assert [line[66:] for line in lines] == sorted(contents(unsealed.path).keys() - {"SHA256SUMS"})


@pytest.mark.parametrize("kept", ["record", "qualification", "all"])
@pytest.mark.parametrize("part", [False, True])
def test_sealing_that_was_killed_is_finished_with_the_same_bytes(unsealed, kept, part):
    told = finish(unsealed)
    sound = contents(unsealed.path)
    for name in {"record": ["qualification.json", "SHA256SUMS"], "qualification": ["SHA256SUMS"]}.get(
        kept, []
    ):
        (unsealed.path / name).unlink()
        if part:
            (unsealed.path / f".{name}.part").write_bytes(b"{")
    assert is_sealed(unsealed.path) == (kept == "all")
    assert bool(verify(unsealed.path)) == (kept != "all")
    with Stream.reopen(unsealed.path / "stream.jsonl", unsealed.stream.source) as stream:
        later = {**unsealed.qualification, "ended": "later"}
        assert seal(unsealed.path, stream, "pass", later) == told
    assert contents(unsealed.path) == sound
    assert verify(unsealed.path, seal=told) == ()


@pytest.mark.parametrize("stage", range(6))
def test_sealing_that_fails_at_any_write_is_finished_later(unsealed, monkeypatch, stage):
    """An fsync that fails is a full disk: there are five from the sealing record to the last folder."""
    calls = []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) == stage:
            raise OSError("no space")

    unsealed.stream.close()
    with Stream.reopen(unsealed.path / "stream.jsonl", unsealed.stream.source) as stream:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            if stage:
                with pytest.raises(OSError, match="no space"):
                    seal(unsealed.path, stream, "pass", unsealed.qualification)
        told = seal(unsealed.path, stream, "pass", unsealed.qualification)
    assert verify(unsealed.path, seal=told) == ()


def test_files_that_change_after_the_sealing_record_are_noticed(unsealed):
    finish(unsealed)
    (unsealed.path / "SHA256SUMS").unlink()
    (unsealed.path / "qualification.json").unlink()
    (unsealed.path / "late.txt").write_bytes(b"late")
    with pytest.raises(SealError, match=r"changed since .*: listing, files"):
        finish(unsealed)
    assert not is_sealed(unsealed.path)


def test_a_verdict_does_not_change_once_sealed(unsealed):
    finish(unsealed)
    with pytest.raises(SealError, match=r"changed since .*: verdict"):
        seal(unsealed.path, unsealed.stream, "fail", {**unsealed.qualification, "verdict": "fail"})


@pytest.mark.parametrize("name", ["qualification.json", "SHA256SUMS"])
def test_a_document_of_another_hand_is_not_overwritten(unsealed, name):
    (unsealed.path / name).write_bytes(b"{}")
    with pytest.raises(SealError, match=f"{name} exists already"):
        finish(unsealed)
    assert (unsealed.path / name).read_bytes() == b"{}"


def test_the_verdict_is_in_the_qualification_even_if_the_caller_left_it_out(unsealed):
    del unsealed.qualification["verdict"]
    finish(unsealed)
    assert read_qualification(unsealed.path)["verdict"] == "pass"
    assert verify(unsealed.path) == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "fail"}, "another verdict .got 'fail', expected 'pass'"),
        ({"run_id": "another"}, "another run_id"),
        ({"files": []}, "may not hold files"),
        ({"stream": {}}, "may not hold stream"),
    ],
)
def test_a_qualification_that_contradicts_is_refused_before_anything_is_written(unsealed, change, message):
    before = contents(unsealed.path)
    with pytest.raises(SealError, match=message):
        finish(unsealed, {**unsealed.qualification, **change})
    assert contents(unsealed.path) == before


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("link", lambda path: path.symlink_to("plan.json")),
        ("steps/loop", lambda path: path.symlink_to(".")),
        ("fifo", os.mkfifo),
        ("back\\slash", lambda path: path.touch()),
        ("new\nline", lambda path: path.touch()),
        ("escape\x1b[2J", os.mkdir),
    ],
)
def test_what_a_listing_cannot_hold_stops_the_sealing(unsealed, name, make):
    make(unsealed.path / name)
    with pytest.raises(SealError) as caught:
        finish(unsealed)
    assert name.encode("unicode_escape").decode() in str(caught.value).replace("\\\\", "\\") or name in str(
        caught.value
    )
    assert not unsealed.stream.sealed


def test_empty_folders_are_removed(unsealed):
    (unsealed.path / "steps/build/1/worker1").mkdir(parents=True)
    (unsealed.path / "views").mkdir()
    finish(unsealed)
    assert not (unsealed.path / "steps/build").exists()
    assert (unsealed.path / "steps/split").exists()
    assert (unsealed.path / "views").exists()
    assert verify(unsealed.path) == ()


def test_a_bundle_of_nothing_but_its_stream_is_not_sealed(tmp_path):
    with (
        Stream.create(tmp_path / "stream.jsonl", "run") as stream,
        pytest.raises(SealError, match="no files proves nothing"),
    ):
        seal(tmp_path, stream, "pass", {})


def test_what_may_grow_is_not_sealed(unsealed):
    (unsealed.path / "views").mkdir()
    (unsealed.path / "views/report.html").write_text("<html>")
    finish(unsealed)
    assert "views" not in (unsealed.path / "SHA256SUMS").read_text()
    (problem,) = verify(unsealed.path)
    assert (problem.name, problem.kind) == ("views/report.html", "extra")


def test_reading_a_qualification_alone(bundle):
    path = bundle / "qualification.json"
    path.write_bytes(json.dumps(json.loads(path.read_bytes())).encode())
    with pytest.raises(CanonicalError, match="not the canonical form"):
        read_qualification(bundle)
    path.write_bytes(b"[]")
    with pytest.raises(FormatError, match="not a JSON object"):
        read_qualification(bundle)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        read_qualification(bundle)


def test_a_qualification_beyond_all_bounds_is_not_read(bundle, monkeypatch):
    monkeypatch.setattr(sealing, "MAX_DOCUMENT_BYTES", 100)
    with pytest.raises(OSError, match="larger than 100 bytes"):
        read_qualification(bundle)
