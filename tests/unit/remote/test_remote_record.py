"""What is done on a node is journalled, each kind with its facts; looks are counted; no content is there."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path, PurePosixPath

import pytest
from unreachable import Breaking, Journal

from orchestrator.remote.base import Job, RemoteError
from orchestrator.remote.local import Local
from orchestrator.remote.record import Recorded

SECRET = "correct-horse-battery"


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def node(journal: Journal) -> Recorded:
    return Recorded(Local("a"), journal)


@pytest.fixture
def root(node: Recorded, tmp_path: Path) -> PurePosixPath:
    root = PurePosixPath(tmp_path.resolve()) / "root"
    node.make_root(root, "tests")
    return root


def test_files_by_path_size_and_digest(node: Recorded, root: PurePosixPath, journal: Journal) -> None:
    data = b"a file's content"
    node.put(data, root / "file", executable=True)
    assert node.get(root / "file") == data
    facts = {"node": "a", "path": f"{root}/file", "size": 16, "sha256": hashlib.sha256(data).hexdigest()}
    elapsed = {"elapsed_ms": journal.data("remote.put")["elapsed_ms"]}
    assert journal.data("remote.put") == {**facts, **elapsed, "executable": True}
    assert journal.data("remote.get").items() >= facts.items()
    assert journal.data("remote.root")["path"] == str(root)


def test_commands_by_their_exit_and_how_much_they_said(node: Recorded, journal: Journal) -> None:
    node.run(["sh", "-c", "echo four; exit 3"], deadline_s=30)
    ran = journal.data("remote.run")
    assert (ran["argv"], ran["exit"], ran["stdout"], ran["stderr"]) == (
        ["sh", "-c", "echo four; exit 3"],
        3,
        5,
        0,
    )


def test_jobs_and_what_is_done_to_them(node: Recorded, root: PurePosixPath, journal: Journal) -> None:
    job = Job(root / "work", ("sleep", "600"), 60, environment=(("ONE", "1"),), inherit=("TWO",))
    node.start(job)
    node.signal(job, 9)
    node.prevent(job)
    node.end(root)
    node.remove(root)
    assert journal.kinds == [
        f"remote.{what}" for what in ("root", "start", "signal", "prevent", "end", "remove")
    ]
    started = journal.data("remote.start")
    assert (started["path"], started["argv"]) == (f"{root}/work", ["sleep", "600"])
    assert (started["deadline_s"], started["environment"]) == (60, ["ONE", "TWO"])
    assert journal.data("remote.signal")["signal"] == 9


def test_locks(node: Recorded, root: PurePosixPath, journal: Journal) -> None:
    assert node.lock(root, "run-1", "tests") == ""
    node.beat(root, "run-1")
    node.unlock(root, "run-1")
    assert journal.data("remote.lock").items() >= {"run": "run-1", "holder": ""}.items()
    assert journal.kinds == ["remote.root", "remote.lock", "remote.unlock"]


def test_no_content_and_no_value_of_an_environment(
    node: Recorded, root: PurePosixPath, journal: Journal
) -> None:
    node.put(SECRET.encode(), root / "file")
    node.get(root / "file")
    node.tail(root / "file", 100)
    node.run(["cat", str(root / "file")], deadline_s=30)
    node.start(Job(root / "work", ("true",), 60, environment=(("PASSWORD", SECRET),)))
    assert "PASSWORD" in json.dumps(journal.events)
    assert SECRET not in json.dumps(journal.events)


def test_looks_are_counted_and_said_at_the_end(node: Recorded, root: PurePosixPath, journal: Journal) -> None:
    for _ in range(3):
        node.inspect(Job(root / "work", ("true",), 60))
    node.get(root / "none")
    node.used_ports()
    assert journal.kinds == ["remote.root"]
    node.close()
    assert journal.data("remote.closed") == {
        "node": "a",
        "looks": {"get": 1, "inspect": 3, "used_ports": 1},
    }


def test_what_failed_is_journalled_with_its_reason(journal: Journal, root: PurePosixPath) -> None:
    journal.events.clear()
    wire = Breaking(Local("a"))
    node = Recorded(wire, journal)
    wire.misses = 1
    with pytest.raises(RemoteError):
        node.put(b"data", root / "file")
    assert journal.data("remote.put")["failed"] == "unreachable: a: the wire is cut"
    journal.events.clear()
    with pytest.raises(RemoteError):
        node.tunnel(node, 9)
    assert "failed" in journal.data("remote.tunnel")


def test_what_was_interrupted_says_so(journal: Journal) -> None:
    class Interrupted(Local):
        def end(self, folder: PurePosixPath) -> None:
            raise KeyboardInterrupt(folder)

    with pytest.raises(KeyboardInterrupt):
        Recorded(Interrupted("a"), journal).end(PurePosixPath("/nowhere"))
    assert journal.data("remote.end")["failed"] == "interrupted"


def test_every_event_is_plain_json(node: Recorded, root: PurePosixPath, journal: Journal) -> None:
    node.put(b"", root / "file")
    node.run(["true"], deadline_s=30)
    node.start(Job(root / "work", ("true",), 60))
    node.close()
    assert json.loads(json.dumps(journal.events)) == [list(event) for event in journal.events]
