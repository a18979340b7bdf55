"""The nodes that every way to a machine is tried on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from lab.node import sshd
from lab.pods import declared
from remote_bench import Bench

from orchestrator.remote.base import Remote
from orchestrator.remote.local import Local
from orchestrator.remote.record import Recorded
from orchestrator.remote.retry import Retrying
from orchestrator.remote.ssh import Ssh
from orchestrator.spec.pods import Node


def around() -> Remote:
    """This machine, behind what stands around every node."""
    retrying = Retrying(Local(), journal=lambda *_: None, wait=time.sleep, grace_s=10)
    return Recorded(retrying, journal=lambda *_: None)


WAYS: dict[str, Callable[[], Remote]] = {"local": Local, "around": around}
SERVERS: dict[str, Mapping[str, Any]] = {
    "ssh": {"shell": "/bin/dash"},
    "ssh-busybox": {"server": "dropbear", "busybox": True},
}


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Node]]:
    """Nodes behind servers of their own, made when they are first asked for."""
    with ExitStack() as stack:

        @cache
        def server(way: str) -> Node:
            folder = tmp_path_factory.mktemp(way) / "node"
            return declared(stack.enter_context(sshd(folder, **SERVERS[way])))

        yield server


@pytest.fixture(params=[*WAYS, *SERVERS])
def connect(request: pytest.FixtureRequest, servers: Callable[[str], Node]) -> Iterator[Callable[[], Remote]]:
    """Another controller's way to the node, each time that it is called."""
    with ExitStack() as stack:

        def way() -> Remote:
            remote = (WAYS.get(request.param) or (lambda: Ssh(servers(request.param))))()
            stack.callback(remote.close)
            return remote

        yield way


@pytest.fixture
def bench(connect: Callable[[], Remote], tmp_path: Path) -> Iterator[Bench]:
    """A node with an owned root; whatever still runs under it afterwards is ended."""
    bench = Bench(connect(), PurePosixPath(tmp_path.resolve()) / "root")
    bench.remote.make_root(bench.root, "tests")
    yield bench
    for pid in bench.remote.processes_under(bench.root):
        bench.remote.run(["kill", "-KILL", str(pid)], deadline_s=10)
