"""A node that answers what no node of ours would: it is refused, and costs neither memory nor time."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath

import pytest
from lab.machine import HOME
from lab.node import sshd
from lab.pods import declared

from orchestrator.errors import Label
from orchestrator.remote import shell
from orchestrator.remote.base import Job, Remote, RemoteError
from orchestrator.remote.ssh import Ssh

# takes part in the framing of requests, and tells what it likes
LIAR = """#!/usr/bin/env python3
import os, sys

hello, said, code = (part.encode().decode("unicode_escape").encode("latin-1") for part in sys.argv[1:4])
out = sys.stdout.buffer
nonce = b""
for line in sys.stdin.buffer:
    if line.startswith(b"orch_nonce="):
        nonce = line.strip().partition(b"=")[2]
    elif line.startswith(b"printf") and b"orch_hello" in line:
        out.write(b"\\n%s 0 <\\n%s\\n%s 0 0\\n" % (nonce, hello, nonce))
    elif nonce and line.startswith(nonce + b" ") and line.split()[1] != b".":
        number = line.split()[1]
        out.write(b"\\n%s %s <\\n%s" % (nonce, number, said))
        while said == b"endless":
            out.write(bytes(1 << 16))
        out.write(b"\\n%s %s %s\\n" % (nonce, number, code))
    out.flush()
"""
pytestmark = pytest.mark.skipif(not shutil.which("python3", path="/usr/bin"), reason="the liar is in Python")
HELLO = r"77\x1e5\x1e0b00t\x1e/root\x1e"
ROOT = PurePosixPath(f"{HOME}/.orch/run")
JOB = Job(ROOT / "work", ("true",), 60)
ASKED: dict[str, Callable[[Remote], object]] = {
    "facts": lambda node: node.facts(),
    "make_root": lambda node: node.make_root(ROOT, "me"),
    "put": lambda node: node.put(b"data", ROOT / "file"),
    "get": lambda node: node.get(ROOT / "file"),
    "tail": lambda node: node.tail(ROOT / "file", 10),
    "list": lambda node: node.list(ROOT),
    "start": lambda node: node.start(JOB),
    "inspect": lambda node: node.inspect(JOB),
    "signal": lambda node: node.signal(JOB, 15),
    "processes": lambda node: node.processes_under(ROOT),
    "used ports": lambda node: node.used_ports(),
    "ports": lambda node: node.ephemeral_ports(),
    "remove": lambda node: node.remove(ROOT),
    "room": lambda node: node.room(ROOT),
    "clock": lambda node: node.clock(),
    "tools": lambda node: node.missing_tools(),
    "lock": lambda node: node.lock(ROOT.parent, "run", "me"),
    "lock holder": lambda node: node.lock_holder(ROOT.parent),
    "beat": lambda node: node.beat(ROOT.parent, "run"),
    "unlock": lambda node: node.unlock(ROOT.parent, "run"),
    "resolve": lambda node: node.resolve(PurePosixPath(".orch")),
}


@pytest.fixture
def liar(tmp_path: Path) -> Iterator[Callable[..., Ssh]]:
    with ExitStack() as stack:

        def make(said: str, *, hello: str = HELLO, code: str = "0") -> Ssh:
            words = " ".join(f"'{word}'" for word in (hello, said, code))
            wants = {"files": {"liar": LIAR}, "authorized": f'command="{HOME}/liar {words}"'}
            node = stack.enter_context(sshd(tmp_path / f"node{len(list(tmp_path.iterdir()))}", **wants))
            remote = Ssh(declared(node), connect_s=10)
            stack.callback(remote.close)
            return remote

        yield make


@pytest.mark.parametrize("code", ["0", "3", "77"])
@pytest.mark.parametrize(
    "said",
    [
        "",
        "x",
        r"\xff\xfe\n1\x1e2\x1e",
        "9" * 5000,
        "\\x1e".join(["1" + "9" * 40] * 12),
        "\\x1e".join(["1x"] * 5) + "\\x1e",
        r"4\nabc",
    ],
    ids=["nothing", "word", "bytes", "number", "numbers", "fields", "size"],
)
def test_what_cannot_be_read_is_no_fault_of_ours(liar: Callable[..., Ssh], said: str, code: str) -> None:
    remote = liar(said, code=code)
    assert remote.resolve(PurePosixPath(".orch")) == ROOT.parent
    for ask in ASKED.values():
        with suppress(RemoteError):
            ask(remote)


def test_what_is_no_hello_is_no_shell(liar: Callable[..., Ssh]) -> None:
    for hello in (
        "",
        "x",
        r"77\x1e5\x1e\x1e",
        r"x\x1e5\x1eboot\x1ehome\x1e",
        "9" * 5000 + r"\x1e5\x1eboot\x1ehome\x1e",
    ):
        with pytest.raises(RemoteError) as caught:
            liar("x", hello=hello).facts()
        assert caught.value.label == Label.SHELL_UNUSABLE


def test_an_answer_without_an_end_is_given_up(
    liar: Callable[..., Ssh], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "MOST_SAID", 1 << 20)
    remote = liar("endless")
    for ask in (ASKED["facts"], lambda node: node.get(ROOT / "file", most=1 << 20), ASKED["lock"]):
        with pytest.raises(RemoteError, match="has no end") as caught:
            ask(remote)
        assert caught.value.label == Label.SHELL_UNUSABLE


@pytest.mark.parametrize("said", ["0.000000000", "99999999999999", "never", "9" * 5000])
def test_a_clock_of_another_age_is_refused(liar: Callable[..., Ssh], said: str) -> None:
    with pytest.raises(RemoteError) as caught:
        liar(said).clock()
    assert caught.value.label == Label.CLOCK
