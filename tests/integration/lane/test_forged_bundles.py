"""A real bundle whose record was rewritten and sealed again over it: it verifies, and it must not count."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evidence import bundle as bundles
from evidence.stream import Stream
from evidence.verify import read_qualification, verify
from orchestrator.cli.tracker import differences
from orchestrator.cli.tracker import main as tracker


def seal_again(bundle: Path, **changed: Any) -> None:
    """Do what whoever can write the folder can do: another record, consistent with all the files."""
    told = {
        name: value for name, value in read_qualification(bundle).items() if name not in ("stream", "files")
    }
    path = bundle / "stream.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    for name in ("qualification.json", "SHA256SUMS"):
        (bundle / name).unlink()
    verdict = changed.get("verdict", told["verdict"])
    with Stream.reopen(path, told["run_id"]) as stream:
        bundles.seal(bundle, stream, verdict, {**told, **changed})
    assert verify(bundle) == ()


def failed(bundle: Path) -> None:
    """One wrong number where a role said how far it had come, under a record that says that all is well."""
    target = next(bundle.glob("steps/split/1/part-2/*/progress"))
    target.write_bytes(target.read_bytes().replace(b"4", b"5", 1))
    seal_again(bundle)


@pytest.fixture
def database(tmp_path: Path, pytestconfig: pytest.Config) -> Path:
    path = tmp_path / "t.sqlite3"
    programme = pytestconfig.rootpath / "specs/programmes/orch.yaml"
    assert tracker(["--db", str(path), "load", str(programme)]) == 0
    return path


def test_a_bundle_as_it_was_sealed_is_evidence(copied: Path, database: Path, capsys):
    assert differences(copied) == ()
    assert tracker(["--db", str(database), "ingest", str(copied)]) == 0
    assert "samples pass host, evidence for N1" in capsys.readouterr().out
    assert tracker(["--db", str(database), "doctor", "--judge"]) == 0


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (failed, "step split: recorded pass, recomputed fail"),
        (lambda bundle: seal_again(bundle, grade="emulated"), "grade: recorded emulated, recomputed host"),
        (lambda bundle: seal_again(bundle, lane="diabetes"), "lane: recorded diabetes, recomputed samples"),
        (lambda bundle: seal_again(bundle, plan="0" * 64), "plan: recorded 0000"),
        (lambda bundle: seal_again(bundle, omitted={"split": "no time"}), "omitted: recorded {'split'"),
    ],
    ids=["verdict", "grade", "lane", "plan", "omitted"],
)
def test_a_forged_record_proves_nothing(
    copied: Path, database: Path, capsys, forge: Callable[[Path], None], said: str
):
    forge(copied)
    assert tracker(["--db", str(database), "ingest", str(copied), "--json"]) == 1
    out, err = capsys.readouterr()
    told = json.loads(out[out.index("{") :])
    assert told["recorded"] == []
    assert any(said in problem for problem in told["refused"][0]["problems"]), err
    assert tracker(["--db", str(database), "show", "N1"]) == 0
    assert "no evidence" in capsys.readouterr().out


def test_what_the_judge_cannot_read_is_refused(copied: Path, database: Path, capsys):
    (copied / "specs/index.json").write_bytes(b"[]")
    seal_again(copied)
    assert tracker(["--db", str(database), "ingest", str(copied)]) == 1
    assert "cannot be judged" in capsys.readouterr().err
