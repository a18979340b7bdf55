"""Rounds and publications with peers that fail: killed, stopped, wrong, silent, different."""

from __future__ import annotations

import hashlib
import os
import signal
import struct
from dataclasses import replace

import pytest
import role_bench
import role_plans
from role_bench import ARM, X86, Setup, altered_content, each_role
from role_frames import (
    COMMITTED,
    CONTRIBUTION,
    PUBLISH,
    TOTAL,
    Frame,
    dial,
    hello,
    hung_up,
    listen,
    receive_frame,
)

PAIR = ("coordinator", "worker")
STAR = ("root", "idle", "worker")
ENDLESS = 2**40


def frame(run, sender, kind, round_, payload):
    return Frame(bytes.fromhex(run.case.plan.digest), sender, kind, round=round_, payload=payload)


def words(*values):
    return struct.pack(f"<{len(values)}d", *values)


# What each role of the pair contributes at w = 0, and the state that follows.
OF_COORDINATOR = words(-1.5, 1.125, 1.0)
OF_WORKER = words(-1.5, 0.625, 2.0)
TOTAL_WORDS = words(-3.0, 1.75, 3.0)
STATE = hashlib.sha256(words(0.5)).digest()


def as_worker(run):
    """A meeting with a real coordinator."""
    run.start("coordinator")
    peer = dial(run)
    peer.sendall(hello(run, 1).pack())
    assert receive_frame(peer) == hello(run, 0)
    return peer


def as_coordinator(run):
    """A meeting with a real worker."""
    with listen(run) as server:
        run.start("worker")
        peer = server.accept()[0]
    peer.sendall(hello(run, 0).pack())
    assert receive_frame(peer) == hello(run, 1)
    return peer


@pytest.fixture
def pair(bench):
    run = bench(role_plans.pair())
    run.place(Setup(target=1, connect_ms=3000, round_ms=700))
    return run


def test_what_stands_on_the_wire(pair):
    with as_worker(pair) as peer:
        peer.sendall(frame(pair, 1, CONTRIBUTION, 1, OF_WORKER).pack())
        assert receive_frame(peer) == frame(pair, 0, TOTAL, 1, TOTAL_WORDS)
        peer.sendall(frame(pair, 1, PUBLISH, 1, STATE + bytes(48)).pack())
        assert receive_frame(peer) == frame(pair, 0, COMMITTED, 1, bytes(8))
        assert hung_up(peer)
    assert pair.end("coordinator").results["version"] == 1


def test_what_stands_on_the_wire_of_the_other_side(pair):
    with as_coordinator(pair) as peer:
        assert receive_frame(peer) == frame(pair, 1, CONTRIBUTION, 1, OF_WORKER)
        peer.sendall(frame(pair, 0, TOTAL, 1, TOTAL_WORDS).pack())
        # one word is the root's to write: the worker has no shard
        assert receive_frame(peer) == frame(pair, 1, PUBLISH, 1, STATE + bytes(48))
        peer.sendall(frame(pair, 0, COMMITTED, 1, bytes(8)).pack())
        assert hung_up(peer)
    assert pair.end("worker").results["state"] == STATE.hex()


