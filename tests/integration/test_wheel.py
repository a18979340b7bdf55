"""The wheel, installed by itself and used far from any checkout: content and all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=pytestconfig.rootpath,
        check=True,
        capture_output=True,
    )
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    install = ["pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(folder), str(wheel)]
    subprocess.run([sys.executable, "-m", *install], check=True)
    return folder


def run(site: Path, cwd: Path, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A console script of the wheel; what it depends on comes from this environment."""
    return subprocess.run(
        [sys.executable, str(site / "bin" / command), *arguments],
        cwd=cwd,
        env={
            **os.environ,
            "PYTHONPATH": str(site),
            "XDG_CACHE_HOME": str(site.parent / "cache"),
            "TMPDIR": str(cwd),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_all_content_is_in_the_wheel_and_nothing_else_is(wheel: Path, pytestconfig: pytest.Config):
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "specs", "roles", "lanes"],
        cwd=pytestconfig.rootpath,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    names = zipfile.ZipFile(wheel).namelist()
    prefix = "orchestrator/content/"
    assert sorted(name.removeprefix(prefix) for name in names if name.startswith(prefix)) == sorted(tracked)
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"orchestrator", "evidence", "tracker"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_content_is_the_packaged_copy_and_has_the_digest_of_the_checkout(site: Path, tmp_path: Path):
    from orchestrator.spec.content import find

    done = run(site, tmp_path, "orch", "doctor", "--json")
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert findings["content"]["detail"] == f"{find().digest[:16]} at {site / 'orchestrator' / 'content'}"
    assert findings["compiler"]["state"] == "ok"


def test_shipped_files_are_found_from_anywhere(site: Path, tmp_path: Path):
    done = run(site, tmp_path, "orch", "build", "lanes/samples.yaml", "-o", "out", "--json")
    assert done.returncode == 0, done.stderr
    assert f"taking the one that came with orch, {site}" in done.stderr
    programs = json.loads(done.stdout)["programs"]
    assert [program["role"] for program in programs] == ["coordinator", "worker"]
    assert all((tmp_path / program["path"]).read_bytes()[:4] == b"\x7fELF" for program in programs)


def test_a_project_of_ones_own_works_at_once(site: Path, tmp_path: Path):
    assert run(site, tmp_path, "orch", "init", "mine").returncode == 0
    mine = tmp_path / "mine"
    for command, *arguments in (
        ("orch", "validate", "lanes/first.yaml", "programme.yaml"),
        ("orch", "plan", "specs/runs/first.yaml", "--programs", "--json"),
        ("tracker", "load", "programme.yaml"),
        ("orch", "run", "lanes/first.yaml", "--require", "host"),
        ("orch", "judge", "last"),
    ):
        done = run(site, mine, command, *arguments)
        assert done.returncode == 0, done.stderr


def test_a_lane_runs_and_its_bundle_is_judged_elsewhere(site: Path, tmp_path: Path):
    """The bundle is moved to a folder of its own: the judge has it and the wheel, and nothing else."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    ran = run(site, here, "orch", "run", "lanes/samples.yaml", "--json")
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)
    Path(result["bundle"]).rename(elsewhere / "bundle")
    judged = run(site, elsewhere, "orch", "judge", "bundle", "--json")
    assert judged.returncode == 0, judged.stderr
    again = json.loads(judged.stdout)
    assert (again["verdict"], again["grade"], again["agrees"]) == ("pass", "host", True)
    assert (
        run(site, elsewhere, "orch", "evidence", "verify", "bundle", "--seal", result["seal"]).returncode == 0
    )
