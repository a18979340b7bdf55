"""What the engine may rely on, whatever the way to a node: facts, commands, files and folders of ours."""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Callable
from pathlib import PurePosixPath

import pytest
from remote_bench import Bench, until

from orchestrator.errors import Label
from orchestrator.remote.base import NotPlainError, Remote, RemoteError


def test_facts_are_the_nodes_own(bench: Bench) -> None:
    facts = bench.remote.facts()
    assert facts.machine == bench.said("uname", "-m")
    assert facts.kernel == bench.said("uname", "-r")
    assert facts.hostname == bench.said("uname", "-n")
    assert facts.boot_id == bench.said("cat", "/proc/sys/kernel/random/boot_id")
    assert facts.cpus == int(bench.said("nproc"))
    assert facts.memory_bytes is not None
    assert f"MemTotal: {facts.memory_bytes // 1024} kB" in " ".join(
        bench.said("cat", "/proc/meminfo").split()
    )
    assert facts.quota_bytes is not None
    assert 0 < facts.quota_bytes <= facts.memory_bytes


def test_a_command_runs_to_its_end(bench: Bench) -> None:
    done = bench.remote.run(["sh", "-c", "echo out; echo err >&2; exit 3"], deadline_s=30)
    assert (done.exit, done.stdout, done.stderr) == (3, b"out\n", b"err\n")


def test_a_command_has_an_empty_input_and_the_plain_locale(bench: Bench) -> None:
    assert bench.said("sh", "-c", "cat; printf %s $LC_ALL") == "C"


def test_arguments_pass_no_shell(bench: Bench) -> None:
    hostile = "a b\t'\"$HOME `id` \\ * \u00e4\n;exit 9"
    done = bench.remote.run(["printf", "%s|", hostile, "", "-n"], deadline_s=30)
    assert done.stdout.decode() == f"{hostile}||-n|"


@pytest.mark.parametrize(("number", "name"), [(9, "KILL"), (11, "SEGV"), (15, "TERM")])
def test_a_command_that_a_signal_ends_says_which(bench: Bench, number: int, name: str) -> None:
    assert bench.remote.run(["sh", "-c", f"kill -{name} $$"], deadline_s=30).exit == 128 + number


def test_a_command_that_cannot_be_started_says_so_by_its_code(bench: Bench) -> None:
    plain = bench.root / "plain"
    bench.remote.put(b"#!/bin/sh\n", plain)
    assert bench.remote.run([str(bench.root / "none")], deadline_s=30).exit == 127
    assert bench.remote.run([str(plain)], deadline_s=30).exit == 126


def test_both_streams_are_heard_again_and_again(bench: Bench) -> None:
    """A sign that one of them has something can cross the other's that it has nothing more."""
    size = 300_000
    script = f"head -c {size} /dev/zero & head -c {size} /dev/zero >&2; wait"
    for _ in range(60):
        done = bench.remote.run(["sh", "-c", script], deadline_s=20)
        assert (done.exit, len(done.stdout), len(done.stderr)) == (0, size, size)


def test_a_command_writes_more_than_pipes_hold_on_both_streams(bench: Bench) -> None:
    size = 3 << 20
    script = f"head -c {size} /dev/zero & head -c {size} /dev/zero >&2; wait"
    done = bench.remote.run(["sh", "-c", script], deadline_s=60)
    assert (done.exit, len(done.stdout), len(done.stderr)) == (0, size, size)


def test_a_deadline_ends_a_command_and_what_it_started(bench: Bench) -> None:
    script = f"cd {bench.root}; sleep 600 & echo started; exec sleep 600"
    done = bench.remote.run(["sh", "-c", script], deadline_s=1)
    assert done.exit is None
    until(bench.quiet)


def test_a_root_is_its_users_alone_and_made_once(bench: Bench) -> None:
    assert bench.said("stat", "-c", "%a %u", str(bench.root)) == f"700 {bench.said('id', '-u')}"
    bench.remote.put(b"kept", bench.root / "file")
    bench.remote.make_root(bench.root, "tests")
    assert bench.file("file") == b"kept"