WRONG = {
    "magic": ({"magic": b"ORCHFRM2"}, "frame-identity"),
    "plan": ({"plan": bytes(32)}, "frame-identity"),
    "sender": ({"sender": 9}, "frame-identity"),
    "kind": ({"kind": PUBLISH}, "frame-identity"),
    "zero": ({"zero": b"\1" + bytes(23)}, "frame-identity"),
    "epoch": ({"epoch": 0}, "frame-epoch"),
    "round": ({"round": 2}, "frame-round"),
    "longer": ({"payload": bytes(32)}, "frame-bound"),
    "shorter": ({"payload": bytes(16)}, "frame-bound"),
    "endless": ({"length": 2**63}, "frame-bound"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_coordinator_refuses_a_wrong_contribution(pair, what):
    change, label = WRONG[what]
    with as_worker(pair) as peer:
        peer.sendall(replace(frame(pair, 1, CONTRIBUTION, 1, OF_WORKER), **change).pack())
        assert hung_up(peer)
    assert pair.labels() == {"coordinator": label}
    assert (pair.progress("coordinator"), pair.committed()) == ([], [])


@pytest.mark.parametrize("what", WRONG)
def test_a_worker_refuses_a_wrong_total(pair, what):
    change, label = WRONG[what]
    with as_coordinator(pair) as peer:
        peer.sendall(replace(frame(pair, 0, TOTAL, 1, TOTAL_WORDS), **change).pack())
        assert hung_up(peer)
    assert pair.labels() == {"worker": label}
    assert (pair.progress("worker"), pair.committed()) == ([], [])


@pytest.mark.parametrize("word", [float("nan"), float("inf")])
def test_words_that_are_not_finite_end_both_sides(pair, word):
    with as_worker(pair) as peer:
        peer.sendall(frame(pair, 1, CONTRIBUTION, 1, words(word, 1.0, 2.0)).pack())
        # the root passes the total on before it refuses, so that every role can say the same
        assert receive_frame(peer).kind == TOTAL
        assert hung_up(peer)
    assert pair.labels() == {"coordinator": "non-finite"}
    assert (pair.progress("coordinator"), pair.committed()) == ([], [])


def test_real_roles_say_non_finite_together(bench):
    case = role_plans.case(
        role_plans.SCALAR, (1.0, 1.0, 1e200, 1e200), role_plans.roles(("coordinator", 1), ("worker", 1))
    )
    run = bench(case)
    outcomes = run.run(Setup(target=3))
    assert {name: outcome.label for name, outcome in outcomes.items()} == each_role(PAIR, "non-finite")
    assert run.committed() == []


SILENCES = {
    "contribution": (as_worker, "coordinator", []),
    "total": (as_coordinator, "worker", []),
    "publish": (as_worker, "coordinator", [(CONTRIBUTION, OF_WORKER)]),
    "committed": (as_coordinator, "worker", [(TOTAL, TOTAL_WORDS)]),
}


@pytest.mark.parametrize("what", SILENCES)
@pytest.mark.parametrize("part", [0, 50, 100])
def test_a_frame_that_does_not_come_or_not_whole(pair, what, part):
    meet, role, before = SILENCES[what]
    sender = int(role == "coordinator")
    with meet(pair) as peer:
        for kind, payload in before:
            peer.sendall(frame(pair, sender, kind, 1, payload).pack())
        following = {"contribution": CONTRIBUTION, "total": TOTAL, "publish": PUBLISH, "committed": COMMITTED}
        length = {CONTRIBUTION: 24, TOTAL: 24, PUBLISH: 80, COMMITTED: 8}[following[what]]
        peer.sendall(frame(pair, sender, following[what], 1, bytes(length)).pack()[:part])
        assert hung_up(peer)
    assert pair.labels() == {role: "round-deadline"}
    assert pair.committed() == []


@pytest.mark.parametrize(("meet", "role"), [(as_worker, "coordinator"), (as_coordinator, "worker")])
def test_a_role_sleeps_while_it_waits(pair, meet, role):
    """It looks a few times and not until its deadline, which is at least 700 ms away."""
    with meet(pair) as peer:
        process = pair.processes[role]
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert hung_up(peer)
    assert pair.labels() == {role: "round-deadline"}
    assert used.ru_utime + used.ru_stime < 0.2


@pytest.mark.parametrize("what", SILENCES)
def test_a_peer_that_hangs_up(pair, what):
    meet, role, before = SILENCES[what]
    sender = int(role == "coordinator")
    with meet(pair) as peer:
        for kind, payload in before:
            peer.sendall(frame(pair, sender, kind, 1, payload).pack())
            receive_frame(peer)
        if what == "committed":
            assert receive_frame(peer).kind == PUBLISH
    assert pair.labels() == {role: "peer-lost"}
    assert pair.committed() == []


def in_the_middle(run):
    for role in run.case.plan.roles:
        run.wait_for(role.name, "progress", size=1000)


@pytest.mark.parametrize("targets", [(X86, X86, X86), (ARM, X86, ARM)])
@pytest.mark.parametrize("victim", STAR)
def test_a_role_that_is_killed(bench, victim, targets):
    run = bench(role_plans.star())
    run.place(Setup(target=ENDLESS, publish_at=3, targets=dict(zip(STAR, targets, strict=True))))
    run.start()
    in_the_middle(run)
    run.processes[victim].kill()
    outcomes = run.ends()
    assert outcomes.pop(victim).code == -signal.SIGKILL
    assert {name: outcome.label for name, outcome in outcomes.items()} == dict.fromkeys(outcomes, "peer-lost")
    assert {name.split(".")[0] for name in run.committed()} == {"3"}


@pytest.mark.parametrize("victim", STAR)
def test_a_role_that_is_stopped(bench, victim):
    run = bench(role_plans.star())
    run.place(Setup(target=ENDLESS, round_ms=700))
    run.start()
    in_the_middle(run)
    run.processes[victim].send_signal(signal.SIGSTOP)
    others = {name: run.end(name).label for name in STAR if name != victim}
    # who waits for the stopped one is late; a child whose root gave up first has lost it
    assert set(others.values()) <= {"round-deadline", "peer-lost"}
    assert "round-deadline" in others.values()
    run.processes[victim].send_signal(signal.SIGCONT)
    assert run.end(victim).label in {"round-deadline", "peer-lost"}
    assert run.committed() == []


def test_a_stopped_role_keeps_its_own_deadline(pair):
    """It wakes after its deadline with the frame there: late is late."""
    with as_coordinator(pair) as peer:
        receive_frame(peer)
        pair.processes["worker"].send_signal(signal.SIGSTOP)
        peer.sendall(frame(pair, 0, TOTAL, 1, TOTAL_WORDS).pack())
        peer.settimeout(5.0)
        with pytest.raises(TimeoutError):
            peer.recv(1)
        pair.processes["worker"].send_signal(signal.SIGCONT)
        assert hung_up(peer)
    assert pair.labels() == {"worker": "round-deadline"}


def test_a_short_stop_disturbs_nothing(bench):
    run = bench(role_plans.star())
    run.place(Setup(target=3000, round_ms=20000))
    run.start()
    in_the_middle(run)
    run.processes["idle"].send_signal(signal.SIGSTOP)
    run.processes["idle"].send_signal(signal.SIGCONT)
    assert {outcome.results["version"] for outcome in run.ends().values()} == {3000}


@pytest.mark.parametrize("role", STAR)
def test_a_run_that_takes_too_long_ends_everywhere(bench, role):
    run = bench(role_plans.star())
    run.place(Setup(target=ENDLESS, bind={role: {"run_ms": 1000}}))
    run.start()
    labels = run.labels()
    assert labels.pop(role) == "run-deadline"
    assert set(labels.values()) == {"peer-lost"}
    assert run.committed() == []


@pytest.mark.parametrize("odd", STAR)
def test_replicas_that_differ(bench, tmp_path, odd):
    run = bench(role_plans.star())
    outcomes = run.run(Setup(target=1, content={odd: role_bench.differing(tmp_path / "content")}))
    assert {name: outcome.label for name, outcome in outcomes.items()} == each_role(
        STAR, "replica-divergence"
    )
    assert run.committed() == []


def test_replicas_that_differ_after_a_good_publication(bench, tmp_path):
    content = altered_content(
        tmp_path / "content",
        "native/rounds.c",
        "        learner_update(total);\n",
        "        learner_update(total);\n        if (version == 4)\n            *learner_field(0) += 1.0;\n",
    )
    run = bench(role_plans.pair())
    outcomes = run.run(Setup(target=5, publish_at=2, content={"worker": content}))
    assert {name: outcome.label for name, outcome in outcomes.items()} == each_role(
        PAIR, "replica-divergence"
    )
    assert run.committed() == ["2.coordinator.safetensors", "2.manifest.json"]


def test_an_owner_keeps_a_shard_that_the_manifest_may_name(bench):
    """Only the root knows whether it published; a child that lost it leaves its shard where it is."""
    run = bench(role_plans.star())
    run.place(Setup(target=ENDLESS, publish_at=1, round_ms=700))
    with listen(run) as server:
        run.start("worker")
        with server.accept()[0] as peer:
            peer.sendall(hello(run, 0).pack())
            receive_frame(peer)
            contribution = receive_frame(peer)
            peer.sendall(frame(run, 0, TOTAL, 1, contribution.payload).pack())
            assert receive_frame(peer).kind == PUBLISH
    assert run.labels() == {"worker": "peer-lost"}
    assert run.committed() == ["1.worker.safetensors"]


@pytest.mark.parametrize(("outcome", "label"), [(1, "peer-lost"), (2, "replica-divergence")])
def test_an_owner_removes_its_shard_when_told_that_nothing_is_published(bench, outcome, label):
    run = bench(role_plans.star())
    run.place(Setup(target=ENDLESS, publish_at=1))
    with listen(run) as server:
        run.start("worker")
        with server.accept()[0] as peer:
            peer.sendall(hello(run, 0).pack())
            receive_frame(peer)
            contribution = receive_frame(peer)
            peer.sendall(frame(run, 0, TOTAL, 1, contribution.payload).pack())
            assert receive_frame(peer).kind == PUBLISH
            peer.sendall(frame(run, 0, COMMITTED, 1, struct.pack("<Q", outcome)).pack())
            assert hung_up(peer)
    assert run.labels() == {"worker": label}
    assert run.committed() == []
