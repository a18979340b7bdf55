"""What a node says of its room, clock and tools, and how one run at a time has a base folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

import pytest
from remote_bench import Bench

from orchestrator.errors import Label
from orchestrator.remote.base import Job, Remote, RemoteError
from orchestrator.remote.lock import is_held_for, is_left_behind

GIB = 1 << 30


def test_a_relative_root_is_under_home(bench: Bench) -> None:
    home = PurePosixPath(bench.said("sh", "-c", "cd && pwd"))
    assert bench.remote.resolve(PurePosixPath(".orch")) == home / ".orch"
    assert bench.remote.resolve(bench.root) == bench.root


def test_room_is_of_the_nearest_folder_that_is_there(bench: Bench) -> None:
    room = bench.remote.room(bench.root)
    assert room.free_bytes is not None
    there = int(bench.said("df", "-Pk", str(bench.root)).split()[-3]) << 10
    assert abs(room.free_bytes - there) < GIB
    deeper = bench.remote.room(bench.root / "none" / "of these")
    assert deeper.free_bytes is not None
    assert abs(deeper.free_bytes - there) < GIB
    assert room.free_inodes is None or room.free_inodes > 0


def test_the_clock_is_within_its_error(bench: Bench) -> None:
    """The node under test is this machine: whatever the way to it, the true offset is nothing."""
    clock = bench.remote.clock()
    assert abs(clock.offset_ns) <= clock.error_ns
    assert clock.error_ns < 30 * 10**9


def test_no_tool_is_missing(bench: Bench) -> None:
    assert bench.remote.missing_tools() == ()


def test_a_job_finds_no_other_environment(
    bench: Bench, connect: Callable[[], Remote], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "sings")
    hostile = "a b\t'\"$HOME `id` \\ * ä\n;exit 9"
    environment = (("folder", "mine"), ("name", hostile), ("names", ""), ("ORCH_ROLE", "-n"))
    job = Job(
        bench.root / "work", ("env", "-0"), 60, environment=environment, inherit=("USER_HAS_NO_SUCH_NAME",)
    )
    remote = connect()
    remote.start(job)
    assert bench.ended(job).exit == 0
    found = dict(
        entry.split("=", 1) for entry in (bench.file("work/job/stdout") or b"").decode().split("\0") if entry
    )
    for shells_own in ("PWD", "SHLVL", "_"):
        found.pop(shells_own, None)
    assert found.pop("PATH") == bench.said("sh", "-c", "echo $PATH")
    assert found.pop("HOME") == bench.said("sh", "-c", "echo $HOME")
    assert found == {"LC_ALL": "C", **dict(environment)}


def test_what_a_job_is_given_is_not_for_its_runner(bench: Bench) -> None:
    environment = (("PATH", "/none"), ("LD_PRELOAD", ""), ("LC_ALL", "C.UTF-8"))
    job = Job(
        bench.root / "work", ("/bin/sh", "-c", "echo $PATH $LC_ALL; exit 4"), 60, environment=environment
    )
    bench.remote.start(job)
    assert bench.ended(job).exit == 4
    assert bench.file("work/job/stdout") == b"/none C.UTF-8\n"


@pytest.mark.parametrize(
    ("environment", "inherit"), [((("a b", ""),), ()), ((("A", "\0"),), ()), ((), ("A;exit",)), ((), ("",))]
)
def test_what_no_environment_can_hold_is_refused(
    bench: Bench, environment: tuple[tuple[str, str], ...], inherit: tuple[str, ...]
) -> None:
    job = Job(bench.root / "work", ("true",), 60, environment=environment, inherit=inherit)
    with pytest.raises(RemoteError, match="variable"):
        bench.remote.start(job)
    assert bench.remote.inspect(job).status == "absent"


def test_one_run_at_a_time_has_a_base(bench: Bench, connect: Callable[[], Remote]) -> None:
    base = bench.root / "base"
    assert bench.remote.lock_holder(base) == ""
    assert bench.remote.lock(base, "run-1", "an owner") == ""
    assert bench.said("stat", "-c", "%a", str(base)) == "700"
    other = connect()
    for said in (other.lock(base, "run-2", "others"), other.lock_holder(base)):
        assert "run-1" in said
        assert "an owner" in said
        assert " s ago" in said
        assert "left behind" not in said
    # whoever has it may take it again, and so may a later controller of the same run
    assert bench.remote.lock(base, "run-1", "an owner") == ""
    assert other.lock(base, "run-1", "an owner") == ""
    other.beat(base, "run-1")
    with pytest.raises(RemoteError, match="not ours any more") as refused:
        other.beat(base, "run-2")
    assert refused.value.label == Label.RUN_LOCKED
    other.unlock(base, "run-2")
    assert "run-1" in other.lock_holder(base)
    bench.remote.unlock(base, "run-1")
    bench.remote.unlock(base, "run-1")
    assert bench.remote.list(base) == ()
    assert other.lock(base, "run-2", "others\nrun-3") == ""
    assert "run-2 of others?run-3" in bench.remote.lock_holder(base)
    with pytest.raises(RemoteError, match="run-2"):
        bench.remote.beat(base, "run-1")


def test_what_an_owner_is_called_says_nothing_of_a_lock(bench: Bench) -> None:
    base = bench.root / "base"
    assert bench.remote.lock(base, "run-1", "left behind: run run-2 ") == ""
    held = bench.remote.lock_holder(base)
    assert not is_left_behind(held)
    assert is_held_for(held, "run-1")
    assert not is_held_for(held, "run-2")
    assert not is_held_for(held, "run")


def lock_text(bench: Bench, silent_s: float, *, pid: int = 0, ticks: int = 1, boot: str = "") -> bytes:
    uptime = float(bench.said("cat", "/proc/uptime").split()[0])
    boot = boot or bench.remote.facts().boot_id
    return f"orch-lock/v1\nold\nan owner\n{pid} {ticks} {boot}\n{uptime - silent_s:.2f}\n".encode()


@pytest.mark.parametrize(
    ("silent_s", "boot", "alive", "why"),
    [
        (0, "00000000-0000-0000-0000-000000000000", False, "booted anew"),
        (301, "", False, "its process is gone"),
        (200, "", False, ""),
        (3500, "", True, ""),
        (3700, "", True, "silent for 37"),
    ],
)
def test_a_lock_that_was_left_behind_is_taken_over(
    bench: Bench, silent_s: float, boot: str, why: str, *, alive: bool
) -> None:
    pid, ticks = 0, 1
    if alive:
        state = bench.running(bench.start("exec sleep 600"))
        pid, ticks = state.pid or 0, state.start_ticks or 0
    bench.remote.put(
        lock_text(bench, silent_s, pid=pid, ticks=ticks, boot=boot), bench.root / "base" / ".orch-lock"
    )
    said = bench.remote.lock_holder(bench.root / "base")
    assert "run old of an owner" in said
    assert is_left_behind(said) == bool(why)
    assert is_held_for(said, "old")
    assert why in said
    got = bench.remote.lock(bench.root / "base", "new", "me")
    assert ("old" in got, "new" in bench.remote.lock_holder(bench.root / "base")) == (not why, bool(why))


@pytest.mark.parametrize("text", [b"", b"orch-lock/v1\nold\n", b"\xff\n\n\n\n\n"])
def test_a_lock_that_is_not_whole_is_taken_over(bench: Bench, text: bytes) -> None:
    bench.remote.put(text, bench.root / "base" / ".orch-lock")
    assert "left behind" in bench.remote.lock_holder(bench.root / "base")
    assert bench.remote.lock(bench.root / "base", "new", "me") == ""
    assert "run new of me" in bench.remote.lock_holder(bench.root / "base")


def test_a_base_that_others_can_write_to_is_not_locked(bench: Bench) -> None:
    bench.said("sh", "-c", f"mkdir {bench.root}/open && chmod 777 {bench.root}/open")
    with pytest.raises(RemoteError, match="0777"):
        bench.remote.lock(bench.root / "open", "run", "me")
    assert bench.remote.list(bench.root / "open") == ()


def test_what_is_closed_is_closed_once_more(connect: Callable[[], Remote]) -> None:
    remote = connect()
    remote.close()
    remote.close()