def test_a_root_is_made_with_the_folders_above_it(bench: Bench) -> None:
    bench.remote.make_root(bench.root / "a" / "b", "tests")
    assert bench.said("stat", "-c", "%a", str(bench.root / "a" / "b")) == "700"


@pytest.mark.parametrize(
    "make",
    [
        "mkdir other && ln -s other it",
        "ln -s nowhere it",
        "echo file > it",
        "mkdir it && chmod 777 it",
        "mkdir it && chmod 1777 it",
        "mkdir it && chmod 770 it",
        "mkdir it && echo planted > it/file",
    ],
)
def test_what_is_no_folder_of_this_users_alone_is_no_root(bench: Bench, make: str) -> None:
    bench.said("sh", "-c", f"cd {bench.root} && {make}")
    with pytest.raises(RemoteError, match=str(bench.root / "it")):
        bench.remote.make_root(bench.root / "it", "tests")
    assert ".orch-owner" not in bench.remote.list(bench.root / "it")


@pytest.mark.parametrize(
    "make",
    [
        "mkdir runs && chmod 777 runs",
        "mkdir runs && chmod 1777 runs",
        "mkdir runs && chmod 770 runs",
        "mkdir other && ln -s other runs",
    ],
)
def test_what_others_can_write_to_holds_no_root(bench: Bench, make: str) -> None:
    bench.said("sh", "-c", f"cd {bench.root} && {make}")
    with pytest.raises(RemoteError, match=str(bench.root / "runs")):
        bench.remote.make_root(bench.root / "runs" / "it", "tests")
    assert bench.remote.list(bench.root / "runs") == ()


@pytest.mark.parametrize("name", ["open", "op en", "op\nen", "öpen", "-open", ".z/a b/.y"])
def test_no_folder_above_lets_others_put_another_in_place_of_a_root(bench: Bench, name: str) -> None:
    above = bench.root / name
    bench.said("mkdir", "-p", "-m", "700", str(above))
    bench.remote.make_root(above / "fine" / "it", "tests")
    bench.said("chmod", "777", str(above))
    with pytest.raises(RemoteError, match=re.escape(f"0777 of {above}")):
        bench.remote.make_root(above / "runs" / "it", "tests")
    bench.said("chmod", "1777", str(above))
    bench.remote.make_root(above / "runs" / "it", "tests")
    assert bench.said("stat", "-c", "%a", str(above / "runs")) == "700"


def test_a_root_is_one_owners_for_one_run(bench: Bench) -> None:
    assert bench.file(".orch-owner") == b"tests\nroot\n"
    bench.said("sh", "-c", f"cd {bench.root} && mkdir copy && cp .orch-owner copy")
    with pytest.raises(RemoteError, match="made for another run"):
        bench.remote.make_root(bench.root / "copy", "tests")
    with pytest.raises(RemoteError, match="made for another run"):
        bench.remote.make_root(bench.root, "others")
    # a controller that was killed before it had marked the folder
    bench.said("sh", "-c", f"cd {bench.root} && mkdir it && echo tes > it/..orch-owner.part")
    bench.remote.make_root(bench.root / "it", "tests")
    assert bench.remote.list(bench.root / "it") == (".orch-owner",)


def test_another_users_folder_is_no_root(bench: Bench) -> None:
    folder = bench.root / "it"
    bench.said("mkdir", str(folder))
    if bench.said("id", "-u") == "0":
        bench.said("chown", "12345", str(folder))
    else:
        folder = PurePosixPath("/usr")
    with pytest.raises(RemoteError, match="uid"):
        bench.remote.make_root(folder, "tests")
    assert ".orch-owner" not in bench.remote.list(folder)


def test_what_is_put_lies_there_whole(bench: Bench) -> None:
    data = bytes(range(256)) * 1000
    path = bench.root / "deep" / "er" / "file"
    assert bench.remote.put(data, path) == hashlib.sha256(data).hexdigest()
    assert bench.remote.get(path) == data
    assert bench.said("stat", "-c", "%a", str(path)) == "600"
    assert bench.remote.put(b"", path) == hashlib.sha256(b"").hexdigest()
    assert bench.remote.get(path) == b""
    assert bench.remote.list(path.parent) == ("file",)


