"""Bundles that a stranger made: sound by their own account, and yet nothing that a lane wrote."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from evidence.bundle import seal
from evidence.stream import Stream
from orchestrator.cli.main import main
from orchestrator.remote.local import Local
from orchestrator.remote.root import own_root

RUN = "01a227a3-3705-7543-8c8c-7c1897723e26"
CLEAR = "\x1b[2J"
LANE: dict[str, Any] = {
    "lane": f"{CLEAR}first", "run_id": RUN, "verdict": "pass", "grade": "host", "started": "", "ended": "",
    "system": "", "plan": "", "content_sha256": "", "steps": [],
}  # fmt: skip


def bundle(folder: Path, record: dict[str, Any]) -> Path:
    folder.mkdir()
    (folder / "plan.json").write_bytes(b"{}")
    with Stream.create(folder / "stream.jsonl", RUN) as stream:
        stream.append("orch.lane.started", "x", {"lane": "x"})
        seal(folder, stream, "pass", record)
    return folder


STRANGE = [
    {"run_id": RUN, "verdict": "pass"},
    {**LANE, "steps": "nonsense"},
    {**LANE, "steps": [{"name": "build"}]},
    {**LANE, "steps": {"build": 1}},
]


@pytest.mark.parametrize("record", STRANGE)
def test_neither_show_nor_judge_takes_it_for_a_bug(record, tmp_path, capsys):
    made = bundle(tmp_path / "made", record)
    assert main(["evidence", "verify", str(made)]) == 0
    capsys.readouterr()
    assert main(["evidence", "show", str(made)]) == 1
    assert main(["judge", str(made)]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert "is not that of a lane run" in err
    assert "cannot be judged" in err
    assert main(["judge", str(made), "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "undecided"


@pytest.mark.parametrize("files", [(), ("stream.jsonl",)])
@pytest.mark.parametrize("verb", [["evidence", "verify"], ["evidence", "show"], ["judge"]])
def test_no_bundle_and_an_unfinished_one_are_said_in_a_sentence(verb, files, tmp_path, capsys):
    for name in ("a", "b", "c", *files):
        (tmp_path / name).write_text("")
    assert main([*verb, str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    says = "is not sealed: its run still goes on" if files else "is not a bundle: there is no stream.jsonl"
    assert f"orch: {tmp_path} {says}" in err


def test_what_it_says_moves_no_cursor(tmp_path, capsys):
    steps = [{"name": CLEAR, "verdict": CLEAR, "attempts": 1, "checks": [], "reason": CLEAR}]
    made = bundle(tmp_path / "made", {**LANE, "steps": steps})
    assert main(["evidence", "show", str(made)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.count("\\x1b[2J") == 4


OTHER = "01a227a3-3705-7543-8c8c-000000000000"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root of ours, one whose name is not its run's, and others' folders; each holds `coordinator/`."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = own_root()
    for folder in (own / "x", own / RUN, own / "project", tmp_path / "elsewhere" / RUN, tmp_path / "project"):
        Local().make_root(PurePosixPath(folder), "me")
        (folder / "coordinator").mkdir()
    (own / "x").rename(own / OTHER)
    (tmp_path / "link").symlink_to(own)
    return tmp_path


@pytest.mark.parametrize(
    ("root", "source", "state"),
    [
        ("{own}", RUN, "removed"),
        ("{own}/../link", RUN, "not ours"),
        ("{own}", OTHER, "not ours"),
        ("{own}", "project", "not ours"),
        ("{own}", "../project", "not ours"),
        ("{own}/" + RUN, "coordinator", "not ours"),
        ("{own}/../elsewhere", RUN, "not ours"),
        ("{own}/../elsewhere/" + RUN, ".", "not ours"),
    ],
)
def test_clean_removes_no_folder_because_a_bundle_names_it(root, source, state, folders, capsys):
    bundle = folders / "runs" / "stranger"
    bundle.mkdir(parents=True)
    with Stream.create(bundle / "stream.jsonl", source) as stream:
        stream.append("orch.lane.started", "x", {"lane": "x", "remote_root": root.format(own=own_root())})
    before = set(folders.rglob("coordinator"))
    assert main(["clean", "--json", "--open", "--bundles", str(bundle.parent)]) == 0
    (left,) = json.loads(capsys.readouterr().out)["left"]
    assert left["state"] == state
    assert len(before - set(folders.rglob("coordinator"))) == (state == "removed")
