"""Publications cut at every system call: what a killed role or a failing disk leaves is no torn set."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable

import pytest
import role_plans
import role_tracer
from covering import each, some
from role_bench import Bench, Setup
from role_plans import Case
from role_tracer import Call, Traced

from orchestrator.oracle.survey import survey
from orchestrator.plan.ownership import Ownership

pytestmark = pytest.mark.skipif(not role_tracer.can_trace(), reason="needs ptrace on x86-64")

SETUP = Setup(target=2, publish_at=1, connect_ms=20000, round_ms=20000)
PARTITIONED = Ownership("partitioned", "partitioned", "partitioned")
CASES = {
    "pair": role_plans.among(role_plans.MOMENTUM, (2, 3)),
    "chain": role_plans.among(role_plans.MOMENTUM, (2, 0, 3), fan_out=1, ownership=PARTITIONED),
}
ROLES = [(name, role.name) for name, case in CASES.items() for role in case.plan.roles]
OF_EVERY_SORT = [("pair", "role0"), ("chain", "role1"), ("chain", "role2")]
"""The root, who has a part of the tree, and who has a shard alone."""
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
def undisturbed(bench) -> Callable[[Case, str], tuple[list[Call], dict[int, str]]]:
    """What a role calls from its first line of progress on, and what is published, if nothing happens."""

    def give(case: Case, who: str) -> tuple[list[Call], dict[int, str]]:
        traced = Traced()
        made = bench(case)
        made.place(SETUP)
        run(made, who, traced)
        assert {outcome.code for outcome in made.ends().values()} == {0}
        states = committed(made)
        assert sorted(states) == [1, 2]
        return traced.calls, states

    return give


@pytest.mark.parametrize(("name", "who"), some(ROLES, lambda at: at in OF_EVERY_SORT[:2]))
def test_a_role_killed_at_any_call_leaves_no_torn_checkpoint(bench, undisturbed, name, who):
    calls, states = undisturbed(CASES[name], who)
    assert sum(call.name == "renameat" for call in calls) >= 2
    for number, call in enumerate(calls):
        made = bench(CASES[name])
        made.place(SETUP)
        run(made, who, Traced(kill_at=number))
        ended = made.ends()
        assert ended[who].code == -9, (number, call, ended)
        left = committed(made)
        assert left.items() <= states.items(), (number, call)
        made.again()
        made.start()
        assert {outcome.code for outcome in made.ends().values()} == {0}, (number, call)
        assert committed(made) == states, (number, call)


@pytest.mark.parametrize("who", each(2, ["role0", "role1"]))
def test_a_later_start_that_is_killed_tears_nothing_that_an_earlier_one_published(bench, undisturbed, who):
    """In one folder, which an orchestrated run never has: the same versions again, in another epoch."""
    calls, states = undisturbed(CASES["pair"], who)
    for number, call in enumerate(calls):
        made = bench(CASES["pair"])
        made.place(SETUP)
        made.start()
        assert {outcome.code for outcome in made.ends().values()} == {0}
        made.again(epoch=2)
        run(made, who, Traced(kill_at=number))
        assert made.end(who).code == -9, (number, call)
        made.ends()
        assert committed(made).items() <= states.items(), (number, call)


@pytest.mark.parametrize(("name", "who"), some(ROLES, lambda at: at in OF_EVERY_SORT))
def test_a_write_that_fails_is_said_and_nothing_is_committed(bench, undisturbed, name, who):
    calls, states = undisturbed(CASES[name], who)
    for number, call in enumerate(calls):
        if call.name not in WRITES:
            continue
        made = bench(CASES[name])
        made.place(SETUP)
        run(made, who, Traced(fail_at=number, error=(errno.ENOSPC, errno.EIO)[number % 2]))
        ended = made.ends()
        assert ended.pop(who).label == "write-failed", (number, call)
        is_last = call.name == "write" and call.path.startswith("pipe:")  # its results, when all is done
        assert is_last or {each.label for each in ended.values()} == {"peer-lost"}, (number, call)
        done = sum(each == Call("write", "progress") for each in calls[:number])
        whole = done if is_last or call.path == "progress" else max(done - 1, 0)
        assert committed(made) == {version: states[version] for version in range(1, whole + 1)}, (
            number,
            call,
        )
        left = {path.name for path in (made.work(who) / "checkpoint").glob("*")}
        assert {name for name in left if int(name.partition(".")[0]) > whole} == set(), (number, call)
