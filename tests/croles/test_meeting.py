"""How roles find each other, and what they say when it is someone else."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import replace

import pytest
import role_plans
from role_bench import ARM, X86, Setup, each_role
from role_frames import dial, hello, hello_payload, hung_up, listen, receive_frame

PAIR = ("coordinator", "worker")


def test_a_port_that_is_taken(bench):
    run = bench(role_plans.pair())
    run.place(Setup(connect_ms=500))
    with listen(run):
        run.start("coordinator")
        assert run.labels() == {"coordinator": "port-in-use"}


def test_nobody_comes(bench):
    run = bench(role_plans.pair())
    run.place(Setup(connect_ms=400))
    run.start("coordinator")
    assert run.labels() == {"coordinator": "connect-deadline"}


def test_nobody_is_there(bench):
    run = bench(role_plans.pair())
    run.place(Setup(connect_ms=400))
    run.start("worker")
    assert run.labels() == {"worker": "connect-deadline"}


def test_an_address_of_another_machine_cannot_be_listened_at(bench):
    run = bench(role_plans.pair())
    run.place(Setup(bind={"*": {"address": "192.0.2.1"}}))
    run.start("coordinator")
    assert run.labels() == {"coordinator": "connect-deadline"}


def test_a_worker_may_come_long_before_the_root(bench):
    run = bench(role_plans.pair())
    run.place(Setup(target=1))
    with listen(
        run
    ) as server:  # holds the port, and hangs up as a tunnel does whose far end is not there yet
        run.start("worker")
        for _ in range(3):
            server.accept()[0].close()
    run.start("coordinator")
    assert run.end("worker").results["version"] == 1


def test_one_role_missing_among_three(bench):
    """Who came in time waits no longer than the root, and sees it go."""
    run = bench(role_plans.star())
    run.place(Setup(connect_ms=700, round_ms=400))
    run.start("root", "worker")
    assert run.labels() == {"root": "connect-deadline", "worker": "peer-lost"}


def test_a_late_role_does_not_cost_the_early_one_its_round(bench):
    run = bench(role_plans.star())
    run.place(Setup(target=1, connect_ms=20000, round_ms=900))
    run.start("root", "worker")
    with dial(run) as early:  # passes more than a round's time before the last role
        early.settimeout(1.2)
        with pytest.raises(TimeoutError):
            early.recv(1)
    run.start("idle")
    assert {outcome.results["version"] for outcome in run.ends().values()} == {1}


OTHERS = {
    "run": ({"run_id": "01920000-0000-7000-8000-00000000abcd"}, "frame-identity"),
    "epoch": ({"epoch": 7}, "frame-epoch"),
    "target": ({"target": 9}, "frame-round"),
}


@pytest.mark.parametrize("targets", [(X86, X86), (X86, ARM), (ARM, X86)])
@pytest.mark.parametrize("what", OTHERS)
def test_roles_of_different_starts_both_say_so(bench, what, targets):
    change, label = OTHERS[what]
    run = bench(role_plans.pair())
    run.place(Setup(bind={"worker": change}, targets=dict(zip(PAIR, targets, strict=True))))
    run.start()
    assert run.labels() == each_role(PAIR, label)
    assert run.committed() == []


def test_roles_of_different_plans_both_say_so(bench):
    own = role_plans.pair()
    system = replace(own.plan.system, rate=0.25)
    other = replace(own, plan=replace(own.plan, system=system))
    run = bench(own)
    run.place(Setup(cases={"worker": other}))
    run.start()
    assert run.labels() == each_role(PAIR, "frame-identity")


def test_roles_that_begin_at_different_versions_both_say_so(bench, tmp_path):
    first = bench(role_plans.pair())
    first.run(Setup(target=3, publish_at=2))
    run = bench(role_plans.pair())
    run.place(Setup(target=5, epoch=2, restore=first.published(2, tmp_path / "two")))
    first.published(3, tmp_path / "three")
    (tmp_path / "three").rename(run.work("worker") / "restore3")
    (run.work("worker") / "restore").rename(run.work("worker") / "restore2")
    (run.work("worker") / "restore3").rename(run.work("worker") / "restore")
    run.start()
    assert run.labels() == each_role(PAIR, "frame-round")


def test_an_evaluation_does_not_meet_a_training(bench, tmp_path):
    first = bench(role_plans.pair())
    first.run(Setup(target=1))
    run = bench(role_plans.pair())
    restore = first.published(1, tmp_path / "one")
    run.place(Setup(target=2, epoch=2, restore=restore, bind={"worker": {"mode": "evaluate"}}))
    run.start()
    assert run.labels() == each_role(PAIR, "frame-round")


WRONG_HELLOS = {
    "plan": (lambda _, frame: replace(frame, plan=bytes(32)), "frame-identity"),
    "sender-root": (lambda _, frame: replace(frame, sender=0), "frame-identity"),
    "sender-unknown": (lambda _, frame: replace(frame, sender=2**32 - 1), "frame-identity"),
    "kind": (lambda _, frame: replace(frame, kind=2), "frame-identity"),
    "zero": (lambda _, frame: replace(frame, zero=bytes(23) + b"\1"), "frame-identity"),
    "epoch": (lambda _, frame: replace(frame, epoch=2), "frame-epoch"),
    "round": (lambda _, frame: replace(frame, round=1), "frame-round"),
    "longer": (lambda _, frame: replace(frame, length=57), "frame-bound"),
    "endless": (lambda _, frame: replace(frame, length=2**64 - 1), "frame-bound"),
    "empty": (lambda _, frame: replace(frame, length=0), "frame-bound"),
    "run": (lambda _, frame: replace(frame, payload=bytes(16) + frame.payload[16:]), "frame-identity"),
    "mode": (lambda bench, frame: replace(frame, payload=hello_payload(bench, mode=1)), "frame-round"),
    "start": (lambda bench, frame: replace(frame, payload=hello_payload(bench, start=1)), "frame-round"),
    "target": (lambda bench, frame: replace(frame, payload=hello_payload(bench, target=1)), "frame-round"),
}


@pytest.mark.parametrize("what", WRONG_HELLOS)
def test_the_root_refuses_a_wrong_hello_and_has_said_its_own(bench, what):
    change, label = WRONG_HELLOS[what]
    run = bench(role_plans.pair())
    run.place(Setup())
    run.start("coordinator")
    with dial(run) as peer:
        peer.sendall(change(run, hello(run, 1)).pack())
        assert receive_frame(peer) == hello(run, 0)
        assert hung_up(peer)
    assert run.labels() == {"coordinator": label}


@pytest.mark.parametrize("what", [what for what in WRONG_HELLOS if what != "sender-root"])
def test_a_worker_refuses_a_wrong_hello_and_has_said_its_own(bench, what):
    change, label = WRONG_HELLOS[what]
    run = bench(role_plans.pair())
    run.place(Setup())
    with listen(run) as server:
        run.start("worker")
        with server.accept()[0] as peer:
            peer.sendall(change(run, hello(run, 0)).pack())
            assert receive_frame(peer) == hello(run, 1)
            assert hung_up(peer)
    assert run.labels() == {"worker": label}


def test_two_that_say_they_are_the_same_role(bench):
    run = bench(role_plans.star())
    run.place(Setup())
    run.start("root")
    with dial(run) as first, dial(run) as second:
        first.sendall(hello(run, 1).pack())
        second.sendall(hello(run, 1).pack())
        assert hung_up(first)
        assert hung_up(second)
    assert run.labels() == {"root": "frame-identity"}


def test_a_role_that_goes_before_all_have_met(bench):
    run = bench(role_plans.star())
    run.place(Setup())
    run.start("root")
    with dial(run) as peer:
        peer.sendall(hello(run, 1).pack())
        receive_frame(peer)
    assert run.labels() == {"root": "peer-lost"}


def impostor(bench, sender, secret="5e" * 15 + "5f"):
    """Who knows everything of a run but the secret of its launch."""
    return replace(hello(bench, sender), payload=hello_payload(bench, secret=secret))


STRANGERS = {
    "silent": lambda _: b"",
    "garbage": lambda _: b"GET / HTTP/1.1\r\n\r\n",
    "begins-like-one": lambda _: b"ORCHFRM2",
    "part-of-a-magic": lambda _: b"ORCH",
    "part-of-a-hello": lambda bench: hello(bench, 1).pack()[:151],
    "without-a-payload": lambda bench: replace(hello(bench, 1), payload=b"").pack(),
    "without-the-secret": lambda bench: impostor(bench, 1).pack(),
    "a-lot": lambda _: b"\xff" * 100_000,
}


@pytest.mark.parametrize("what", STRANGERS)
def test_strangers_at_the_port_disturb_nobody(bench, what):
    run = bench(role_plans.pair())
    run.place(Setup(target=2))
    run.start("coordinator")
    strangers = [dial(run) for _ in range(40)]
    try:
        for stranger in strangers:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):  # dropped already
                stranger.sendall(STRANGERS[what](run))
        run.start("worker")
        assert {outcome.results["version"] for outcome in run.ends().values()} == {2}
    finally:
        for stranger in strangers:
            stranger.close()


def test_a_stranger_that_comes_and_goes(bench):
    run = bench(role_plans.pair())
    run.place(Setup(target=2))
    run.start("coordinator")
    for _ in range(5):
        with dial(run) as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            stranger.sendall(b"ORCHFRM1")
    run.start("worker")
    assert run.end("worker").results["version"] == 2


@pytest.mark.parametrize("secret", ["00" * 16, "5f" + "5e" * 15, "5e" * 15 + "5f"])
def test_who_does_not_know_the_secret_hears_nothing(bench, secret):
    run = bench(role_plans.pair())
    run.place(Setup(target=2))
    run.start("coordinator")
    with dial(run) as silent, dial(run) as stranger:
        stranger.sendall(impostor(run, 1, secret).pack())
        assert stranger.recv(1) == b""
        run.start("worker")
        assert {outcome.results["version"] for outcome in run.ends().values()} == {2}
        silent.settimeout(20)
        assert silent.recv(1) == b""


def test_the_root_takes_no_role_of_another_launch(bench):
    run = bench(role_plans.pair())
    run.place(Setup(connect_ms=700, bind={"worker": {"secret": "ab" * 16}}))
    run.start()
    assert run.labels() == each_role(PAIR, "connect-deadline")


def test_a_stranger_that_listens_before_the_root_is_not_taken_for_it(bench):
    run = bench(role_plans.pair())
    run.place(Setup(target=2))
    with listen(run) as server:
        run.start("worker")
        for reply in (b"HTTP/1.1 400 Bad Request\r\n" + b" " * 200, impostor(run, 0).pack()):
            with server.accept()[0] as peer:
                assert receive_frame(peer) == hello(run, 1)
                peer.sendall(reply)
                assert hung_up(peer)
    run.start("coordinator")
    assert {outcome.results["version"] for outcome in run.ends().values()} == {2}
