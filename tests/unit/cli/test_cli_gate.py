"""`orch gate`: the line that it ends with, what is asked of whom, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main

OWN = "own-script"  # nothing is compiled of it


@pytest.fixture(autouse=True)
def no_machines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for gate in ("SAMPLES", "OWN_SCRIPT", "DATA_PARALLEL"):
        monkeypatch.delenv(f"ORCH_{gate}_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)


def test_a_gate_ends_with_both_halves(capsys):
    assert main(["gate", OWN]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == "static: pass   physical: not run (ORCH_OWN_SCRIPT_CONFIG is not set)"
    assert "gate own-script: 1 lane\n" in out
    assert err == "gate own-script: own-script.yaml\n"


def test_a_gate_as_json(capsys):
    assert main(["gate", OWN, "--json"]) == 0
    (gate,) = json.loads(capsys.readouterr().out)["gates"]
    assert (gate["gate"], gate["static"], gate["physical"]) == (OWN, "pass", None)
    assert gate["not_run"] == "ORCH_OWN_SCRIPT_CONFIG is not set"
    (lane,) = gate["lanes"]
    assert (lane["name"], lane["verdict"], lane["programs"]) == (OWN, "pass", [])


def test_a_lane_by_its_file_is_asked_for_the_variable_of_its_gate(capsys, pytestconfig):
    assert main(["gate", str(pytestconfig.rootpath / "lanes" / f"{OWN}.yaml")]) == 0
    assert capsys.readouterr().out.endswith("physical: not run (ORCH_OWN_SCRIPT_CONFIG is not set)\n")


def test_what_the_variable_names_is_where_the_lane_runs_and_nowhere_else(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("ORCH_OWN_SCRIPT_CONFIG", "rented.yaml")
    assert main(["gate", OWN]) == 1
    out, err = capsys.readouterr()
    assert "own-script: fail: rented.yaml: file-missing: " in out
    assert out.splitlines()[-1] == "static: pass   physical: fail"
    assert "ORCH_OWN_SCRIPT_CONFIG says where roles run: rented.yaml\n" in err
    assert list(tmp_path.iterdir()) == []


def test_nothing_runs_of_a_gate_whose_static_half_does_not_pass(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("ORCH_LINE_CONFIG", "local")
    (tmp_path / "orch.toml").write_text('bundles = "runs"\n')
    (tmp_path / "lanes").mkdir()
    (tmp_path / "lanes" / "line.yaml").write_text("orch: lane/v1\ngate: line\nname: line\n")
    assert main(["gate", "line"]) == 1
    out = capsys.readouterr().out
    assert "fail: line: validate\n" in out
    assert ": field-missing: " in out
    assert out.splitlines()[-1] == "static: fail   physical: not run (the static half is fail)"
    assert not (tmp_path / "runs").exists()


def test_the_physical_half_is_an_ordinary_run_on_what_is_named(
    capsys, monkeypatch, cache, tmp_path, pytestconfig
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("ORCH_SAMPLES_CONFIG", "local")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    lane = pytestconfig.rootpath / "lanes" / "samples.yaml"
    assert main(["gate", str(lane), "--bundles", "there", "--json"]) == 0
    (gate,) = json.loads(capsys.readouterr().out)["gates"]
    assert (gate["static"], gate["physical"], gate["not_run"]) == ("pass", "pass", "")
    (ran,) = gate["runs"]
    assert (ran["lane"], ran["run"]["grade"]) == ("samples", "host")
    assert Path(ran["run"]["bundle"]).parent == Path("there")


def test_an_unknown_gate_is_told_which_there_are_and_a_matrix_is_none(capsys, pytestconfig):
    assert main(["gate", "nix"]) == 2
    assert "there is no such gate (got nix, expected a lane's file or one of coordinates, " in (
        capsys.readouterr().err
    )
    assert main(["gate", str(pytestconfig.rootpath / "lanes" / "matrix.yaml")]) == 2
    assert "a matrix is under no gate" in capsys.readouterr().err
