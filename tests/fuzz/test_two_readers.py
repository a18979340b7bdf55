"""Thousands of sets that are wrong in some way, read by a role's code and by the oracle: one label each."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import subprocess
from collections.abc import Iterator
from typing import Any

import fuzzing
import pytest

from orchestrator.errors import Label
from orchestrator.oracle.checkpoint import CheckpointError, read_set
from orchestrator.oracle.survey import survey

ROUNDS = 1500
ROOT = "manifest.json"
SYSTEM = fuzzing.planned().system
Files = dict[str, bytes]


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with every key of it."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def changed(chance: random.Random, files: Files, others: dict[str, Files]) -> Files:
    """A set in which one to three things are not as they were; some with digests that fit again."""
    files = dict(files)
    for _ in range(chance.randint(1, 3)):
        name = chance.choice(sorted(files))
        if name.endswith("manifest.json") and chance.random() < 0.8:
            files[name] = _value_changed(chance, files[name], others)
        elif chance.random() < 0.2:
            del files[name]
            files.setdefault(ROOT, b"{}")
        elif chance.random() < 0.3:
            files[name] = chance.choice(sorted(chance.choice(sorted(others.values(), key=len)).values()))
        else:
            at = chance.randrange(len(files[name]) + 1)
            piece = bytes(chance.choices(b'0123456789"[]{},: af\0', k=chance.randint(0, 2)))
            files[name] = files[name][:at] + piece + files[name][at + chance.randint(0, 2) :]
    return fitted(files) if chance.random() < 0.7 else files


def _value_changed(chance: random.Random, data: bytes, others: dict[str, Files]) -> bytes:
    try:
        content = json.loads(data)
        found = list(places(content))
    except (ValueError, RecursionError):
        return data
    if not found:
        return data
    container, key = chance.choice(found)
    value = container[key]
    if isinstance(value, int) and not isinstance(value, bool):
        container[key] = max(0, value + chance.choice((-2, -1, 1, 2, 3, 7, 2**53 - 1 - value)))
    elif isinstance(container, list) and chance.random() < 0.5:
        container.insert(chance.randrange(len(container) + 1), copy.deepcopy(value))
    elif isinstance(container, list):
        del container[key]
    elif isinstance(value, str):
        names = [name for files in others.values() for name in files]
        kinds = [value[:-1], value + "0", value.upper(), "0189" * 8, "ab" * 32, chance.choice("wmvp"), *names]
        container[key] = chance.choice(kinds)
    else:
        container[key] = chance.choice(([], {}, 0, "x", None))
    return canonical(content)


def fitted(files: Files) -> Files:
    """The set with every digest and size in its manifests made to fit, from the bottom up."""
    files = dict(files)
    for name in sorted((name for name in files if name.endswith("manifest.json")), reverse=True):
        try:
            content = json.loads(files[name])
            for listed in (*content["manifests"], *content["shards"]):
                data = files.get(listed["file"])
                if data is not None:
                    listed.update(sha256=hashlib.sha256(data).hexdigest(), size=len(data))
            files[name] = canonical(content)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            continue
    return files


def oracle_says(files: Files) -> str:
    try:
        found = read_set(SYSTEM, files)
    except CheckpointError as error:
        return str(error.label)
    return "fine" if found.epoch < fuzzing.EPOCH else str(Label.CHECKPOINT_EPOCH)


def survey_says(files: Files) -> set[str]:
    try:
        return {str(fault.label) for fault in survey(ROOT, files.get, SYSTEM).faults}
    except CheckpointError as error:
        return {str(error.label)}


@pytest.mark.parametrize("seed", range(2))
def test_both_say_the_same(seed, tmp_path):
    compiler = fuzzing.standalone_compiler()
    if compiler is None:
        pytest.skip("needs a C compiler with sanitizers: clang or gcc")
    program = fuzzing.build("restore", tmp_path, compiler)
    chance = random.Random(seed)
    sound = fuzzing.sets()
    made = [changed(chance, chance.choice(list(sound.values())), sound) for _ in range(ROUNDS)]
    made += sound.values()
    paths = [tmp_path / f"{number}.set" for number in range(len(made))]
    for path, files in zip(paths, made, strict=True):
        path.write_bytes(b"\0" + fuzzing.in_one(files))
    done = subprocess.run(
        [program, "labels", *paths], capture_output=True, text=True, check=True, timeout=300
    )
    said = done.stdout.splitlines()
    assert len(said) == len(made)
    for number, (files, label) in enumerate(zip(made, said, strict=True)):
        expected = oracle_says(files)
        assert label == expected, paths[number]
        found = survey_says(files)
        assert (label in found) if label not in ("fine", Label.CHECKPOINT_EPOCH) else not found, paths[number]
    assert {
        "fine",
        "checkpoint-manifest",
        "checkpoint-coverage",
        "checkpoint-chunk",
        "checkpoint-capture",
    } <= {*said}
