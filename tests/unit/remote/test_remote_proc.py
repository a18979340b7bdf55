"""What the kernel's files say, against processes and control groups made for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.remote import proc


def test_a_process_is_known_by_its_start() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        started = proc.start_ticks(child.pid)
        assert started is not None
        assert proc.start_ticks(os.getpid()) is not None
        assert started >= (proc.start_ticks(os.getpid()) or 0)
        assert child.pid in set(proc.pids())
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        # a zombie has a number and no life
        assert proc.start_ticks(child.pid) is None
        assert proc.cmdline(child.pid) == [""]
    assert proc.start_ticks(child.pid) is None
    assert proc.cmdline(child.pid) == []


HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
REST = "0A 00000000:00000000 00:00000000 00000000     0        0 24690 1 0000000000000000 100 0 0 10 0\n"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([], []),
        (["   0: 0100007F:1F90 00000000:0000 "], [8080]),
        (["   0: 0100007F:1F90 0200007F:1F91 ", "   1: 00000000:0016 00000000:0000 "], [22, 8080]),
        (["   9: 0100007F:1F90 0200007F:0001 ", "  10: 0100007F:1F90 0200007F:0002 "], [8080]),
        (["12345: 0100007F:FFFF 00000000:0000 "], [65535]),
        ([f"   0: {'0' * 32}:01BB {'0' * 32}:0000 "], [443]),
    ],
)
def test_used_ports_are_the_local_ones_of_every_line(
    tmp_path: Path, lines: list[str], found: list[int]
) -> None:
    table, other = tmp_path / "tcp", tmp_path / "tcp6"
    table.write_text(HEAD + "".join(line + REST for line in lines), encoding="ascii")
    assert sorted(proc.used_ports((table, other))) == found
    other.write_text(f"{HEAD}   0: {'0' * 32}:0001 {'0' * 32}:0000 {REST}", encoding="ascii")
    assert sorted(proc.used_ports((table, other))) == [1, *found]


def groups(folder: Path, limits: dict[str, str]) -> Path:
    for name, text in limits.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="ascii")
    return folder


@pytest.mark.parametrize(
    ("own", "limits", "found"),
    [
        ("0::/\n", {"memory.max": "max\n"}, []),
        ("0::/\n", {"memory.max": "4096\n"}, [4096]),
        (
            "0::/user.slice/one.scope\n",
            {
                "user.slice/one.scope/memory.max": "max\n",
                "user.slice/memory.max": "8192\n",
                "other/memory.max": "1\n",
            },
            [8192],
        ),
        (
            "0::/a/b\n",
            {"a/b/memory.max": "3\n", "a/memory.max": "2\n", "memory.max": "9\n"},
            [3, 2, 9],
        ),
        # version 1, and version 2 beside it without limits
        (
            "5:cpu,memory:/job\n4:pids:/job\n0::/\n",
            {
                "memory/job/memory.limit_in_bytes": "1024\n",
                "memory/memory.limit_in_bytes": "9223372036854771712\n",
                "pids/job/memory.limit_in_bytes": "1\n",
            },
            [1024, 9223372036854771712],
        ),
        # a group that lies outside of what a container sees
        ("0::/../outside\n", {"memory.max": "77\n"}, [77]),
        ("", {"memory.max": "5\n"}, []),
    ],
)
def test_limits_are_the_groups_own_and_those_above(
    tmp_path: Path, own: str, limits: dict[str, str], found: list[int]
) -> None:
    (tmp_path / "cgroup").write_text(own, encoding="ascii")
    mounted = groups(tmp_path / "mounted", limits)
    assert list(proc.cgroup_limits(mounted, tmp_path / "cgroup")) == found
