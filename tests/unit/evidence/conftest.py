"""A small sealed bundle, with the kinds of files that a real one holds."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evidence.bundle import seal
from evidence.canonical import dumps
from evidence.stream import Stream

RUN = "0199d4c2-7f00-7000-8000-000000000001"


def fill(bundle: Path) -> Stream:
    """Put the files of a finished run into a folder, and give its open stream."""
    files = {
        "plan.json": dumps({"roles": ["coordinator", "worker1"], "rate": 0.5}),
        "binding.json": dumps({"schema": "orch-binding/v1", "nodes": {}}),
        "specs/runs/star.yaml": b"orch: run/v1\nname: star\n",
        "specs/données.csv": b"x0,y\n1,2\n",
        "steps/split/1/worker1/stderr": b"",
        "steps/split/1/worker1/stdout": b'{"state":"00"}\n',
        "steps/split/1/worker1/checkpoint/w.safetensors": bytes(range(40)),
    }
    for name, data in files.items():
        (bundle / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / name).write_bytes(data)
    stream = Stream.create(bundle / "stream.jsonl", RUN, fsync=False)
    stream.append("orch.lane.started", "star", {"plan": "ab" * 32})
    stream.append("orch.step.finished", "split/1", {"verdict": "pass", "loss": 0.25})
    return stream


def qualification() -> dict[str, object]:
    return {
        "schema": "orch-qualification/v1",
        "lane": "star",
        "run_id": RUN,
        "verdict": "pass",
        "grade": "host",
        "omitted": {},
        "parent": None,
        "steps": [{"name": "split", "verdict": "pass", "attempts": 1, "reason": "", "checks": []}],
    }


def make(bundle: Path) -> str:
    """Make a sealed bundle in a folder that does not exist yet, and give its seal."""
    bundle.mkdir(parents=True)
    with fill(bundle) as stream:
        return seal(bundle, stream, "pass", qualification())


@pytest.fixture(scope="session")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed bundle that no test may change."""
    bundle = tmp_path_factory.mktemp("sealed") / "bundle"
    make(bundle)
    return bundle


@pytest.fixture
def bundle(sealed: Path, tmp_path: Path) -> Path:
    """A sealed bundle to damage."""
    return shutil.copytree(sealed, tmp_path / "bundle")


@dataclass(frozen=True)
class Unsealed:
    """A bundle whose run has finished: its folder, its open stream, and what is to be sealed into it."""

    path: Path
    stream: Stream
    qualification: dict[str, object]


@pytest.fixture
def unsealed(tmp_path: Path) -> Iterator[Unsealed]:
    path = tmp_path / "unsealed"
    path.mkdir()
    with fill(path) as stream:
        yield Unsealed(path, stream, qualification())
