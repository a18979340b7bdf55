"""The programs of a real bundle, built a second time: what no reading of an ELF file can show."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lane_workshop import Workshop
from test_forged_bundles import seal_again

from orchestrator.build.elf import verify
from orchestrator.build.image import read_image
from orchestrator.cli.main import main

TRAP = b"\xcc"


def test_a_bundle_is_built_again_to_the_same_bytes(
    passed: Callable[[str], tuple[Path, dict[str, Any]]], workshop: Workshop
):
    bundle, _ = passed("lanes/samples.yaml")
    done = workshop.orch("judge", str(bundle), "--rebuild")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "rebuilt: 5 programs, the same bytes"
    told = json.loads(workshop.orch("judge", str(bundle), "--rebuild", "--json").stdout)
    assert told["rebuilt"] == {"programs": 5, "differences": []}
    assert "rebuilt" not in json.loads(workshop.orch("judge", str(bundle), "--json").stdout)


def test_a_program_of_other_code_is_found(copied: Path, capsys: pytest.CaptureFixture[str]):
    """Whole, static, of this plan and this role, and not one instruction of it is the role's."""
    path = copied / "steps/build/1/programs/worker.elf"
    data = path.read_bytes()
    (code,) = read_image(data).sections_named(".text")
    path.write_bytes(data[: code.offset] + TRAP * code.size + data[code.offset + code.size :])
    got = hashlib.sha256(path.read_bytes()).hexdigest()
    assert verify(path.read_bytes(), target=None, plan=None, role="worker") == ()
    listing = path.parents[1] / "programs.json"
    listing.write_text(listing.read_text().replace(hashlib.sha256(data).hexdigest(), got))
    seal_again(copied)
    assert main(["judge", str(copied), "--rebuild", "--json"]) == 1
    said = f"programs/worker: not the program that is built (got {got}, expected "
    out, err = capsys.readouterr()
    (found,) = json.loads(out)["rebuilt"]["differences"]
    assert found.startswith(said)
    assert said in err


def test_other_content_is_not_built(copied: Path, tmp_path: Path, capsys, monkeypatch):
    begun = json.loads((copied / "stream.jsonl").read_bytes().splitlines()[0])
    for name in ("specs", "roles", "lanes"):
        (tmp_path / "content" / name).mkdir(parents=True)
    (tmp_path / "orch.toml").write_text('content = "content"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["judge", str(copied), "--rebuild"]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert "was made from other content, so nothing is built again" in err
    assert f"expected {begun['data']['content_sha256']})" in err
