"""Digests of bytes, files and values, and how files are opened for them."""

import hashlib
import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.digest import is_sha256, measure_file, sha256_bytes, sha256_file, sha256_json
from evidence.files import NotRegularError, TooLargeError, read_bounded, write_many, write_whole


@given(st.binary())
def test_bytes(data):
    assert sha256_bytes(data) == hashlib.sha256(data).hexdigest()


def test_a_value_is_digested_in_its_canonical_form():
    assert sha256_json({"b": 1.0, "a": ()}) == hashlib.sha256(b'{"a":[],"b":1}').hexdigest()


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3_000_000])
def test_a_file_in_pieces(tmp_path, size):
    data = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    (tmp_path / "file").write_bytes(data)
    assert sha256_file(tmp_path / "file") == hashlib.sha256(data).hexdigest()
    assert measure_file(tmp_path / "file") == (hashlib.sha256(data).hexdigest(), size)


def _link(path):
    path.with_name("target").write_bytes(b"x")
    path.symlink_to("target")


def _socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


@pytest.mark.parametrize(
    "make", [_link, os.mkfifo, os.mkdir, _socket], ids=["link", "fifo", "folder", "socket"]
)
def test_only_regular_files_are_opened(tmp_path, monkeypatch, make):
    monkeypatch.chdir(tmp_path)  # a socket's name must be short
    path = tmp_path / "it"
    make(path.relative_to(tmp_path).absolute() if make is not _socket else path.relative_to(tmp_path))
    with pytest.raises(NotRegularError):
        sha256_file(path)


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        sha256_file(tmp_path / "none")


@pytest.mark.parametrize("value", ["", "ab" * 31, "AB" * 32, "ab" * 32 + "\n", "٣" * 64, None, 5])
def test_what_is_no_digest(value):
    assert not is_sha256(value)
    assert is_sha256("ab" * 32)


def test_bounded_reading(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_bounded(tmp_path / "file", 5) == b"12345"
    with pytest.raises(TooLargeError):
        read_bounded(tmp_path / "file", 4)


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "file"
    (tmp_path / ".file.part").write_bytes(b"left by a writer that was killed")
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_link_is_replaced_and_not_written_through(tmp_path):
    (tmp_path / "target").write_bytes(b"kept")
    (tmp_path / "file").symlink_to("target")
    (tmp_path / ".file.part").symlink_to("target")
    write_whole(tmp_path / "file", b"new")
    assert (tmp_path / "target").read_bytes() == b"kept"
    assert (tmp_path / "file").read_bytes() == b"new"
    assert not (tmp_path / "file").is_symlink()
    (tmp_path / ".file.part").symlink_to("target")
    write_many({tmp_path / "file": b"newer"})
    assert (tmp_path / "target").read_bytes() == b"kept"
    assert (tmp_path / "file").read_bytes() == b"newer"


def test_permissions_are_what_was_asked_for(tmp_path):
    write_whole(tmp_path / "file", b"", 0o755)
    assert (tmp_path / "file").stat().st_mode & 0o7777 == 0o755