def test_what_is_put_as_a_program_runs(bench: Bench) -> None:
    path = bench.root / "program"
    bench.remote.put(b"#!/bin/sh\necho $1\n", path, executable=True)
    assert bench.said(str(path), "ran") == "ran"
    # even one that runs may be replaced
    job = bench.start(f"exec {path} again; sleep 60")
    bench.remote.put(b"#!/bin/sh\necho other\n", path, executable=True)
    assert bench.said(str(path)) == "other"
    bench.ended(job)


@pytest.mark.parametrize("path", ["file/below", "folder"])
def test_what_cannot_be_put_is_refused_by_its_path(bench: Bench, path: str) -> None:
    bench.said("sh", "-c", f"cd {bench.root} && echo kept > file && mkdir folder")
    with pytest.raises(RemoteError, match=path):
        bench.remote.put(b"data", bench.root / path)
    assert bench.file("file") == b"kept\n"
    assert bench.remote.list(bench.root) == (".orch-owner", "file", "folder")


def test_what_is_put_replaces_a_link_and_not_its_target(bench: Bench) -> None:
    bench.said("sh", "-c", f"cd {bench.root} && echo kept > target && ln -s target it")
    bench.remote.put(b"new", bench.root / "it")
    assert (bench.file("target"), bench.file("it")) == (b"kept\n", b"new")


def test_what_is_put_is_not_written_through_a_planted_link(bench: Bench) -> None:
    bench.said("sh", "-c", f"cd {bench.root} && echo kept > target && ln -s target it.part")
    bench.remote.put(b"new", bench.root / "it")
    assert (bench.file("target"), bench.file("it")) == (b"kept\n", b"new")


@pytest.mark.parametrize("make", ["mkdir it", "mkfifo it", "echo x > there; ln -s there it", "ln -s it it"])
def test_only_regular_files_are_got(bench: Bench, make: str) -> None:
    bench.said("sh", "-c", f"cd {bench.root} && {make}")
    for _ in range(3):
        with pytest.raises(RemoteError, match="it"):
            bench.file("it")


def test_what_is_not_there_is_none_and_empty(bench: Bench) -> None:
    assert bench.file("none") is None
    assert bench.file("no/folder/none") is None
    assert bench.remote.list(bench.root / "none") == ()
    bench.remote.put(b"", bench.root / "file")
    assert bench.remote.list(bench.root / "file") == ()


def test_lists_are_sorted_names(bench: Bench) -> None:
    for name in ("b", "a", "10", "B"):
        bench.remote.put(b"", bench.root / "folder" / name)
    assert bench.remote.list(bench.root / "folder") == ("10", "B", "a", "b")


def test_a_marked_folder_and_what_lies_in_it_is_removed(bench: Bench) -> None:
    bench.remote.put(b"", bench.root / "a" / "b" / "file")
    bench.remote.remove(bench.root / "a")
    assert bench.remote.list(bench.root) == (".orch-owner",)
    bench.remote.remove(bench.root)
    assert bench.remote.list(bench.root) == ()
    assert ".orch-owner" not in bench.remote.list(bench.root)
    # again: it is gone already
    bench.remote.remove(bench.root)


def test_nothing_without_our_mark_is_removed(bench: Bench) -> None:
    beside = bench.root.parent / "beside"
    bench.said("sh", "-c", f"mkdir {beside} && printf kept > {beside}/file")
    for path in (beside, beside / "file", bench.root / ".." / "beside", bench.root / "..", bench.root.parent):
        with pytest.raises(RemoteError):
            bench.remote.remove(path)
    bench.said("ln", "-s", str(bench.root / ".orch-owner"), str(beside / ".orch-owner"))
    with pytest.raises(RemoteError, match="no mark of ours"):
        bench.remote.remove(beside)
    assert bench.remote.get(beside / "file") == b"kept"
    assert ".orch-owner" in bench.remote.list(bench.root)


def test_links_lead_out_of_nothing_that_is_removed(bench: Bench) -> None:
    beside = bench.root.parent / "beside"
    bench.said("sh", "-c", f"mkdir -p {beside}/folder && printf kept > {beside}/folder/file")
    bench.said("ln", "-s", str(beside), str(bench.root / "out"))
    for path in (bench.root / "out", bench.root / "out" / "folder"):
        with pytest.raises(RemoteError):
            bench.remote.remove(path)
    bench.said("mkdir", str(bench.root / "in"))
    bench.said("ln", "-s", str(beside), str(bench.root / "in" / "out"))
    bench.remote.remove(bench.root / "in")
    assert bench.remote.get(beside / "folder" / "file") == b"kept"


