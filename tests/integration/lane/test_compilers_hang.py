"""A compiler that does not end, under a lane that is to end: it ends too, and so does all that it started."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
from lane_workshop import Workshop, events

from evidence.verify import verify


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A workshop in which nothing is kept and the compiler waits for a child of its own."""
    package = tmp_path / "site" / "ziglang"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "zig").write_text("#!/bin/sh\nsleep 600 &\nwait\n")
    (package / "zig").chmod(0o700)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    return Workshop(tmp_path, tmp_path / "cache")


def check_end(workshop: Workshop, bundle: Path) -> None:
    assert verify(bundle) == ()
    assert workshop.strays() == []
    assert list(workshop.folder.glob("tmp/orch-build-*")) == []


def test_the_duration_limit_ends_compilers(hanging: Workshop):
    lane = hanging.lane("samples", limits="{duration: 4s}")
    code, result = hanging.run(lane, "--db", "t.sqlite3")
    assert code == 4
    (build,) = (step for step in result["steps"] if step["name"] == "build")
    assert build["reason"].startswith("limit-duration:")
    check_end(hanging, Path(result["bundle"]))


def test_an_interrupt_ends_compilers(hanging: Workshop):
    controller = hanging.start("run", "lanes/samples.yaml", "--json", "--db", "t.sqlite3")
    deadline = time.monotonic() + 60
    while not any("sleep" in command for command in hanging.strays()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    controller.send_signal(signal.SIGINT)
    out, err = controller.communicate(timeout=60)
    assert controller.returncode == 4, err
    result = json.loads(out)
    (build,) = (step for step in result["steps"] if step["name"] == "build")
    assert build["reason"] == "interrupted by SIGINT"
    assert any(event["type"] == "orch.lane.stopped" for event in events(Path(result["bundle"])))
    check_end(hanging, Path(result["bundle"]))
