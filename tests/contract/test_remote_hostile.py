"""Names, bytes and commands that a way to a node could trip over."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import PurePosixPath

import pytest
from remote_bench import Bench, until

from orchestrator.remote.base import Job, Remote, RemoteError

NAMES = (
    "a b",
    " leading and trailing ",
    "new\nline",
    "\n",
    "two\n\n",
    "tab\tand\rreturn",
    "'single' \"double\" `back` $HOME $(id) \\ \\n",
    "-rf",
    "--",
    "*",
    "[a-z]?",
    "~",
    "#comment",
    "a;exit 9&b|c>d<e",
    "ümläut ĀŁ 中文 😀",
    "\u0081\u0082\u0088 controls",
    os.fsdecode(b"not \xff\x81\x88 utf-8"),
    "\x01\x02\x03\x7f\x1b[31m",
    "x" * 240,
    "%s%d\\036",
)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_name_is_a_name(bench: Bench, name: str) -> None:
    path = bench.root / "folder" / name
    bench.remote.put(b"data", path / "file")
    bench.remote.put(b"other", bench.root / "folder" / f"{name}2")
    assert bench.remote.get(path / "file") == b"data"
    assert bench.remote.tail(path / "file", 2) == b"ta"
    assert bench.remote.list(bench.root / "folder") == tuple(sorted((name, f"{name}2")))
    job = Job(path, ("sh", "-c", "pwd; exec sleep 600"), 60)
    bench.remote.start(job)
    running = bench.running(job)
    assert bench.remote.processes_under(path)
    assert bench.remote.processes_under(bench.root / "folder" / f"{name}2") == ()
    until(lambda: bool(bench.remote.get(path / "job" / "stdout")))
    bench.remote.signal(job, signal.SIGTERM)
    assert bench.ended(job).exit == 128 + signal.SIGTERM
    assert bench.ended(job).pid == running.pid
    assert bench.remote.get(path / "job" / "stdout") == os.fsencode(f"{path}\n")
    bench.remote.remove(path)
    assert bench.remote.list(bench.root / "folder") == (f"{name}2",)


@pytest.mark.parametrize("name", ["new\nline", "-n", "'\"", os.fsdecode(b"\xff"), "\u0081"], ids=ascii)
def test_any_name_is_a_root(bench: Bench, name: str) -> None:
    root = bench.root / name / "run"
    bench.remote.make_root(root, "tests")
    bench.remote.make_root(root, "tests")
    assert bench.remote.list(root) == (".orch-owner",)
    assert bench.remote.lock(root, "run", "me") == ""
    assert bench.remote.room(root / "none").free_bytes
    assert bench.remote.resolve(root) == root


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 32768, 65537, 10 << 20])
def test_every_byte_arrives(bench: Bench, size: int) -> None:
    data = random.Random(size).randbytes(size)
    path = bench.root / "file"
    for _ in range(2):
        assert bench.remote.put(data, path) == hashlib.sha256(data).hexdigest()
        assert bench.remote.get(path) == data
        assert bench.remote.tail(path, 100) == data[-100:]
    assert bench.said("stat", "-c", "%a", str(path)) == "600"
    bench.remote.put(data, path, executable=True)
    assert bench.said("stat", "-c", "%a", str(path)) == "700"


def test_lines_that_look_like_requests_are_data(bench: Bench) -> None:
    data = b"exit 9\n\n. exit 9\n\0\nexit 9 <\n" * 1000
    bench.remote.put(data, bench.root / "file")
    assert bench.remote.get(bench.root / "file") == data
    done = bench.remote.run(["cat", str(bench.root / "file"), "-"], deadline_s=30)
    assert done.stdout == data


def test_a_command_writes_any_bytes(bench: Bench) -> None:
    every = "".join(f"\\{number:03o}" for number in range(256))
    done = bench.remote.run(["sh", "-c", f"printf '{every}'; printf '{every}' >&2; exit 7"], deadline_s=30)
    assert (done.exit, done.stdout, done.stderr) == (7, bytes(range(256)), bytes(range(256)))


def test_no_argument_is_taken_for_another(bench: Bench) -> None:
    words = [
        "",
        " ",
        "\n",
        "a\nb\n",
        "-e",
        "\u0081\u0088ä",
        os.fsdecode(b"\xff"),
        "'",
        '"',
        "\\",
        "$x",
        "x" * 50_000,
    ]
    done = bench.remote.run(["printf", "%s\\0", *words], deadline_s=30)
    assert done.stdout.split(b"\0")[:-1] == [os.fsencode(word) for word in words]


def test_what_a_command_leaves_in_its_group_ends_with_it(bench: Bench) -> None:
    begun = time.monotonic()
    script = f"cd {bench.root}; sleep 600 & echo done"
    done = bench.remote.run(["sh", "-c", script], deadline_s=300)
    assert (done.exit, done.stdout) == (0, b"done\n")
    assert time.monotonic() - begun < 200
    until(bench.quiet)


def test_what_a_command_leaves_behind_says_nothing_more(bench: Bench) -> None:
    """It left the group, and still has the streams."""
    stays = "echo >there; until [ -e go ]; do sleep 0.05; done; echo noise; echo >gone; rm there"
    script = f"cd {bench.root}; setsid sh -c '{stays}' & until [ -e there ]; do sleep 0.05; done"
    bench.remote.run(["sh", "-c", script], deadline_s=30)
    bench.remote.put(b"", bench.root / "go")
    bench.wait_for("gone")
    for _ in range(20):
        assert bench.remote.list(bench.root) == (".orch-owner", "go", "gone")
        assert bench.said("echo", "mine") == "mine"


def test_a_deadline_keeps_what_was_said(bench: Bench) -> None:
    done = bench.remote.run(["sh", "-c", "echo out; echo err >&2; exec sleep 600"], deadline_s=2)
    assert (done.exit, done.stdout, done.stderr) == (None, b"out\n", b"err\n")
    assert bench.said("echo", "next") == "next"


def test_a_command_that_takes_its_time_ends_well(bench: Bench) -> None:
    done = bench.remote.run(["sh", "-c", "sleep 2; echo out; exit 5"], deadline_s=60)
    assert (done.exit, done.stdout) == (5, b"out\n")


def test_a_folder_is_not_written_over(bench: Bench) -> None:
    bench.said("mkdir", "-p", str(bench.root / "it" / "in"))
    with pytest.raises(RemoteError, match="it"):
        bench.remote.put(b"data", bench.root / "it")
    assert bench.remote.list(bench.root / "it") == ("in",)
    with pytest.raises(RemoteError, match="it"):
        bench.remote.put(b"x" * 3_000_000, bench.root / "it")
    assert bench.remote.list(bench.root) == (".orch-owner", "it")
    assert bench.said("echo", "next") == "next"


@pytest.mark.parametrize("target", ["beside", "."])
def test_a_link_is_replaced_not_followed(bench: Bench, target: str) -> None:
    bench.remote.put(b"kept", bench.root / "beside")
    bench.said("ln", "-s", target, str(bench.root / "it"))
    bench.said("ln", "-s", "beside", str(bench.root / "it.part"))
    bench.remote.put(b"data", bench.root / "it")
    assert bench.remote.get(bench.root / "it") == b"data"
    assert bench.remote.get(bench.root / "beside") == b"kept"
    assert bench.remote.list(bench.root) == (".orch-owner", "beside", "it")


def test_the_same_bytes_again_are_the_same_file_of_its_own(
    bench: Bench, connect: Callable[[], Remote]
) -> None:
    data = random.Random(1).randbytes(1 << 20)
    bench.remote.put(data, bench.root / "a" / "file")
    connect().put(data, bench.root / "b" / "file", executable=True)
    bench.said("sh", "-c", f"echo changed >> {bench.root}/b/file")
    assert bench.remote.get(bench.root / "a" / "file") == data
    # whatever was changed in place since, what is put is what was asked for
    bench.said("sh", "-c", f"echo changed >> {bench.root}/a/file")
    bench.remote.put(data, bench.root / "c" / "file")
    assert bench.remote.get(bench.root / "c" / "file") == data


def test_what_cannot_be_reached_is_refused(bench: Bench) -> None:
    bench.remote.put(b"", bench.root / "file")
    for path in (bench.root / "file" / "under", PurePosixPath("/proc/none/it")):
        with pytest.raises(RemoteError):
            bench.remote.put(b"data", path)
    with pytest.raises(RemoteError):
        bench.remote.start(Job(bench.root / "file" / "under", ("true",), 60))
    assert bench.said("echo", "next") == "next"
