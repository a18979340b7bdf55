"""Checkpoints that are not whole, and what a role says of each; nothing is written."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from contextlib import contextmanager
from pathlib import Path

import pytest
import role_plans
from role_bench import Setup, benches
from role_spoil import altered, folder, link, longer, pipe, truncated

from orchestrator.oracle.checkpoint import CheckpointError, read_set


@pytest.fixture(scope="module")
def whole(tmp_path_factory, program_cache):
    place = tmp_path_factory.mktemp("published")
    with contextmanager(benches)(place, program_cache) as bench:
        first = bench(role_plans.star())
        first.run(Setup(target=2))
        return first.published(2, place / "checkpoint")


@pytest.fixture
def checkpoint(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "checkpoint"))


def rewrite(path, change):
    """The manifest with a change to its values, in canonical form again."""
    manifest = json.loads((path / "manifest.json").read_bytes())
    change(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest, sort_keys=True, separators=(",", ":")))


def text(before, after):
    def change(path):
        data = (path / "manifest.json").read_text()
        assert before in data
        (path / "manifest.json").write_text(data.replace(before, after, 1))

    return change


def value(change):
    return lambda path: rewrite(path, change)


def rehashed(name, change):
    """A shard with other bytes, which the manifest knows of."""

    def spoil(path):
        file = path / name
        file.write_bytes(change(file.read_bytes()))
        data = file.read_bytes()

        def note(manifest):
            for shard in manifest["shards"]:
                if shard["file"] == name:
                    shard.update(size=len(data), sha256=hashlib.sha256(data).hexdigest())

        rewrite(path, note)

    return spoil


def restated(word):
    """A first word of W like this, with every digest made to fit."""

    def spoil(path):
        rehashed("2.root.safetensors", lambda data: data[:-16] + struct.pack("<d", word) + data[-8:])(path)
        words = b"".join(
            (path / f"2.{owner}.safetensors").read_bytes()[at : at + 8 or None]
            for at in (-16, -8)
            for owner in ("root", "idle", "worker")
        )
        rewrite(path, lambda manifest: manifest.update(state=hashlib.sha256(words).hexdigest()))

    return spoil


def region(index, place, **change):
    return value(lambda manifest: manifest["shards"][index]["regions"][place].update(change))


def without_shard(manifest):
    del manifest["shards"][1]


def doubled_shard(manifest):
    manifest["shards"].append(manifest["shards"][1])


def more_region(place, **region):
    """A region that the rest of the set has no need of, in a shard that stays as it is."""
    return value(lambda manifest: manifest["shards"][1]["regions"].insert(place, region))


def more_shard(manifest):
    """Words beyond the end of W, in a shard of their own."""
    manifest["shards"].append(
        manifest["shards"][1] | {"regions": [{"count": 1, "field": "W", "first": 3, "stride": 1}]}
    )


def of_another_system(manifest):
    manifest["system"] = "ab" * 32
    manifest["shards"][1]["regions"].append({"count": 1, "field": "z", "first": 0, "stride": 1})


def without_fields(manifest):
    del manifest["capture"]


SHARD = "2.idle.safetensors"
BROKEN = {
    "missing": ("checkpoint-missing", lambda path: (path / "manifest.json").unlink()),
    "link": ("checkpoint-missing", lambda path: link(path / "manifest.json")),
    "pipe": ("checkpoint-missing", lambda path: pipe(path / "manifest.json")),
    "folder": ("checkpoint-missing", lambda path: folder(path / "manifest.json")),
    "empty": ("checkpoint-manifest", lambda path: (path / "manifest.json").write_bytes(b"")),
    "torn": ("checkpoint-manifest", lambda path: truncated(path / "manifest.json")),
    "longer": ("checkpoint-manifest", lambda path: longer(path / "manifest.json")),
    "huge": ("checkpoint-manifest", lambda path: (path / "manifest.json").write_bytes(b" " * 10**6)),
    "spaced": ("checkpoint-manifest", text('":', '" :')),
    "without-fields": ("checkpoint-manifest", value(without_fields)),
    "other-schema": ("checkpoint-manifest", text("checkpoint/v1", "checkpoint/v2")),
    "no-shards": ("checkpoint-coverage", value(lambda manifest: manifest.update(shards=[]))),
    "no-regions": ("checkpoint-manifest", value(lambda manifest: manifest["shards"][0].update(regions=[]))),
    "negative": ("checkpoint-manifest", region(0, 0, first=-1)),
    "fraction": ("checkpoint-manifest", region(0, 0, count=1.5)),
    "leading-zero": ("checkpoint-manifest", text('"version":2', '"version":02')),
    "number-too-large": ("checkpoint-manifest", region(0, 0, first=2**53)),
    "upper-case-digest": ("checkpoint-manifest", text('"state":"', '"state":"A')),
    "path": ("checkpoint-manifest", text(SHARD, "../" + SHARD)),
    "hidden": ("checkpoint-manifest", text(SHARD, "." + SHARD)),
    "long-name": ("checkpoint-manifest", text(SHARD, "a" * 300)),
    "zero-byte": ("checkpoint-manifest", text('"v"', '"\0"')),
    "count-zero": ("checkpoint-manifest", region(0, 0, count=0)),
    "field-twice": ("checkpoint-manifest", region(0, 1, field="W")),
    "other-system": ("checkpoint-system", value(lambda manifest: manifest.update(system="ab" * 32))),
    "shard-missing": ("checkpoint-coverage", lambda path: (path / SHARD).unlink()),
    "shard-link": ("checkpoint-coverage", lambda path: link(path / SHARD)),
    "shard-pipe": ("checkpoint-coverage", lambda path: pipe(path / SHARD)),
    "shard-unnamed": ("checkpoint-coverage", value(without_shard)),
    "shard-twice": ("checkpoint-coverage", value(doubled_shard)),
    "overlap": ("checkpoint-coverage", region(1, 0, first=0)),
    "beyond": ("checkpoint-coverage", region(1, 0, first=3)),
    "far-beyond": ("checkpoint-coverage", region(1, 0, first=2**53 - 1)),
    "beyond-too": ("checkpoint-coverage", value(more_shard)),
    "beyond-and-within": ("checkpoint-manifest", more_region(0, count=1, field="W", first=3, stride=1)),
    "unknown-field": ("checkpoint-coverage", region(2, 1, field="z")),
    "unknown-field-first": ("checkpoint-coverage", more_region(0, count=1, field="z", first=0, stride=1)),
    "unknown-field-between": ("checkpoint-coverage", more_region(1, count=1, field="z", first=0, stride=1)),
    "unknown-field-last": ("checkpoint-coverage", more_region(2, count=1, field="z", first=0, stride=1)),
    "unknown-field-of-another": ("checkpoint-system", value(of_another_system)),
    "shard-altered": ("checkpoint-chunk", lambda path: altered(path / SHARD)),
    "shard-torn": ("checkpoint-chunk", lambda path: truncated(path / SHARD)),
    "shard-longer": ("checkpoint-chunk", lambda path: longer(path / SHARD)),
    "shard-emptied": ("checkpoint-chunk", rehashed(SHARD, lambda data: data[:0])),
    "shard-header": ("checkpoint-chunk", rehashed(SHARD, lambda data: data.replace(b"F64", b"F32"))),
    "shard-words": (
        "checkpoint-chunk",
        rehashed(SHARD, lambda data: data[:-2] + bytes([data[-2] ^ 1, data[-1]])),
    ),
    "size-claimed": ("checkpoint-chunk", value(lambda manifest: manifest["shards"][1].update(size=1))),
    "state-claimed": ("checkpoint-chunk", value(lambda manifest: manifest.update(state="ab" * 32))),
    "version-claimed": ("checkpoint-capture", value(lambda manifest: manifest.update(version=1))),
    "infinite": ("non-finite", restated(float("inf"))),
    "shard-of-another-run": (
        "checkpoint-capture",
        rehashed(SHARD, lambda data: data.replace(b'"run":"01', b'"run":"02')),
    ),
    "shard-of-another-epoch": (
        "checkpoint-capture",
        rehashed(SHARD, lambda data: data.replace(b'"epoch":"1"', b'"epoch":"7"')),
    ),
    "epoch-claimed": ("checkpoint-capture", value(lambda manifest: manifest["capture"].update(epoch=2))),
    "stride-zero": ("checkpoint-manifest", region(0, 0, stride=0)),
    "stride-of-one-word": ("checkpoint-manifest", region(0, 0, stride=2)),
}


@pytest.mark.parametrize("mode", ["train", "evaluate"])
@pytest.mark.parametrize("what", BROKEN)
def test_a_checkpoint_that_is_not_whole(bench, checkpoint, what, mode):
    label, spoil = BROKEN[what]
    spoil(checkpoint)
    run = bench(role_plans.single())
    run.place(Setup(target=4, epoch=2, mode=mode, bind={"*": {"resume": True}}))
    checkpoint.rename(run.work("alone") / "restore")
    run.start()
    assert run.labels() == {"alone": label}
    assert run.committed() == []
    assert run.progress("alone") == []


def test_a_checkpoint_with_all_digests_made_to_fit_is_a_checkpoint(bench, checkpoint):
    """So that the refusals above are of what they say."""
    restated(0.125)(checkpoint)
    run = bench(role_plans.single())
    run.place(Setup(target=4, epoch=2, restore=checkpoint))
    run.start()
    assert run.end("alone").results["version"] == 4


def test_a_manifest_that_is_not_the_bound_one(bench, checkpoint):
    bound = hashlib.sha256((checkpoint / "manifest.json").read_bytes()).hexdigest()
    setup = Setup(target=4, epoch=2, restore=checkpoint, restore_sha256=bound)
    assert bench(role_plans.single()).run(setup)["alone"].results["version"] == 4
    rewrite(checkpoint, lambda manifest: manifest["capture"].update(time_ms=1))
    assert bench(role_plans.single()).run(setup)["alone"].label == "checkpoint-chunk"


def with_empty_parts(path, names):
    """Parts that hold no word, as those of roles that own none; each name may stand there more than once."""
    manifest = json.loads((path / "manifest.json").read_bytes())
    capture = {key: manifest["capture"][key] for key in ("epoch", "plan", "run")}
    part = {"capture": capture, "manifests": [], "schema": "orch-checkpoint-part/v1", "shards": []}
    data = json.dumps(part | {"version": 2}, sort_keys=True, separators=(",", ":")).encode()
    for name in names:
        (path / name).write_bytes(data)
    listed = [{"file": name, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name in names]
    rewrite(path, lambda manifest: manifest.update(manifests=listed))


@pytest.mark.parametrize(
    ("count", "again"), [(2, None), (2, 1), (150, None), (150, 0), (150, 63), (150, 64), (150, 149)]
)
def test_a_part_is_named_once(bench, checkpoint, count, again):
    """Its words would tell that it is there twice; of one without words only its name does."""
    names = [f"2.{number}.manifest.json" for number in range(count)]
    with_empty_parts(checkpoint, [*names, *([] if again is None else [names[again]])])
    files = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
    system = role_plans.single().plan.system
    run = bench(role_plans.single())
    run.place(Setup(target=4, epoch=2, restore=checkpoint))
    run.start()
    if again is None:
        assert run.end("alone").results["version"] == 4
        assert read_set(system, files).version == 2
        return
    assert run.labels() == {"alone": "checkpoint-coverage"}
    with pytest.raises(CheckpointError, match="checkpoint-coverage: a part twice"):
        read_set(system, files)


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_checkpoint_is_of_an_earlier_epoch(bench, tmp_path, epoch):
    first = bench(role_plans.single())
    first.run(Setup(target=2, epoch=2))
    restore = first.published(2, tmp_path / "later")
    outcomes = bench(role_plans.single()).run(Setup(target=4, epoch=epoch, restore=restore))
    assert outcomes["alone"].label == "checkpoint-epoch"


def test_a_checkpoint_that_is_already_at_the_target(bench, checkpoint):
    run = bench(role_plans.single())
    run.place(Setup(target=2, epoch=2, restore=checkpoint))
    run.start()
    assert run.labels() == {"alone": "binding"}