def test_a_port_that_is_bound_is_used(bench: Bench) -> None:
    with socket.socket() as bound, socket.socket(socket.AF_INET6) as other:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        port = bound.getsockname()[1]
        assert port in bench.remote.used_ports()
        assert port in bench.remote.ephemeral_ports()
        if os.path.exists("/proc/net/if_inet6"):  # noqa: PTH110  # a file of the kernel's
            other.bind(("::", 0))
            other.listen()
            assert other.getsockname()[1] in bench.remote.used_ports()
    until(lambda: port not in bench.remote.used_ports())


def test_a_process_is_found_by_where_it_works(bench: Bench, connect: Callable[[], Remote]) -> None:
    assert bench.quiet()
    job = bench.start("mkdir inner && cd inner && rmdir ../inner && exec sleep 60")
    pid = bench.running(job).pid
    until(lambda: pid in bench.remote.processes_under(job.folder / "inner"))
    assert pid in bench.remote.processes_under(bench.root)
    assert pid not in bench.remote.processes_under(bench.root / "elsewhere")
    assert pid not in bench.remote.processes_under(bench.root / "wor")
    bench.said("ln", "-s", str(bench.root), str(bench.root.parent / "name"))
    assert pid in connect().processes_under(bench.root.parent / "name")


def test_what_works_under_a_folder_is_ended(bench: Bench) -> None:
    inner = bench.start("trap '' TERM; (cd / && exec sleep 61) & sleep 60; sleep 60", name="inner")
    other = bench.start("exec sleep 60", name="other")
    bystander = bench.running(other)
    bench.running(inner)
    bench.remote.end(inner.folder)
    assert bench.remote.processes_under(inner.folder) == ()
    assert bench.running(other) == bystander
    bench.remote.end(bench.root)
    assert bench.quiet()
    assert bench.ended(other).status == "lost"
    bench.remote.end(bench.root / "never")


def test_what_works_in_a_folder_that_was_removed_is_ended(bench: Bench) -> None:
    job = bench.start("exec sleep 60")
    bench.running(job)
    bench.said("rm", "-r", str(bench.root))
    bench.remote.end(job.folder)
    assert bench.quiet()


def test_nothing_is_ended_beside_our_folders(bench: Bench) -> None:
    beside = bench.root.parent / "beside"
    script = f"mkdir {beside} && cd {beside} && exec sleep 60"
    pid = bench.running(bench.start(script)).pid
    until(lambda: pid in bench.remote.processes_under(beside))
    with pytest.raises(RemoteError, match="no mark of ours"):
        bench.remote.end(beside)
    assert pid is not None
    assert bench.alive(pid)
    bench.said("kill", "-KILL", str(pid))


def test_a_root_that_was_removed_is_not_made_anew(bench: Bench) -> None:
    job = bench.job("exit 0")
    bench.said("rm", "-r", str(bench.root))
    with pytest.raises(RemoteError, match="nothing is written"):
        bench.remote.put(b"data", job.folder / "role")
    with pytest.raises(RemoteError, match="nothing is started"):
        bench.remote.start(job)
    bench.remote.prevent(job)
    assert bench.remote.list(bench.root.parent) == ()


@pytest.mark.parametrize("make", ["mkfifo it", "ln -s there it", "truncate -s 1024G it"])
def test_a_file_that_is_not_plain_or_too_large_is_no_answer(bench: Bench, make: str) -> None:
    bench.said("sh", "-c", f"cd {bench.root} && {make}")
    with pytest.raises(NotPlainError) as caught:
        bench.remote.get(bench.root / "it", most=1000)
    assert caught.value.label == Label.NOT_PLAIN
    bench.remote.put(b"x" * 1000, bench.root / "fits")
    assert bench.remote.get(bench.root / "fits", most=1000) == b"x" * 1000
    with pytest.raises(NotPlainError):
        bench.remote.get(bench.root / "fits", most=999)
