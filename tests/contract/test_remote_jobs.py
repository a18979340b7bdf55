"""Jobs on a node: they outlive their controller, end by their deadline, and leave nothing behind."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from remote_bench import Bench, until

from orchestrator.remote.base import Job, JobState, Remote, RemoteError


def test_a_job_is_absent_then_running_then_exited(bench: Bench) -> None:
    job = bench.job("echo out; echo err >&2; until [ -e go ]; do sleep 0.05; done; exit 3")
    assert bench.remote.inspect(job) == JobState("absent")
    bench.remote.start(job)
    assert bench.remote.inspect(job).status == "running"
    running = bench.running(job)
    assert running.boot_id == bench.remote.facts().boot_id
    assert bench.alive(running.pid or 0)
    bench.remote.put(b"", job.folder / "go")
    ended = bench.ended(job)
    assert ended == JobState("exited", 3, running.pid, running.start_ticks, running.boot_id)
    assert (bench.file("work/job/stdout"), bench.file("work/job/stderr")) == (b"out\n", b"err\n")
    assert not bench.alive(running.pid or 0)


@pytest.mark.parametrize("code", [0, 1, 2, 125, 126, 127, 255])
def test_exit_codes(bench: Bench, code: int) -> None:
    assert bench.ended(bench.start(f"exit {code}")).exit == code


@pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV", "HUP"])
def test_a_signal_is_128_and_its_number(bench: Bench, name: str) -> None:
    number = signal.Signals[f"SIG{name}"].value
    assert bench.ended(bench.start(f"kill -{name} $$; sleep 60")).exit == 128 + number


def test_a_program_that_is_not_there_has_an_exit_code(bench: Bench) -> None:
    job = Job(bench.root / "work", (str(bench.root / "none"),), 60)
    bench.remote.start(job)
    assert bench.ended(job).exit == 127


def test_arguments_and_surroundings(bench: Bench) -> None:
    hostile = "a b\t'\"$HOME `id` \\ * \u00e4\n;exit 9"
    job = Job(bench.root / "wo rk'$x", ("sh", "-c", 'pwd; cat; printf "%s|" "$@"', "sh", hostile, ""), 60)
    bench.remote.start(job)
    assert bench.ended(job).exit == 0
    assert bench.remote.get(job.folder / "job" / "stdout") == f"{job.folder}\n{hostile}||".encode()


def test_a_job_starts_once(bench: Bench, connect: Callable[[], Remote]) -> None:
    job = bench.job("echo ran >> count; until [ -e go ]; do sleep 0.05; done")
    for remote in (bench.remote, connect(), bench.remote, connect()):
        remote.start(job)
    first = bench.running(job)
    bench.wait_for("work/count")
    bench.remote.put(b"", job.folder / "go")
    assert bench.ended(job).exit == 0
    bench.remote.start(job)
    until(bench.quiet)
    assert bench.ended(job).pid == first.pid
    assert bench.file("work/count") == b"ran\n"


def test_another_controller_finds_a_job_again(bench: Bench, connect: Callable[[], Remote]) -> None:
    job = bench.start("exec sleep 60")
    running = bench.running(job)
    other = connect()
    assert other.inspect(job) == running
    other.signal(job, signal.SIGTERM)
    assert bench.ended(job) == connect().inspect(job)
    assert connect().inspect(job).exit == 128 + signal.SIGTERM


def test_a_deadline_ends_a_job(bench: Bench) -> None:
    assert bench.ended(bench.start("exec sleep 600", deadline_s=1)).exit == 128 + signal.SIGTERM
    until(bench.quiet)


def test_a_deadline_gives_a_program_its_grace(bench: Bench) -> None:
    script = "trap 'echo ended; exit 5' TERM; while :; do sleep 0.1; done"
    assert bench.ended(bench.start(script, deadline_s=1, grace_s=30)).exit == 5
    assert bench.file("work/job/stdout") == b"ended\n"
    until(bench.quiet)


def test_a_program_that_ignores_its_deadline_is_killed(bench: Bench) -> None:
    script = "trap '' TERM; sleep 600 & while :; do sleep 0.1; done"
    assert bench.ended(bench.start(script, deadline_s=1)).exit == 128 + signal.SIGKILL
    until(bench.quiet)


def test_a_stopped_program_is_ended_by_its_deadline(bench: Bench) -> None:
    job = bench.start("exec sleep 600", deadline_s=2)
    bench.running(job)
    bench.remote.signal(job, signal.SIGSTOP)
    assert bench.remote.inspect(job).status == "running"
    assert bench.ended(job).exit == 128 + signal.SIGKILL


def test_what_a_program_leaves_in_its_group_ends_with_it(bench: Bench) -> None:
    job = bench.start("(trap '' TERM HUP; exec sleep 600) & sh -c 'sleep 600' & echo $! >child; exit 4")
    assert bench.ended(job).exit == 4
    child = int(bench.wait_for("work/child"))
    until(lambda: not bench.alive(child))
    until(bench.quiet)


def test_what_leaves_its_group_is_found(bench: Bench) -> None:
    job = bench.start("setsid sh -c 'echo $$ >pid; exec sleep 600' & until [ -s pid ]; do sleep 0.05; done")
    assert bench.ended(job).exit == 0
    until(lambda: bench.remote.processes_under(bench.root) == (int(bench.wait_for("work/pid")),))


def test_no_watchdog_outlives_its_job(bench: Bench) -> None:
    """The one of a job with a deadline in an hour would sleep for that hour."""
    jobs = [bench.start("exit 0", name=f"w{number}", deadline_s=3600) for number in range(4)]
    for job in jobs:
        assert bench.ended(job).exit == 0
    until(bench.quiet)


def test_output_is_not_held_by_a_pipe(bench: Bench) -> None:
    size = 2 << 20
    job = bench.start(f"head -c {size} /dev/zero; head -c {size} /dev/zero >&2")
    assert bench.ended(job).exit == 0
    assert [len(bench.file(f"work/job/{name}") or b"") for name in ("stdout", "stderr")] == [size, size]


def parent(bench: Bench, pid: int) -> int:
    fields = dict(line.split(":\t", 1) for line in bench.said("cat", f"/proc/{pid}/status").splitlines())
    return int(fields["PPid"])


def test_a_job_whose_runner_was_killed_is_lost_once_it_has_ended(bench: Bench) -> None:
    job = bench.start("exec sleep 600")
    pid = bench.running(job).pid or 0
    bench.said("kill", "-KILL", str(parent(bench, pid)))
    assert bench.remote.inspect(job).status == "running"
    bench.remote.signal(job, signal.SIGTERM)
    assert bench.ended(job).status == "lost"
    assert bench.ended(job).exit is None


def test_a_deadline_holds_without_the_runner(bench: Bench) -> None:
    job = bench.start("exec sleep 600", deadline_s=2)
    bench.said("kill", "-KILL", str(parent(bench, bench.running(job).pid or 0)))
    assert bench.ended(job).status == "lost"
    until(bench.quiet)


def test_a_program_that_is_gone_under_a_stopped_runner_is_lost(bench: Bench) -> None:
    job = bench.start("exec sleep 600")
    pid = bench.running(job).pid or 0
    bench.said("kill", "-STOP", str(parent(bench, pid)))
    assert bench.remote.inspect(job).status == "running"
    bench.remote.signal(job, signal.SIGKILL)
    assert bench.ended(job).status == "lost"
    bench.remote.end(job.folder)
    assert bench.quiet()


def test_a_stopped_watchdog_holds_no_exit_code_back(bench: Bench) -> None:
    job = bench.start("until [ -e go ]; do sleep 0.05; done; exit 3")
    pid = bench.running(job).pid or 0
    runner = parent(bench, pid)
    for line in bench.said("ps", "-A", "-o", "pgid=,pid=").splitlines():
        group, other = map(int, line.split())
        if group == runner != other:
            bench.said("kill", "-STOP", str(other))
    bench.remote.put(b"", job.folder / "go")
    assert bench.ended(job).exit == 3


def test_nothing_works_in_the_folder_when_the_exit_code_appears(bench: Bench) -> None:
    for number in range(20):
        job = bench.start("exit 0", name=f"w{number}")
        while bench.remote.inspect(job).status == "running":
            pass
        assert bench.remote.processes_under(job.folder) == ()


def test_a_job_that_never_got_further_than_its_folder_is_lost(bench: Bench) -> None:
    bench.said("mkdir", "-p", str(bench.root / "work" / "job"))
    job = bench.start("echo ran")
    until(lambda: bench.remote.inspect(job).status == "lost")


def test_a_signal_goes_nowhere_where_there_is_no_job(bench: Bench) -> None:
    job = bench.job("exit 0")
    bench.remote.signal(job, signal.SIGTERM)
    bench.remote.start(job)
    ended = bench.ended(job)
    bench.remote.signal(job, signal.SIGKILL)
    assert bench.remote.inspect(job) == ended


@pytest.mark.parametrize(("ticks", "boot"), [(1, None), (0, "00000000-0000-0000-0000-000000000000")])
def test_a_process_that_has_the_number_of_ours_is_not_ours(
    bench: Bench, ticks: int, boot: str | None
) -> None:
    """The program has ended, and its number was given again, in this boot or in another."""
    other = bench.start("exec sleep 600", name="other")
    bystander = bench.running(other)
    assert bystander.start_ticks is not None
    noted = f"{bystander.pid} {bystander.start_ticks - ticks} {boot or bystander.boot_id}\n"
    bench.remote.put(noted.encode(), bench.root / "work" / "job" / "pid")
    job = bench.job("exit 0")
    bench.remote.signal(job, signal.SIGKILL)
    assert bench.remote.inspect(job).status == "lost"
    assert bench.running(other) == bystander


@pytest.mark.parametrize(
    ("name", "data"), [("exit", b"soon\n"), ("exit", b""), ("pid", b"1 2\n"), ("pid", b"\xff")]
)
def test_notes_that_no_runner_writes_are_refused(bench: Bench, name: str, data: bytes) -> None:
    bench.remote.put(data, bench.root / "work" / "job" / name)
    with pytest.raises(RemoteError, match=f"job/{name}"):
        bench.remote.inspect(bench.job("exit 0"))
