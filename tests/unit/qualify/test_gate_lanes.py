"""Which lanes a gate covers: by what their files say, whatever else is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import RefusedError
from orchestrator.qualify.gate.lanes import gates


def test_every_shipped_lane_over_one_run_is_under_a_gate(pytestconfig: pytest.Config):
    folder = pytestconfig.rootpath / "lanes"
    known = gates([folder])
    assert {"samples", "coordinates", "independent", "data-parallel"} <= set(known)
    covered = {path for paths in known.values() for path in paths}
    left = {path for path in folder.iterdir() if path not in covered}
    assert all("\nmatrix:" in path.read_text() for path in left)


def test_a_lane_is_under_the_gate_that_it_names_also_where_the_rest_is_wrong(tmp_path: Path):
    (tmp_path / "b.yaml").write_text("orch: lane/v1\ngate: one\nnmae: x\n")
    (tmp_path / "a.toml").write_text('orch = "lane/v1"\ngate = "one"\n')
    (tmp_path / "none.yaml").write_text("orch: lane/v1\n")
    (tmp_path / "run.yaml").write_text("orch: run/v1\ngate: one\n")
    (tmp_path / "notes.txt").write_text("gate: one\n")
    assert gates([tmp_path, tmp_path / "absent"]) == {"one": (tmp_path / "a.toml", tmp_path / "b.yaml")}


def test_a_lane_that_lies_in_two_folders_is_one(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.yaml").write_text("orch: lane/v1\ngate: one\n")
    (tmp_path / "link").symlink_to("real")
    assert gates([tmp_path / "real", tmp_path / "link"]) == {"one": (tmp_path / "real" / "a.yaml",)}


def test_a_file_that_cannot_be_told_is_left_out_of_no_gate_in_silence(tmp_path: Path):
    (tmp_path / "a.yaml").write_text("orch: lane/v1\ngate: one\n")
    (tmp_path / "broken.yaml").write_text("orch: [lane\n")
    with pytest.raises(RefusedError, match=r"broken\.yaml:1:7: syntax"):
        gates([tmp_path])
