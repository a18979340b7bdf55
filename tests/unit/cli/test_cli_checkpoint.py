"""`orch checkpoint` on folders that hold sets: shown, verified, compared, taken out."""

from __future__ import annotations

import json
import struct
import zipfile
from array import array
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from declared_sets import SYSTEM, WORDS

from evidence.canonical import dumps
from orchestrator.cli.main import main
from orchestrator.oracle.manifest import Capture
from orchestrator.oracle.publication import write_set

CAPTURE = Capture(epoch=2, plan="a" * 64, run="b" * 32)
TIME_MS = 1764425119000


def put(
    folder: Path, words: Sequence[float] = WORDS, version: int = 7, owners: int = 2, **capture: Any
) -> Path:
    """A set in a folder, as its publication leaves it there."""
    folder.mkdir(parents=True, exist_ok=True)
    own = replace(CAPTURE, **capture)
    for name, data in write_set(SYSTEM, version, array("d", words), own).items():
        (folder / name).write_bytes(data)
    manifest = folder / f"{version}.manifest.json"
    content = json.loads(manifest.read_bytes())
    content["capture"].update(owners={"count": owners}, time_ms=TIME_MS)
    manifest.write_bytes(dumps(content))
    return folder


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    """Exit code and the object on stdout."""
    code = main(["checkpoint", *map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_show_says_what_a_set_says(tmp_path, capsys):
    code, found = said(capsys, "show", put(tmp_path / "set"))
    assert code == 0
    assert (found["version"], found["epoch"], found["owners"], found["faults"]) == (7, 2, 2, [])
    assert (found["system"], found["plan"], found["run"]) == (SYSTEM.digest, "a" * 64, "b" * 32)
    assert found["fields"] == [
        {"name": field.name, "dtype": "F64", "shape": [field.size]} for field in SYSTEM.state_fields
    ]
    (shard,) = found["shards"]
    assert (shard["file"], shard["owner"]) == ("7.all.safetensors", "all")
    assert shard["regions"] == ["w[0:3]", "b[0:1]", "v[0:4]"]
    assert main(["checkpoint", "show", str(tmp_path / "set")]) == 0
    shown = capsys.readouterr().out
    for text in (found["state"], "2025-11-29T14:05:19", "7.all.safetensors", "v[0:4]"):
        assert text in shown


def test_show_lists_the_versions_of_a_folder(tmp_path, capsys):
    put(put(tmp_path / "sets"), version=9)
    code, found = said(capsys, "show", tmp_path / "sets")
    assert code == 0
    assert [each["version"] for each in found["checkpoints"]] == [7, 9]
    assert main(["checkpoint", "show", f"{tmp_path / 'sets'}:checkpoint@9"]) == 0
    assert "9.all.safetensors" in capsys.readouterr().out


def test_a_set_as_it_is_restored_is_found(tmp_path, capsys):
    put(tmp_path / "work" / "restore")
    (tmp_path / "work" / "restore" / "7.manifest.json").rename(
        tmp_path / "work" / "restore" / "manifest.json"
    )
    for place in (tmp_path / "work", tmp_path / "work" / "restore"):
        assert said(capsys, "verify", place)[0] == 0


def test_shards_beside_another_role_are_found(tmp_path, capsys):
    put(tmp_path / "launch" / "a" / "checkpoint")
    (tmp_path / "launch" / "b" / "checkpoint").mkdir(parents=True)
    shard = tmp_path / "launch" / "a" / "checkpoint" / "7.all.safetensors"
    shard.rename(tmp_path / "launch" / "b" / "checkpoint" / shard.name)
    assert said(capsys, "verify", tmp_path / "launch")[0] == 0


def test_verify_names_every_fault_of_every_set(tmp_path, capsys):
    folder = put(put(tmp_path / "sets"), version=9)
    shard = folder / "7.all.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1] + b"\1")
    (folder / "9.manifest.json").write_bytes(b"{}")
    code, found = said(capsys, "verify", folder)
    assert (code, found["sound"]) == (1, False)
    assert [each["sound"] for each in found["checkpoints"]] == [False, False]
    assert [(each["label"], each["path"]) for each in found["faults"]] == [
        ("checkpoint-chunk", str(shard)),
        ("checkpoint-manifest", str(folder / "9.manifest.json")),
    ]
    assert main(["checkpoint", "verify", str(folder)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{shard}: checkpoint-chunk: " in err


def test_a_shard_that_is_no_plain_file_is_missing(tmp_path, capsys):
    shard = put(tmp_path / "set") / "7.all.safetensors"
    shard.rename(tmp_path / "elsewhere")
    shard.symlink_to(tmp_path / "elsewhere")
    code, found = said(capsys, "verify", tmp_path / "set")
    assert (code, [each["label"] for each in found["faults"]]) == (1, ["checkpoint-coverage"])


def test_equal_words_are_equal_whoever_captured_them(tmp_path, capsys):
    put(tmp_path / "one")
    put(tmp_path / "other", epoch=5, owners=1, run="c" * 32)
    code, found = said(capsys, "diff", tmp_path / "one", tmp_path / "other")
    assert (code, found["equal"], found["fields"]) == (0, True, [])
    assert found["apart"] == {"epoch": [2, 5], "owners": [2, 1], "run": ["b" * 32, "c" * 32]}
    assert main(["checkpoint", "diff", str(tmp_path / "one"), str(tmp_path / "other")]) == 0
    assert capsys.readouterr().out.startswith("equal\n")


def test_the_first_word_that_differs_is_named_by_its_bits(tmp_path, capsys):
    put(tmp_path / "one", (1.0, 2.0, 3.0, 0.0, 1.0, 1.0, 1.0, 1.0))
    put(tmp_path / "other", (1.0, 2.0, 3.0, -0.0, 1.0, 1.5, 1.0, 3.0))
    code, found = said(capsys, "diff", tmp_path / "one", tmp_path / "other")
    assert (code, found["equal"]) == (1, False)
    assert found["fields"] == [
        {
            "field": "b",
            "differ": 1,
            "words": 1,
            "first": {"word": "b[0]", "left": "0.0 (0000000000000000)", "right": "-0.0 (8000000000000000)"},
            "largest": 0.0,
        },
        {
            "field": "v",
            "differ": 2,
            "words": 4,
            "first": {"word": "v[1]", "left": "1.0 (3ff0000000000000)", "right": "1.5 (3ff8000000000000)"},
            "largest": 2.0,
        },
    ]
    assert main(["checkpoint", "diff", str(tmp_path / "one"), str(tmp_path / "other")]) == 1
    shown = capsys.readouterr().out
    assert "the first word that differs: b[0] = 0.0 (0000000000000000), and -0.0" in shown
    assert "v: 2 of 4 words differ, at most 2.0 apart" in shown


def test_words_farther_apart_than_any_number_is_large(tmp_path, capsys):
    put(tmp_path / "one", (1.7e308, *WORDS[1:]))
    put(tmp_path / "other", (-1.7e308, *WORDS[1:]))
    code, found = said(capsys, "diff", tmp_path / "one", tmp_path / "other")
    assert (code, found["fields"][0]["largest"]) == (1, None)
    assert main(["checkpoint", "diff", str(tmp_path / "one"), str(tmp_path / "other")]) == 1
    assert "at most inf apart" in capsys.readouterr().out


def test_export_is_read_by_both_libraries(tmp_path, capsys):
    folder = put(tmp_path / "set")
    fields = {"w": WORDS[:3], "b": WORDS[3:4], "v": WORDS[4:]}
    _, about = said(capsys, "show", folder)
    tensors, arrays = tmp_path / "deep" / "one.safetensors", tmp_path / "one.npz"
    code, written = said(capsys, "export", folder, tensors)
    assert (code, written["size"]) == (0, tensors.stat().st_size)
    with safetensors.safe_open(tensors, framework="numpy") as held:
        metadata = held.metadata()
    assert {name: metadata[name] for name in ("state", "system", "version")} == {
        name: str(about[name]) for name in ("state", "system", "version")
    }
    assert said(capsys, "export", folder, arrays)[0] == 0
    with np.load(arrays, allow_pickle=False) as loaded:
        sides = (safetensors.numpy.load_file(tensors), dict(loaded))
    for side in sides:
        assert side.keys() == fields.keys()
        for name, words in fields.items():
            assert (side[name].dtype, side[name].shape) == (np.dtype("<f8"), (len(words),))
            assert side[name].tobytes() == struct.pack(f"<{len(words)}d", *words)
    with zipfile.ZipFile(arrays) as archive:
        assert archive.testzip() is None
        assert f"state={about['state']}".encode() in archive.comment


def test_equal_states_make_equal_files(tmp_path, capsys):
    for name in ("one", "two"):
        folder = put(tmp_path / name)
        for suffix in ("npz", "safetensors"):
            assert said(capsys, "export", folder, tmp_path / f"{name}.{suffix}")[0] == 0
    for suffix in ("npz", "safetensors"):
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()


def test_export_writes_nothing_of_a_broken_set_and_over_no_file(tmp_path, capsys):
    folder = put(tmp_path / "set")
    target = tmp_path / "there.npz"
    target.write_bytes(b"mine")
    assert main(["checkpoint", "export", str(folder), str(target)]) == 2
    assert target.read_bytes() == b"mine"
    assert main(["checkpoint", "export", str(folder), str(tmp_path / "state.pickle")]) == 2
    (folder / "7.all.safetensors").unlink()
    code, found = said(capsys, "export", folder, tmp_path / "new.npz")
    assert (code, [each["label"] for each in found["refusals"]]) == (1, ["checkpoint-coverage"])
    assert not (tmp_path / "new.npz").exists()
    (tmp_path / "file").write_bytes(b"")
    put(folder)
    code, found = said(capsys, "export", folder, tmp_path / "file" / "new.npz")
    assert (code, [each["label"] for each in found["refusals"]]) == (1, ["write-failed"])


@pytest.mark.parametrize("action", ["show", "verify", "diff", "export"])
def test_a_place_without_a_checkpoint(action, tmp_path, capsys):
    more = {"diff": [tmp_path], "export": [tmp_path / "x.npz"]}.get(action, [])
    code, found = said(capsys, action, tmp_path, *more)
    assert (code, [each["label"] for each in found["refusals"]]) == (1, ["checkpoint-missing"])
    put(tmp_path / "sets")
    place = f"{tmp_path / 'sets'}:checkpoint@8"
    code, found = said(capsys, action, place, *more)
    assert (code, [each["label"] for each in found["refusals"]]) == (1, ["checkpoint-missing"])
    assert "expected one of: 7" in found["refusals"][0]["message"]


@pytest.mark.parametrize(
    "place", ["nowhere", "sets:checkpoint@", "sets:checkpoint@-1", ":checkpoint@1", "sets"]
)
def test_a_place_that_nothing_can_be_meant_by(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(put(tmp_path / "sets"), version=9)
    assert main(["checkpoint", "export", place, "x.npz"]) == 2
    assert not Path("x.npz").exists()


def test_a_set_that_does_not_tell_its_order_is_undecided(tmp_path, capsys):
    """One field a shard: nothing says which words come first."""
    folder = tmp_path / "set"
    folder.mkdir()
    put(folder)
    manifest = json.loads((folder / "7.manifest.json").read_bytes())
    (whole,) = manifest["shards"]
    header, at = (folder / "7.all.safetensors").read_bytes(), 0
    (length,) = struct.unpack("<Q", header[:8])
    metadata = json.loads(header[8 : 8 + length])["__metadata__"]
    manifest["shards"] = []
    for region, field in zip(whole["regions"], SYSTEM.state_fields, strict=True):
        name = f"{field.name}[0:{field.size}]"
        tensor = {"data_offsets": [0, 8 * field.size], "dtype": "F64", "shape": [field.size]}
        text = dumps({"__metadata__": metadata, name: tensor})
        text += b" " * (-len(text) % 8)
        data = struct.pack("<Q", len(text)) + text
        data += struct.pack(f"<{field.size}d", *WORDS[at : at + field.size])
        at += field.size
        file = f"7.{field.name}.safetensors"
        (folder / file).write_bytes(data)
        entry = {"file": file, "regions": [region], "sha256": sha256(data).hexdigest(), "size": len(data)}
        manifest["shards"].append(entry)
    (folder / "7.manifest.json").write_bytes(dumps(manifest))
    assert main(["checkpoint", "verify", str(folder)]) == 4
    assert "does not tell the order" in capsys.readouterr().err
    assert main(["checkpoint", "export", str(folder), str(tmp_path / "x.npz")]) == 4
