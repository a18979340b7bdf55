"""A new bundle holds all that was read, and needs nothing else to be read again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from evidence.canonical import loads
from orchestrator.errors import Label, RefusedError
from orchestrator.plan.derive import plan_of
from orchestrator.qualify.bundles import create
from orchestrator.spec.read import read_lane

FIRST: dict[str, object] = {
    "content_sha256": "0" * 64,
    "owner": "me",
    "pods": "local",
    "remote_root": "/nowhere",
}


@pytest.fixture
def project(tmp_path: Path, pytestconfig: pytest.Config) -> Path:
    """A lane with its files, all of them its own."""
    folder = tmp_path / "project"
    lane = read_lane(pytestconfig.rootpath / "lanes" / "samples.yaml")
    for path in (lane.path, lane.run.path, lane.run.system.path, lane.run.system.data):
        target = folder / path.relative_to(pytestconfig.rootpath)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return folder


def bundle_of(project: Path) -> Path:
    lane = read_lane(project / "lanes" / "samples.yaml")
    opened = create(project.parent / "runs", lane, plan_of(lane.run), FIRST)
    opened.close()
    return opened.folder


def names(project: Path) -> tuple[Path, Path, Path]:
    """The run's, the system's and the data's file."""
    run = read_lane(project / "lanes" / "samples.yaml").run
    return run.path, run.system.path, run.system.data


def test_a_bundle_is_read_with_all_else_gone(project: Path) -> None:
    digest = plan_of(read_lane(project / "lanes" / "samples.yaml").run).digest
    bundle = bundle_of(project).rename(project.parent / "elsewhere")
    shutil.rmtree(project)
    name = loads((bundle / "specs" / "index.json").read_bytes())["lane"]
    assert name == "lanes/samples.yaml"
    assert plan_of(read_lane(bundle / "specs" / name, within=bundle / "specs").run).digest == digest


def test_a_profile_that_came_with_orch_is_kept_where_one_of_the_run_s_own_would_be(project: Path) -> None:
    run = project / "specs" / "runs" / "samples.yaml"
    text = run.read_text()
    assert text.count("{target: x86_64-linux}") == 2
    run.write_text(text.replace("{target: x86_64-linux}", "{target: x86_64-linux, device: nvidia-l4}"))
    bundle = bundle_of(project)
    assert (bundle / "specs" / "specs" / "devices" / "nvidia-l4.yaml").is_file()
    copy = read_lane(bundle / "specs" / "lanes" / "samples.yaml", within=bundle / "specs")
    assert {device.product for device, _ in copy.run.devices.runs} == {"NVIDIA L4"}


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_link_is_copied_as_the_file_that_it_leads_to(project: Path, which: int) -> None:
    path = names(project)[which]
    aside = project.parent / "aside"
    path.rename(aside)
    path.symlink_to(aside)
    bundle = bundle_of(project)
    assert not any(found.is_symlink() for found in bundle.rglob("*"))
    shutil.rmtree(project)
    aside.unlink()
    read_lane(bundle / "specs" / "lanes" / "samples.yaml", within=bundle / "specs")


@pytest.mark.parametrize(("which", "key"), [(0, "run"), (1, "system"), (2, "samples.file")])
def test_what_is_named_absolutely_is_refused_where_it_is_named(project: Path, which: int, key: str) -> None:
    path = names(project)[which]
    referring = (project / "lanes" / "samples.yaml", *names(project))[which]
    text = referring.read_text(encoding="utf-8")
    relative = os.path.relpath(path, referring.parent)
    assert relative in text
    referring.write_text(text.replace(relative, str(path)), encoding="utf-8")
    with pytest.raises(RefusedError) as refused:
        bundle_of(project)
    (refusal,) = refused.value.refusals
    assert (refusal.label, refusal.key) == (Label.REFERENCE_OUTSIDE, key)
    assert refusal.where.path == str(referring)
    assert refusal.where.line > 1
    assert refusal.hint
    assert list((project.parent / "runs").iterdir()) == []


def test_files_that_change_while_they_are_read_make_no_bundle(project: Path) -> None:
    lane = read_lane(project / "lanes" / "samples.yaml")
    planned = plan_of(lane.run)
    system = lane.run.system.path
    system.write_text(system.read_text(encoding="utf-8").replace("rate: 0.", "rate: 0.0"), encoding="utf-8")
    with pytest.raises(RefusedError, match="changed while they were read"):
        create(project.parent / "runs", lane, planned, FIRST)
    assert list((project.parent / "runs").iterdir()) == []


def test_a_name_that_no_bundle_may_hold_is_refused_before_anything_runs(project: Path) -> None:
    path = names(project)[2]
    system = names(project)[1]
    path.rename(path.with_name("a\\b.csv"))
    text = system.read_text(encoding="utf-8").replace(path.name, "a\\b.csv")
    system.write_text(text, encoding="utf-8")
    with pytest.raises(RefusedError, match="backslash"):
        bundle_of(project)


def _lane(text: str) -> Callable[[Path, Path], None]:
    def forge(specs: Path, outside: Path) -> None:
        (specs / "index.json").write_text(json.dumps({"lane": text.format(outside=outside)}))

    return forge


def _said(text: str) -> Callable[[Path, Path], None]:
    def forge(specs: Path, outside: Path) -> None:
        path = specs / "lanes" / "samples.yaml"
        said = f"run: {text.format(outside=outside)}"
        lines = [said if line.startswith("run:") else line for line in path.read_text().splitlines()]
        path.write_text("\n".join(lines))

    return forge


def _link(name: str) -> Callable[[Path, Path], None]:
    def forge(specs: Path, outside: Path) -> None:
        path = specs / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        path.symlink_to(outside / name)

    return forge


FORGED = {
    "the index names an absolute path": _lane("{outside}/lanes/samples.yaml"),
    "the index leads upwards": _lane("../../outside/lanes/samples.yaml"),
    "a file names an absolute path": _said("{outside}/specs/runs/samples.yaml"),
    "a file leads upwards": _said("../../../outside/specs/runs/samples.yaml"),
    "a file is a link": _link("lanes/samples.yaml"),
    "a folder is a link": _link("specs"),
    "the folder of the lane is a link": _link("lanes"),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_nothing_outside_of_a_forged_bundle_is_read(
    forge: Callable[[Path, Path], None], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = bundle_of(project)
    outside = bundle.parent.parent / "outside"
    shutil.copytree(bundle / "specs", outside)
    forge(bundle / "specs", outside)
    opened: list[str] = []
    real = os.open

    def noted(path: str, *rest: int, **named: int | None) -> int:
        opened.append(os.path.realpath(path))
        return real(path, *rest, **named)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(os, "open", noted)
    name = loads((bundle / "specs" / "index.json").read_bytes())["lane"]
    with pytest.raises(RefusedError) as refused:
        read_lane(bundle / "specs" / name, within=bundle / "specs")
    assert {refusal.label for refusal in refused.value.refusals} == {Label.REFERENCE_OUTSIDE}
    assert not any(path.startswith(str(outside)) for path in opened)
