"""`orch plan` of more roles than any lane starts: by classes, or of one of them; nothing is built."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli.main import main

SHIPPED = Path(__file__).parents[3] / "specs" / "runs" / "fleet-200k.yaml"


@pytest.fixture
def fleet(tmp_path) -> Path:
    """A star of more roles than a lane starts, for two targets."""
    system = SHIPPED.parents[1] / "systems" / "least-squares.yaml"
    run = tmp_path / "fleet.yaml"
    run.write_text(
        f"orch: run/v1\nname: fleet\nsystem: {system}\ntopology: star\n"
        'roles: [root, "w[1-199999]"]\nsamples: {root: rest, "w[1-40]": 7, "w[41-199999]": 0}\n'
        'pairings: {"root,w[1-9999]": {target: x86_64-linux}, "w[10000-199999]": {target: aarch64-linux}}\n'
    )
    return run


def test_a_fleet_is_told_by_classes(fleet, capsys):
    assert main(["plan", str(fleet), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["role_count"] == 200_000
    assert "roles" not in said
    told = [(each["roles"], each["count"], each["target"], each["samples"]) for each in said["role_classes"]]
    assert told == [
        ("root", 1, "x86_64-linux", 442 - 280),
        ("w[1-40]", 40, "x86_64-linux", 7),
        ("w[41-9999]", 9_959, "x86_64-linux", 0),
        ("w[10000-199999]", 190_000, "aarch64-linux", 0),
    ]
    assert said["role_classes"][3]["memory"] == said["role_classes"][2]["memory"]
    assert main(["plan", str(fleet)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 60
    assert any("w[10000-199999]" in line and "190000" in line for line in lines)


def test_what_a_role_of_a_fleet_does_in_a_round(fleet, capsys):
    assert main(["plan", str(fleet), "--role", "w123456", "--json"]) == 0
    role = json.loads(capsys.readouterr().out)["role"]
    assert (role["index"], role["level"], role["target"], role["dials"]) == (
        123_456,
        1,
        "aarch64-linux",
        "root",
    )
    assert (role["samples"], role["children"], role["below"]) == (0, {"roles": "", "count": 0}, 0)
    one = {"peers": {"roles": "root", "count": 1}, "words": 12, "frames": 1, "bytes": 12 * 8 + 96}
    assert role["round"] == {
        "sends": [{"kind": "contribution", **one}],
        "receives": [{"kind": "total", **one}],
    }
    assert role["holds"] == role["computes"] == {"w": {"first": 0, "stride": 1, "count": 10}}
    assert role["owns"] == role["publishes"] == {}
    assert role["memory"]["persistent_bytes"] == 80
    assert main(["plan", str(fleet), "--role", "root"]) == 0
    shown = capsys.readouterr().out
    assert "children   w[1-199999]" in shown
    assert "receives    contribution  w[1-40]" in shown


def test_the_shipped_fleet_is_planned_in_little_memory():
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from orchestrator.cli.main import main\n"
        f"code = main(['plan', {str(SHIPPED)!r}, '--json'])\n"
        "print(Path('/proc/self/status').read_text(), file=sys.stderr)\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["role_count"] == 200_000
    assert said["topology"] == {"kind": "hierarchy", "fan_out": 16}
    assert sum(each["count"] for each in said["role_classes"]) == 200_000
    assert sum(each["count"] * each["owns"]["w"] for each in said["role_classes"]) == 1 << 20
    assert len(done.stdout) < 100_000
    peak = next(line for line in done.stderr.splitlines() if line.startswith("VmHWM:"))
    assert int(peak.split()[1]) < 200 * 1024  # KiB


def test_one_role_of_the_shipped_fleet(capsys):
    assert main(["plan", str(SHIPPED), "--role", "worker123456", "--json"]) == 0
    role = json.loads(capsys.readouterr().out)["role"]
    own = {"first": 123_456, "stride": 200_000, "count": 5}
    assert role["owns"] == role["publishes"] == {"w": own, "m": own, "v": own}
    shared = {"first": 0, "stride": 1, "count": 1}
    assert role["holds"] == role["computes"] == {**role["owns"], "p1": shared, "p2": shared}
    assert (role["level"], role["dials"], role["target"]) == (5, "worker7715", "aarch64-linux")
    assert [(flow["kind"], flow["words"]) for flow in role["round"]["sends"]] == [
        ("offer", 5),
        ("contribution", (1 << 20) + 3),
    ]
    assert [(flow["kind"], flow["words"]) for flow in role["round"]["receives"]] == [
        ("replica", 1 << 20),
        ("total", 5 + 3),
    ]
    assert role["memory"]["persistent_bytes"] == 8 * 17


def test_no_more_roles_are_built_than_a_lane_starts(fleet, capsys, tmp_path):
    for arguments in (["plan", str(fleet), "--programs"], ["build", str(fleet), "-o", str(tmp_path / "out")]):
        assert main(arguments) == 1
        assert (
            ":5:8: value-range: there are too many roles to build for (got 200000, expected at most 4096)"
            in (capsys.readouterr().err)
        )
    assert not (tmp_path / "out").exists()
