"""The nodes that every way to a machine is tried on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import pytest
from remote_bench import Bench

from orchestrator.remote.base import Remote
from orchestrator.remote.local import Local
from orchestrator.remote.record import Recorded
from orchestrator.remote.retry import Retrying


def around() -> Remote:
    """This machine, behind what stands around every node."""
    retrying = Retrying(Local(), journal=lambda *_: None, wait=time.sleep, grace_s=10)
    return Recorded(retrying, journal=lambda *_: None)


WAYS: dict[str, Callable[[], Remote]] = {"local": Local, "around": around}


@pytest.fixture(params=WAYS)
def connect(request: pytest.FixtureRequest) -> Callable[[], Remote]:
    """Another controller's way to the node, each time that it is called."""
    return WAYS[request.param]


@pytest.fixture
def bench(connect: Callable[[], Remote], tmp_path: Path) -> Iterator[Bench]:
    """A node with an owned root; whatever still runs under it afterwards is ended."""
    bench = Bench(connect(), PurePosixPath(tmp_path.resolve()) / "root")
    bench.remote.make_root(bench.root, "tests")
    yield bench
    for pid in bench.remote.processes_under(bench.root):
        bench.remote.run(["kill", "-KILL", str(pid)], deadline_s=10)
