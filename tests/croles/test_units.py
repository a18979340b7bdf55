"""The parts of the runtime that only compute, under the undefined-behaviour sanitizer, on generated data."""

from __future__ import annotations

import hashlib
import json
import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from role_bench import CONTENT
from role_frames import Frame

from orchestrator.build.compile import FLAGS, STATIC

UNITS = Path(__file__).parent / "units"
RUNTIME = CONTENT / "roles" / "runtime"
PARTS = ("memory.c", "refuse.c", "sha256.c", "text.c", "files.c", "frame.c", "shard.c")
HOST = f"{os.uname().machine}-linux"

Unit = Callable[[bytes], bytes]


@pytest.fixture(scope="module", params=["sanitized", "as-shipped"])
def unit(request, tmp_path_factory, program_cache) -> Callable[[str], Unit]:
    folder = tmp_path_factory.mktemp("units")
    sanitizers = ["-fsanitize=undefined", "-fsanitize-trap=undefined"] if request.param == "sanitized" else []

    def build(name: str) -> Unit:
        program = folder / name
        environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(program_cache / "zig")}
        environment["ZIG_LOCAL_CACHE_DIR"] = environment["ZIG_GLOBAL_CACHE_DIR"]
        sources = [str(UNITS / f"{name}.c"), *(str(RUNTIME / part) for part in PARTS)]
        command = [sys.executable, "-m", "ziglang", "cc", "-target", HOST, STATIC, *FLAGS, *sanitizers]
        subprocess.run([*command, f"-I{RUNTIME}", *sources, "-o", program], env=environment, check=True)

        def run(data: bytes) -> bytes:
            done = subprocess.run([program], input=data, capture_output=True, check=False)
            assert (done.returncode, done.stderr) == (0, b"")
            return done.stdout

        return run

    return build


def test_a_fault_would_be_noticed(unit, request):
    run = unit("fault")
    assert run(b"\0") == b"1"
    if "sanitized" in request.node.name:
        with pytest.raises(AssertionError):
            run(b"\1")


def test_sha256(unit):
    chance, run = random.Random(2), unit("hash")
    for size in (*range(130), 1000, 10_000):
        pieces, left = [], chance.randbytes(size)
        while left:
            cut = chance.choice((1, 55, 63, 64, 65, 128, 255))
            pieces.append(left[:cut])
            left = left[cut:]
        data = b"".join(pieces)
        given = b"".join(bytes([len(piece)]) + piece for piece in pieces)
        assert run(given).decode() == hashlib.sha256(data).hexdigest()


def record(chance: random.Random) -> str:
    letters = "abcXYZ019_-."
    name = chance.choice("aZ9_-") + "".join(chance.choices(letters, k=chance.choice((0, 1, 20, 254))))
    number = chance.choice((0, 1, 9, 10, 2**32, 2**53 - 1, chance.randrange(2**53)))
    digest, run = chance.randbytes(32).hex(), chance.randbytes(16).hex()
    return f'{{"n":{number},"name":"{name}","long":"{digest}","short":"{run}"}}'


def test_the_scanner_takes_what_was_written(unit):
    chance = random.Random(3)
    given = [record(chance) for _ in range(300)]
    out = unit("scan")("".join(text + "\0" for text in given).encode())
    assert out.decode().splitlines() == given


def test_the_scanner_takes_nothing_else(unit):
    """One changed byte gives another record that is read as it stands, or no record."""
    chance = random.Random(4)
    given = []
    for _ in range(3000):
        text = bytearray(record(chance), "ascii")
        at = chance.randrange(len(text))
        match chance.randrange(3):
            case 0:
                text[at] = chance.randrange(1, 256)
            case 1:
                del text[at]
            case 2:
                text.insert(at, chance.randrange(1, 256))
        given.append(bytes(text))
    given += [bytes(given[0][:at]) for at in range(len(given[0]))]
    out = unit("scan")(b"".join(text + b"\0" for text in given)).splitlines()
    assert len(out) == len(given)
    for text, said in zip(given, out, strict=True):
        assert said in (text, b"no")
        if said == text:
            assert json.loads(text)["n"] < 2**53


@pytest.mark.parametrize(
    "broken",
    ['"n":00', '"n":01', '"n":-1', '"n":1.0', '"n":', '"n":9007199254740992', '"n":99999999999999999999999'],
)
def test_the_scanner_takes_no_other_number(unit, broken):
    text = record(random.Random(5))
    head, _, tail = text.partition(",")
    assert head.startswith('{"n":')
    assert unit("scan")(f"{{{broken},{tail}\0".encode()) == b"no\n"


def test_shard_headers(unit):
    run = unit("header")
    for version, regions in (
        (1, ((0, 1, 3), (0, 1, 2))),
        (2**53 - 1, ((2**40, 1, 1), (0, 1, 0))),
        (10, ((0, 1, 0), (7, 1, 1000))),
        (11, ((3, 4, 5), (1, 7, 2))),
    ):
        out = run(struct.pack("<7Q", version, *(number for region in regions for number in region)))
        (length,) = struct.unpack("<Q", out[:8])
        text = out[8:].decode()
        assert length == len(text)
        assert length % 8 == 0
        entries, before = {}, 0
        for name, (first, stride, count) in zip("wW", regions, strict=True):
            offsets = [8 * before, 8 * (before + count)]
            if count:
                entry = {"data_offsets": offsets, "dtype": "F64", "shape": [count]}
                end = first + (count - 1) * stride + 1
                entries[f"{name}[{first}:{end}{f':{stride}' if stride > 1 else ''}]"] = entry
            before += count
        metadata = {
            "epoch": "5",
            "format": "orch-checkpoint/v1",
            "run": "cd" + "00" * 15,
            "system": "ab" + "00" * 31,
            "version": str(version),
        }
        entries["__metadata__"] = metadata
        assert text.rstrip(" ") == json.dumps(entries, sort_keys=True, separators=(",", ":"))


def test_frames(unit):
    good = Frame(b"\xab" * 32, 1, 2, epoch=3, round=4, payload=b"").pack()
    spans = {range(40): "frame-identity", range(40, 48): "frame-epoch", range(48, 56): "frame-round"}
    spans |= {range(56, 64): "frame-identity", range(64, 72): "frame-bound", range(72, 96): "frame-identity"}
    frames, labels = [good], ["fine"]
    for span, label in spans.items():
        for at in span:
            frames.append(good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1 :])
            labels.append(label)
    assert unit("frame")(b"".join(frames)).decode().splitlines() == labels


def test_memory(unit):
    chance, run = random.Random(6), unit("memory")
    for size in (0, 2, 14, 16, 18, 64, 126):
        for data in (bytes(size), chance.randbytes(size), chance.randbytes(size // 2) * 2):
            one, other = data[: size // 2], data[size // 2 :]
            expected = (1, int(one < other), int(one > other), int(not any(data)))
            assert run(data).decode() == " ".join(map(str, expected))
