"""Shells that a broken connection leaves on a node: their own controller ends them, or the one after it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest
from lab.node import SshNode, sshd
from lab.pods import declared
from lab.space import need_spaces, until

from orchestrator.remote.base import UnreachableError
from orchestrator.remote.ssh import Ssh
from orchestrator.spec.pods import Node


@pytest.fixture(params=["openssh", "dropbear"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SshNode]:
    need_spaces()
    with sshd(tmp_path / "node", server=request.param) as made:
        yield made


@pytest.fixture
def remote(node: SshNode) -> Iterator[Ssh]:
    way = Ssh(declared(node))
    yield way
    way.close()


def shells(node: SshNode) -> set[int]:
    """Shells that serve a controller, as this machine numbers them."""
    return {pid for pid, command in node.processes().items() if command == "sh"}


@contextmanager
def behind_a_black_hole(node: SshNode) -> Iterator[None]:
    """Whoever serves a connection now hears nothing of its end."""
    servers = [
        pid
        for pid in node.space.pids()
        if (named := Path(f"/proc/{pid}/comm").read_text()).startswith(("sshd", "dropbear"))
        and (named.startswith("sshd-") or not _listens(pid))
    ]
    for pid in servers:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in servers:
            os.kill(pid, signal.SIGCONT)


def _listens(pid: int) -> bool:
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return not Path(f"/proc/{parent}/comm").read_text().startswith(("sshd", "dropbear"))


def test_a_way_ends_its_own_earlier_shell(node: SshNode, remote: Ssh) -> None:
    remote.used_ports()
    (former,) = shells(node)
    with behind_a_black_hole(node):
        remote._way.transport().close()
        assert shells(node) == {former}
        remote.used_ports()
        until(lambda: former not in shells(node), "the earlier shell ends")
        assert len(shells(node)) == 1
    remote.used_ports()


@pytest.mark.parametrize("node", ["openssh"], indirect=True)
def test_what_an_earlier_shell_was_doing_ends_with_it(node: SshNode, remote: Ssh) -> None:
    """Where the server gives each shell a group of its own; dropbear does not."""
    with pytest.raises(UnreachableError, match="in time"):
        remote._way.ask("wait", "sleep", "600", deadline_s=1)
    with behind_a_black_hole(node):
        remote._way.transport().close()
        remote.used_ports()
        until(lambda: "sleep 600" not in node.processes().values(), "what it did ends")


def lock_and_be_gone(node: Node, base: PurePosixPath, run_id: str) -> None:
    """A controller that takes the lock and is killed: nobody closes anything."""
    assert Ssh(node).lock(base, run_id, "an owner") == ""
    os.kill(os.getpid(), signal.SIGSTOP)


@contextmanager
def another_controller(node: SshNode, base: PurePosixPath) -> Iterator[int]:
    """One that has the lock for `run-1`; gives its shell."""
    before = shells(node)
    process = multiprocessing.get_context("spawn").Process(
        target=lock_and_be_gone, args=(declared(node), base, "run-1")
    )
    process.start()
    try:
        until(lambda: os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT), "it has it")
        (shell,) = shells(node) - before
        yield shell
    finally:
        process.kill()
        process.join()


@pytest.mark.parametrize("run_id", ["run-1", "run-2"])
def test_only_the_same_run_ends_the_shell_that_the_lock_names(
    node: SshNode, remote: Ssh, run_id: str
) -> None:
    base = remote.resolve(PurePosixPath(".orch"))
    with another_controller(node, base) as former:
        said = remote.lock(base, run_id, "an owner")
        if run_id == "run-1":
            assert said == ""
            until(lambda: former not in shells(node), "the earlier controller's shell ends")
        else:
            assert "run-1" in said
            assert former in shells(node)
    assert len(shells(node)) >= 1


def test_two_ways_of_one_controller_leave_each_other_alone(node: SshNode, remote: Ssh) -> None:
    base = remote.resolve(PurePosixPath(".orch"))
    other = Ssh(declared(node))
    assert remote.lock(base, "run-1", "an owner") == ""
    assert other.lock(base, "run-1", "an owner") == ""
    remote.beat(base, "run-1")
    other.beat(base, "run-1")
    assert len(shells(node)) == 2
    other.close()


def test_a_later_process_with_its_number_is_no_shell_of_ours(node: SshNode, remote: Ssh) -> None:
    other = Ssh(declared(node))
    pid, ticks, boot = other._way.hello().process
    for process in ((pid, ticks + 1, boot), (pid, ticks, "00000000-0000-0000-0000-000000000000")):
        remote._way.ask("try", "orch_relieve", *map(str, process))
    other.used_ports()
    remote._way.ask("try", "orch_relieve", *map(str, (pid, ticks, boot)))
    with pytest.raises(UnreachableError, match="the shell there has ended"):
        other.used_ports()
    other.close()
