"""A rental that would cost more than its cap ends in time, by our own processes, and says who still bills."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from lab.desk import Desk, assert_clean, events
from lab.node import sshd
from lab.pods import write_pods
from ssh_lanes import labels

LONG = {"updates": "4000000", "split": "2000000"}


def test_the_rental_cap_stops_the_lane(desk: Desk, tmp_path: Path):
    with sshd(tmp_path / "node") as node:
        now = dt.datetime.now(dt.UTC)
        pods = write_pods(
            desk.folder / "pods.yaml",
            {"a": node.pods_entry(price="36 USD/h", pod="pod-17", owned=None)},
            rental={"started": now.isoformat(), "cap": "0.08 USD"},  # eight seconds
        )
        code, result, err = desk.run(desk.lane("samples", **LONG), pods)
        assert (code, result.get("verdict")) == (4, "unknown"), (result, err)
        assert labels(err) == {"limit-spend"}
        assert "pod-17" in err
        assert "36" in err
        last = dt.datetime.fromisoformat(events(Path(result["bundle"]))[-1]["time"])
        assert (last - now).total_seconds() < 60  # it would go on for minutes
        assert_clean(node)


def test_a_cap_that_is_spent_already(desk: Desk, tmp_path: Path):
    with sshd(tmp_path / "node") as node:
        began = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
        pods = write_pods(
            desk.folder / "pods.yaml",
            {"a": node.pods_entry(price="36 USD/h", owned=None)},
            rental={"started": began.isoformat(), "cap": "0.01 USD"},
        )
        code, _, err = desk.run("lanes/samples.yaml", pods)
        assert code == 4, err
        assert labels(err) == {"limit-spend"}
        assert_clean(node)


@pytest.mark.parametrize("limits", ["{duration: 5s}", "{duration: 20m, spend: 0.05 USD}"])
def test_the_lanes_own_limits(desk: Desk, tmp_path: Path, limits: str):
    with sshd(tmp_path / "node") as node:
        now = dt.datetime.now(dt.UTC).isoformat()
        pods = write_pods(
            desk.folder / "pods.yaml",
            {"a": node.pods_entry(price="36 USD/h", owned=None)},
            rental={"started": now, "cap": "50 USD"},
        )
        code, result, err = desk.run(desk.lane("samples", **LONG, limits=limits), pods)
        assert (code, result.get("verdict")) == (4, "unknown"), (result, err)
        assert labels(err) == {"limit-spend" if "spend" in limits else "limit-duration"}
        assert_clean(node)
