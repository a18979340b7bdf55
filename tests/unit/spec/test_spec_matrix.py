"""A matrix as declared: its cells, their runs and lanes as files, and what is refused at which place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import RefusedError
from orchestrator.plan.check import validate as plan_refusals
from orchestrator.spec.cells import lane_text, row_counts, run_of, run_text
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.matrix import MatrixSpec
from orchestrator.spec.read import read_any_lane, read_lane, validate
from orchestrator.spec.run import RunSpec

ROOT = Path(__file__).parents[3]
TEXT = """\
orch: lane/v1
name: small
matrix:
  systems: {samples: SPECS/systems/samples.yaml}
  shapes:
    pair: {topology: pair, shares: {coordinator: 1, worker: 2}}
    star: {topology: star, shares: {a: 1, b: 0, c: 3}, targets: [x86_64-linux, aarch64-linux]}
  ownership: {replicated: {}, all: {parameters: partitioned}}
updates: 5
split: 3
swap: {aarch64-linux: x86_64-linux}
deadlines: {connect: 10s, round: 5s, run: 2m}
""".replace("SPECS", str(ROOT / "specs"))


def written(folder: Path, text: str = TEXT) -> Path:
    path = folder / "matrix.yaml"
    path.write_text(text)
    return path


@pytest.fixture
def spec(tmp_path: Path) -> MatrixSpec:
    found = read_any_lane(written(tmp_path))
    assert isinstance(found, MatrixSpec)
    return found


def test_cells_of_one_system_and_shape_stand_together_the_replicated_one_first(spec: MatrixSpec) -> None:
    assert [cell.name for cell in spec.cells] == [
        "samples/pair/replicated",
        "samples/pair/all",
        "samples/star/replicated",
        "samples/star/all",
    ]
    assert [spec.reference(cell).name for cell in spec.cells[2:]] == ["samples/star/replicated"] * 2


def test_a_cells_files_are_a_lane_that_is_read_like_any_other(spec: MatrixSpec, tmp_path: Path) -> None:
    cell = spec.cells[3]
    (tmp_path / "run.yaml").write_text(run_text(spec, cell, str(spec.systems["samples"].path)))
    (tmp_path / "lane.yaml").write_text(lane_text(spec, cell, "run.yaml"))
    lane = read_lane(tmp_path / "lane.yaml")
    assert isinstance(lane, LaneSpec)
    assert (lane.name, lane.updates, lane.split) == ("samples.star.all", 5, 3)
    assert set(lane.omit) == {"refusals", "evaluate"}
    run = lane.run
    assert isinstance(run, RunSpec)
    assert (run.topology, tuple(run.roles), tuple(run.samples)) == ("star", ("a", "b", "c"), (0, 0, 3))
    assert [pairing.target for pairing in run.pairings] == ["x86_64-linux", "aarch64-linux", "x86_64-linux"]
    assert run.ownership.parameters == "partitioned"


def test_a_cell_swaps_what_its_roles_are_made_for(spec: MatrixSpec) -> None:
    assert "swap: {}\n" in lane_text(spec, spec.cells[0], "run.yaml")
    assert 'swap: {"aarch64-linux": "x86_64-linux"}\n' in lane_text(spec, spec.cells[2], "run.yaml")


CARDS = TEXT.replace("worker: 2}", "worker: 2}, devices: [nvidia-l4, host]").replace(
    "{aarch64-linux: x86_64-linux}", "{aarch64-linux: x86_64-linux, nvidia-l4: nvidia-h200}"
)


def test_devices_are_given_to_roles_in_turn(tmp_path: Path) -> None:
    spec = read_any_lane(written(tmp_path, CARDS))
    assert isinstance(spec, MatrixSpec)
    assert [spec.shapes[name].has_devices for name in ("pair", "star")] == [True, False]
    text = run_text(spec, spec.cells[0], "system.yaml")
    first = '{"target": "x86_64-linux", "device": "nvidia-l4"}'
    assert f'pairings: {{"coordinator": {first}, "worker": {{"target": "x86_64-linux"}}}}\n' in text
    run, refusals = run_of(spec, spec.cells[0])
    assert refusals == ()
    assert run is not None
    assert [device and device.name for device in run.devices] == ["nvidia-l4", None]
    assert 'swap: {"nvidia-l4": "nvidia-h200"}\n' in lane_text(spec, spec.cells[0], "run.yaml")
    assert 'swap: {"aarch64-linux": "x86_64-linux"}\n' in lane_text(spec, spec.cells[2], "run.yaml")
    assert [device.name for device in spec.profiles_of(spec.cells[0])] == ["nvidia-l4", "nvidia-h200"]
    assert spec.profiles_of(spec.cells[2]) == ()


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ("[nvidia-l4, host]", "[host, nvidia-l5]", "6:81: name-unknown"),
        ("[nvidia-l4, host]", "[]", "6:74: value-range"),
        ("nvidia-l4: nvidia-h200", "nvidia-l4: nvidia-h201", "11:48: name-unknown"),
        ("nvidia-l4: nvidia-h200", "nvidia-l5: nvidia-h200", "11:37: value-choice"),
        ("[nvidia-l4, host]", "[nvidia-l4, amd-instinct-mi300x]", "6:5: target-unsupported"),
        ("nvidia-l4: nvidia-h200", "nvidia-l4: amd-instinct-mi300x", "11:48: target-unsupported"),
    ],
)
def test_what_is_wrong_of_devices_is_said_where_it_stands(
    tmp_path: Path, old: str, new: str, refusal: str
) -> None:
    assert old in CARDS
    (found, *_) = plan_refusals((written(tmp_path, CARDS.replace(old, new)),))
    assert f"{found.where.line}:{found.where.column}: {found.label}" == refusal


def test_whose_systems_are_not_there_is_not_told_that_profiles_are_not_either(tmp_path: Path) -> None:
    text = CARDS.replace("systems/samples.yaml", "systems/nothing.yaml")
    assert [refusal.label for refusal in validate((written(tmp_path, text),))] == ["file-missing"]


def of_kind(folder: Path, system: str) -> MatrixSpec:
    """The matrix over another of the shipped systems."""
    found = read_any_lane(written(folder, TEXT.replace("samples.yaml", f"{system}.yaml")))
    assert isinstance(found, MatrixSpec)
    return found


@pytest.mark.parametrize("system", ["coordinates", "correlations"])
def test_owners_of_coordinates_have_no_rows_and_say_what_is_replicated(tmp_path: Path, system: str) -> None:
    spec = of_kind(tmp_path, system)
    text = run_text(spec, spec.cells[3], str(spec.systems["samples"].path))
    assert "samples:" not in text
    expected = '{"parameters": "partitioned", "optimizer_state": "replicated", "gradients": "replicated"}'
    assert f"ownership: {expected}\n" in text


def test_what_a_cell_must_be_the_equal_of_goes_by_its_kind(tmp_path: Path) -> None:
    """Rows dealt out: the replicated one. Else the first shape, or nothing where the order goes by owners."""
    found = {
        system: [spec.reference(cell).name for cell in spec.cells[1::2]]
        for system in ("samples", "coordinates", "correlations")
        for spec in [of_kind(tmp_path, system)]
    }
    assert found == {
        "samples": ["samples/pair/replicated", "samples/star/replicated"],
        "coordinates": ["samples/pair/all", "samples/star/all"],
        "correlations": ["samples/pair/all", "samples/pair/all"],
    }


@given(st.integers(0, 5000), st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any))
def test_rows_are_dealt_out_whole_and_nobody_without_a_share_has_any(rows: int, shares: list[int]) -> None:
    counts = row_counts(rows, tuple(shares))
    assert sum(counts) == rows
    assert all(
        abs(count - rows * share / sum(shares)) < 1 for count, share in zip(counts, shares, strict=True)
    )
    assert not any(count for count, share in zip(counts, shares, strict=True) if not share)


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ("replicated: {}, all", "all", "8:20: value-choice"),
        ("{a: 1, b: 0, c: 3}", "{a: 0, b: 0}", "7:36: value-range"),
        ("swap: {aarch64-linux: x86_64-linux}", "swap: {}\nomit: {evaluate: no}", "12:1: key-unknown"),
        (", targets: [x86_64-linux, aarch64-linux]", "", "11:8: value-choice"),
        ("{samples: ", "{Samples: ", "4:13: value-format"),
        ("split: 3", "split: 5", "10:8: value-range"),
        ("systems/samples.yaml", "systems/nothing.yaml", "4:22: file-missing"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(tmp_path: Path, old: str, new: str, refusal: str) -> None:
    assert old in TEXT
    (found, *_) = validate((written(tmp_path, TEXT.replace(old, new)),))
    assert f"{found.where.line}:{found.where.column}: {found.label}" == refusal


def test_a_shape_that_no_run_can_have_is_refused_at_the_shape(tmp_path: Path) -> None:
    spec = read_any_lane(written(tmp_path, TEXT.replace("{coordinator: 1, worker: 2}", "{coordinator: 1}")))
    assert isinstance(spec, MatrixSpec)
    run, (refusal,) = run_of(spec, spec.cells[0])
    assert run is None
    assert (refusal.label, refusal.where.line) == ("topology", 6)
    assert refusal.message.startswith("samples/pair/replicated: ")


def test_where_one_run_is_needed_a_matrix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="got `matrix`, expected `run`"):
        read_lane(written(tmp_path))
