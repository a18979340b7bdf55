"""Digests of a big file, and the check of a bundle that holds it, beside the tools that everybody has."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from benchmarks.measure import Row, command, row, take_turns, timed
from evidence.bundle import seal
from evidence.digest import sha256_file
from evidence.stream import Stream
from evidence.verify import verify

TURNS = 7
MIB = 128
AIM = "1.0"


def run(folder: Path) -> tuple[Row, ...]:
    bundle = _bundle(folder / "bundle")
    big = bundle / "big"
    digest, check = f"digest of {MIB} MiB", f"verifying a bundle of {MIB} MiB"
    tools = {"openssl dgst -sha256": "openssl", "sha256sum": "sha256sum"}
    present = [name for name, program in tools.items() if shutil.which(program)]
    turns = take_turns(
        (
            timed(digest, lambda: sha256_file(big)),
            timed(check, lambda: _demand_sound(bundle)),
            *(command(name, [*name.split(), str(big)], folder) for name in present),
        ),
        TURNS,
    )
    return tuple(row(turns, ours, theirs, AIM) for theirs in present for ours in (digest, check))


def _bundle(bundle: Path) -> Path:
    bundle.mkdir()
    piece = os.urandom(1 << 20)
    with (bundle / "big").open("wb") as file:
        for _ in range(MIB):
            file.write(piece)
    with Stream.create(bundle / "stream.jsonl", "benchmark") as stream:
        stream.append("orch.benchmark", "big", {})
        seal(bundle, stream, "pass", {"verdict": "pass"})
    return bundle


def _demand_sound(bundle: Path) -> None:
    if problems := verify(bundle):
        raise ValueError(f"the bundle is not sound: {problems[0]}")
