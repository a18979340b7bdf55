"""Publications cut at every system call: what a killed role or a failing disk leaves is no torn set."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable

import pytest
import role_plans
import role_tracer
from role_bench import Bench, Setup
from role_tracer import Call, Traced

from orchestrator.oracle.survey import survey

pytestmark = pytest.mark.skipif(not role_tracer.can_trace(), reason="needs ptrace on x86-64")

SETUP = Setup(target=2, publish_at=1, connect_ms=20000, round_ms=20000)
PAIR = role_plans.case(
    role_plans.MOMENTUM, role_plans.STAR_WORDS, role_plans.roles(("coordinator", 2), ("worker", 3))
)
MANIFEST = re.compile(r"([0-9]+)\.manifest\.json")
WRITES = ("openat", "mkdirat", "write", "fsync", "renameat")  # all that a role asks of a disk


def run(bench: Bench, who: str, traced: Traced) -> None:
    """One start of all roles, one of them traced, until all have ended."""
    bench.start(*(role.name for role in bench.case.plan.roles if role.name != who))
    bench.start(who, popen=role_tracer.start)
    role_tracer.trace(bench.processes[who], traced)


def committed(bench: Bench) -> dict[int, str]:
    """Version -> state of every published set, each of which must be whole."""
    files = {path.name: path for path in bench.folder.glob("*/checkpoint/*")}
    found: dict[int, str] = {}
    for name in files:
        if match := MANIFEST.fullmatch(name):
            looked = survey(name, _reader(files), bench.case.plan.system)
            assert looked.faults == (), (name, sorted(files), looked.faults)
            found[int(match[1])] = looked.outline.manifest.state
    return found


def _reader(files) -> Callable[[str], bytes | None]:
    return lambda name: files[name].read_bytes() if name in files else None


@pytest.fixture
def undisturbed(bench) -> Callable[[str], tuple[list[Call], dict[int, str]]]:
    """What a role calls from its first line of progress on, and what is published, if nothing happens."""

    def give(who: str) -> tuple[list[Call], dict[int, str]]:
        traced = Traced()
        made = bench(PAIR)
        made.place(SETUP)
        run(made, who, traced)
        assert [outcome.code for outcome in made.ends().values()] == [0, 0]
        states = committed(made)
        assert sorted(states) == [1, 2]
        return traced.calls, states

    return give


@pytest.mark.parametrize("who", ["coordinator", "worker"])
def test_a_role_killed_at_any_call_leaves_no_torn_checkpoint(bench, undisturbed, who):
    calls, states = undisturbed(who)
    assert sum(call.name == "renameat" for call in calls) >= 2
    for number, call in enumerate(calls):
        made = bench(PAIR)
        made.place(SETUP)
        run(made, who, Traced(kill_at=number))
        ended = made.ends()
        assert ended[who].code == -9, (number, call, ended)
        left = committed(made)
        assert left.items() <= states.items(), (number, call)
        made.again()
        made.start()
        assert [outcome.code for outcome in made.ends().values()] == [0, 0], (number, call)
        assert committed(made) == states, (number, call)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("who", ["coordinator", "worker"])
def test_a_write_that_fails_is_said_and_nothing_is_committed(bench, undisturbed, who, error):
    calls, states = undisturbed(who)
    (other,) = {"coordinator", "worker"} - {who}
    for number, call in enumerate(calls):
        if call.name not in WRITES:
            continue
        made = bench(PAIR)
        made.place(SETUP)
        run(made, who, Traced(fail_at=number, error=error))
        ended = made.ends()
        assert ended[who].label == "write-failed", (number, call)
        is_last = call.name == "write" and call.path.startswith("pipe:")  # its results, when all is done
        assert is_last or ended[other].label == "peer-lost", (number, call)
        done = sum(each == Call("write", "progress") for each in calls[:number])
        whole = done if is_last or call.path == "progress" else max(done - 1, 0)
        assert committed(made) == {version: states[version] for version in range(1, whole + 1)}, (
            number,
            call,
        )
        left = {path.name for path in (made.work(who) / "checkpoint").glob("*")}
        assert {name for name in left if int(name.partition(".")[0]) > whole} == set(), (number, call)
