"""What is seen of a node without changing it; this machine stands for one: the questions are the same."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from orchestrator.errors import Label
from orchestrator.qualify.fitness import LEAST_BYTES, examine, faults
from orchestrator.remote.base import Room
from orchestrator.remote.local import Local


def look(folder: Path, **emulators: str):
    return examine(
        Local(), str(folder), {name.replace("_linux", "-linux"): said for name, said in emulators.items()}
    )


def labels(seen) -> list[Label]:
    return [fault.label for fault in faults(seen)]


def test_a_fine_node_has_no_faults_and_is_left_as_it_was(tmp_path):
    seen = look(tmp_path / "not" / "there", x86_64_linux="sh")
    assert seen.place.folder == PurePosixPath(tmp_path.resolve())
    assert seen.facts.cpus >= 1
    assert list(tmp_path.iterdir()) == []
    # no shell answers --version like an emulator; what it says is taken as it is
    assert set(labels(seen)) <= {Label.EMULATOR_MISSING}
    assert labels(replace(seen, emulators={})) == []


def test_everything_wrong_is_said_at_once(tmp_path):
    seen = look(tmp_path, aarch64_linux="no-such-emulator")
    seen = replace(
        seen, missing=("setsid",), room=Room(LEAST_BYTES - 1, 3), lock="run 1 of ada, last heard 2 s ago"
    )
    assert labels(seen) == [
        Label.TOOL_MISSING,
        Label.DISK_SPACE,
        Label.DISK_SPACE,
        Label.EMULATOR_MISSING,
        Label.RUN_LOCKED,
    ]
    for fault in faults(seen):
        assert "(got " in fault.message
        assert fault.hint


def test_a_lock_that_counts_no_more_is_no_fault(tmp_path):
    seen = replace(
        look(tmp_path), lock="left behind (the node was booted anew since): run 1 of ada, of an earlier boot"
    )
    assert labels(seen) == []


def test_a_root_that_is_a_file_or_leads_nowhere(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "file/below", "link", "link/below"):
        assert labels(look(tmp_path / name)) == [Label.REMOTE_ROOT], name


@pytest.mark.parametrize(("options", "said"), [("noexec", "noexec"), ("ro", "read-only")])
def test_mounts_that_cannot_be_used(tmp_path, options, said):
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from orchestrator.remote.local import Local\n"
        "from orchestrator.qualify.fitness import examine, faults\n"
        "print(*faults(examine(Local(), sys.argv[1] + '/.orch', {})))\n"
    )
    inner = 'mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@"'
    argv = ["unshare", "-m", "sh", "-c", inner, "sh", options, str(tmp_path)]
    done = subprocess.run(
        [*argv, sys.executable, "-c", script, str(tmp_path), *sys.path],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode == 1 and "unshare" in done.stderr:
        pytest.skip(f"no mount namespace: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("remote-root: ")
    assert said in done.stdout
