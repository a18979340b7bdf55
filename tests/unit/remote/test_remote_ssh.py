"""What only a node over SSH shows: lost shells and controllers, missing tools, full disks, inheritance."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest
from lab.machine import HOME
from lab.node import SshNode, sshd
from lab.pods import declared

from orchestrator.errors import Label
from orchestrator.remote import shell
from orchestrator.remote.base import Job, RemoteError, UnreachableError
from orchestrator.remote.ssh import Ssh

PATIENCE_S = 60
BYTES = b"\0\1\2" * 200_000 + b"end"


@dataclass(frozen=True)
class Reached:
    """A node, a way to it, and a root of ours on it."""

    node: SshNode
    remote: Ssh
    root: PurePosixPath


@pytest.fixture
def reach(tmp_path: Path) -> Iterator[Callable[..., Reached]]:
    with ExitStack() as stack:

        def make(**wants: object) -> Reached:
            node = stack.enter_context(sshd(tmp_path / "node", **wants))
            remote = Ssh(declared(node))
            stack.callback(remote.close)
            root = remote.resolve(PurePosixPath(".orch")) / "run"
            remote.make_root(root, "tests")
            return Reached(node, remote, root)

        yield make


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < limit, "it never came"
        time.sleep(0.02)


def test_a_shell_that_was_killed_is_found_gone_and_another_one_works(reach: Callable[..., Reached]) -> None:
    at = reach()
    for use in (
        lambda: at.remote.put(BYTES * 8, at.root / "file"),
        lambda: at.remote.get(at.root / "file"),
        lambda: at.remote.run(["true"], deadline_s=30),
        lambda: at.remote.list(at.root),
    ):
        pid = at.remote._way.hello().pid
        killer = Ssh(declared(at.node))
        assert killer.run(["kill", "-KILL", str(pid)], deadline_s=30).exit == 0
        killer.close()
        with pytest.raises(UnreachableError, match="the shell there has ended"):
            use()
        use()
    assert at.remote.get(at.root / "file") == BYTES * 8


def test_a_server_that_was_killed_is_unreachable_until_it_is_back(reach: Callable[..., Reached]) -> None:
    at = reach()
    job = Job(at.root / "work", ("sh", "-c", "until [ -e go ]; do sleep 0.05; done; exit 3"), 60)
    at.remote.start(job)
    at.node.kill_sshd()
    for _ in range(2):
        with pytest.raises(UnreachableError):
            at.remote.inspect(job)
    at.node.start_sshd()
    assert at.remote.inspect(job).status == "running"
    at.remote.put(b"", job.folder / "go")
    until(lambda: at.remote.inspect(job).status == "exited")
    assert at.remote.inspect(job).exit == 3


def test_a_closed_way_leaves_jobs_alone(reach: Callable[..., Reached]) -> None:
    at = reach()
    job = Job(at.root / "work", ("sleep", "600"), 60)
    at.remote.start(job)
    until(lambda: at.remote.inspect(job).pid is not None)
    before = at.remote.inspect(job)
    at.remote.close()
    other = Ssh(declared(at.node))
    assert other.inspect(job) == before
    other.end(at.root)
    other.close()


def test_a_connection_that_is_cut_without_a_word_is_found_out(
    reach: Callable[..., Reached], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ends look open: the server is there and does nothing."""
    monkeypatch.setattr(shell, "_SILENCE_S", 0.2)
    monkeypatch.setattr(shell, "_ANSWER_S", 1.0)
    at = reach()
    if at.node.space is None:
        pytest.skip("without namespaces nobody can tell whose servers are whose")
    servers = [pid for pid in at.node.space.pids() if b"sshd" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    for pid in servers:
        os.kill(pid, signal.SIGSTOP)
    begun = time.monotonic()
    with pytest.raises(UnreachableError, match="silent"):
        at.remote.list(at.root)
    assert time.monotonic() - begun < PATIENCE_S / 2
    for pid in servers:
        os.kill(pid, signal.SIGCONT)
    assert at.remote.list(at.root) == (".orch-owner",)


def test_a_node_that_takes_long_is_not_taken_for_a_silent_one(
    reach: Callable[..., Reached], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "_SILENCE_S", 0.2)
    at = reach()
    assert at.remote.run(["sh", "-c", "sleep 3; echo done"], deadline_s=60).stdout == b"done\n"
    first = at.remote._way.hello().pid
    with pytest.raises(UnreachableError, match="the node is there and did not look at the clock in time"):
        at.remote._way.ask("look at the clock", "sleep", "30", deadline_s=1)
    assert at.remote._way.hello().pid != first


CONTROLLER = """
    import sys
    from pathlib import Path
    from orchestrator.remote.ssh import Ssh
    from orchestrator.spec.read import read_pods
    remote = Ssh(read_pods(Path(sys.argv[1])).nodes["a"])
    remote.run(["sh", "-c", "echo >/tmp/begun; cd /tmp; exec sleep 77"], deadline_s=300)
"""


@pytest.mark.parametrize("wait_s", [0, 2])
def test_a_command_does_not_outlive_its_controller(
    reach: Callable[..., Reached], tmp_path: Path, wait_s: float
) -> None:
    at = reach()
    pods = at.node.folder / "a.pods.yaml"
    script = textwrap.dedent(CONTROLLER)
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", script, str(pods)], cwd=root) as controller:
        until(lambda: at.remote.run(["test", "-e", "/tmp/begun"], deadline_s=30).exit == 0)
        time.sleep(wait_s)
        controller.send_signal(signal.SIGKILL)
    until(lambda: at.remote.processes_under(PurePosixPath("/tmp")) == ())
    del tmp_path


HASHERS = ("sha256sum", "openssl", "shasum", "busybox", "python3", "python", "perl")


@pytest.mark.parametrize("kept", [*HASHERS[1:5], "perl"])
def test_whatever_hashes_will_do(reach: Callable[..., Reached], kept: str) -> None:
    at = reach(without=frozenset(HASHERS) - {kept})
    if at.remote.run([kept, "--help"], deadline_s=30).exit == 127:
        pytest.skip(f"{kept} is not installed")
    for data in (b"", b"a", BYTES * 4):
        assert at.remote.put(data, at.root / "file") == hashlib.sha256(data).hexdigest()
    assert at.remote.missing_tools() == ()


def test_nothing_that_hashes_is_a_missing_tool(reach: Callable[..., Reached]) -> None:
    at = reach(without=frozenset(HASHERS))
    (missing,) = at.remote.missing_tools()
    assert "SHA-256" in missing
    with pytest.raises(RemoteError) as refused:
        at.remote.put(b"data", at.root / "file")
    assert refused.value.label == Label.TOOL_MISSING
    assert at.remote.list(at.root) == (".orch-owner",)


def test_tools_that_are_missing_are_named(reach: Callable[..., Reached]) -> None:
    at = reach(without=frozenset({"setsid", "df"}))
    assert at.remote.missing_tools() == ("df", "setsid")
    with pytest.raises(RemoteError, match="made no folder"):
        at.remote.start(Job(at.root / "work", ("true",), 60))
    assert at.remote.run(["true"], deadline_s=30).exit == 127


def test_bytes_arrive_without_head(reach: Callable[..., Reached]) -> None:
    at = reach(without=frozenset({"head"}))
    assert at.remote.missing_tools() == ()
    at.remote.put(BYTES, at.root / "file")
    assert at.remote.get(at.root / "file") == BYTES


def test_a_full_disk_is_said_and_leaves_nothing(reach: Callable[..., Reached]) -> None:
    at = reach(disks={f"{HOME}/.orch": "size=1m,mode=700"})
    assert (at.remote.room(at.root).free_bytes or 0) < 1 << 20
    with pytest.raises(RemoteError, match=r"No space left.*free some there") as refused:
        at.remote.put(BYTES * 4, at.root / "file")
    assert refused.value.label == Label.DISK_SPACE
    assert at.remote.list(at.root) == (".orch-owner",)
    lines = b"exit 9\n\0\n" * 6000

    def fill() -> None:
        for number in range(40):
            at.remote.put(lines, at.root / f"file-{number}")

    with pytest.raises(RemoteError) as refused:
        fill()
    assert refused.value.label == Label.DISK_SPACE
    names = at.remote.list(at.root)
    assert not [name for name in names if name.endswith(".part")]
    at.remote.remove(at.root)
    at.remote.make_root(at.root, "tests")
    at.remote.put(lines, at.root / "file")
    assert at.remote.get(at.root / "file") == lines


def test_a_job_inherits_what_the_node_has(reach: Callable[..., Reached]) -> None:
    at = reach(
        files={".bashrc": "export FROM_LOGIN='a  b\n c'; export EMPTY=\n"}, config=("SetEnv SET=by-sshd",)
    )
    inherit = ("FROM_LOGIN", "EMPTY", "SET", "NONE", "FIRST")
    job = Job(
        at.root / "work",
        ("sh", "-c", 'printf "%s|" "$FROM_LOGIN" "${EMPTY-unset}" "$SET" "${NONE-unset}" "$FIRST"; env'),
        60,
        environment=(("FIRST", "ours"), ("NO", "no")),
        inherit=inherit,
    )
    at.remote.start(job)
    until(lambda: at.remote.inspect(job).exit == 0)
    said = (at.remote.get(job.folder / "job" / "stdout") or b"").decode()
    assert said.startswith("a  b\n c||by-sshd|unset|ours|")
    for hidden in ("SSH_", "ORCH_SET", "MAIL=", "SHLVL=9"):
        assert hidden not in said


def test_what_the_first_process_was_given_counts_where_the_login_says_nothing(
    reach: Callable[..., Reached],
) -> None:
    """Providers give a pod's variables to its first process, and a login does not see them."""
    at = reach()
    if at.node.space is None:
        pytest.skip("without namespaces the first process is not the test's")
    assert at.remote.run(["printenv", "POD_ID"], deadline_s=30).exit == 1
    job = Job(at.root / "work", ("printenv", "POD_ID"), 60, inherit=("POD_ID",))
    at.remote.start(job)
    until(lambda: at.remote.inspect(job).status == "exited")
    assert at.remote.get(job.folder / "job" / "stdout") == b"of the first  process\n"


@pytest.mark.parametrize("wants", [{"shell": "/bin/dash"}, {"busybox": True}])
def test_whatever_a_full_disk_keeps_from_being_written_says_so(
    reach: Callable[..., Reached], wants: dict[str, object]
) -> None:
    """Some shells say nothing of why: the disk is looked at."""
    at = reach(disks={f"{HOME}/.orch": "size=256k,nr_inodes=64,mode=700"}, **wants)
    at.remote.put(b"", at.root / "work" / "here")
    full = at.node.fill(f"{HOME}/.orch")
    job = Job(at.root / "work", ("true",), 60)
    for use in (
        lambda: at.remote.start(job),
        lambda: at.remote.put(b"x", at.root / "small"),
        lambda: at.remote.lock(at.root.parent, "run", "me"),
        lambda: at.remote.make_root(at.root.with_name("other"), "tests"),
    ):
        with pytest.raises(RemoteError) as refused:
            use()
        assert refused.value.label == Label.DISK_SPACE
    full.unlink()
    at.remote.start(job)
    until(lambda: at.remote.inspect(job).status == "exited")
