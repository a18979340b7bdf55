"""A real bundle, touched anywhere: the change is found and the file named; the judge gives nothing for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from covering import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lane_workshop import Workshop

from evidence.verify import verify

Passed = Callable[[str], tuple[Path, dict[str, Any]]]


@pytest.fixture(scope="module")
def bundle(passed: Passed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the samples lane's bundle that every test leaves as it found it."""
    source, _ = passed("lanes/samples.yaml")
    target = tmp_path_factory.mktemp("tampered") / source.name
    shutil.copytree(source, target)
    return target


def names(bundle: Path) -> list[str]:
    return sorted(path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file())


@contextmanager
def replaced(path: Path, data: bytes) -> Iterator[None]:
    before = path.read_bytes()
    path.write_bytes(data)
    try:
        yield
    finally:
        path.write_bytes(before)


@given(data=st.data())
@settings(max_examples=examples(100, 250), deadline=None)
def test_any_single_byte_changed_is_found_and_its_file_named(bundle: Path, data: st.DataObject):
    name = data.draw(st.sampled_from([name for name in names(bundle) if (bundle / name).stat().st_size]))
    path = bundle / name
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    with replaced(path, bytes(content)):
        assert name in {problem.name for problem in verify(bundle)}
    assert verify(bundle) == ()


@given(data=st.data())
@settings(max_examples=examples(40, 80), deadline=None)
def test_any_file_cut_or_grown_is_found_and_named(bundle: Path, data: st.DataObject):
    name = data.draw(st.sampled_from(names(bundle)))
    content = (bundle / name).read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    changed = content[:cut] if cut < len(content) else content + data.draw(st.binary(min_size=1, max_size=9))
    with replaced(bundle / name, changed):
        assert name in {problem.name for problem in verify(bundle)}


def test_every_file_removed_or_made_a_link_is_found_and_named(bundle: Path, tmp_path: Path):
    for number, name in enumerate(names(bundle)):
        path, aside = bundle / name, tmp_path / str(number)
        path.rename(aside)
        assert name in {problem.name for problem in verify(bundle)}
        path.symlink_to(aside)
        assert name in {problem.name for problem in verify(bundle)}
        path.unlink()
        aside.rename(path)
    assert verify(bundle) == ()


def test_a_file_added_anywhere_is_found_and_named(bundle: Path):
    folders = sorted({path.parent for path in bundle.rglob("*") if path.is_file()})
    for folder in folders:
        added = folder / "added"
        added.write_bytes(b"")
        assert added.relative_to(bundle).as_posix() in {problem.name for problem in verify(bundle)}
        added.unlink()
        os.mkfifo(added)
        assert added.relative_to(bundle).as_posix() in {problem.name for problem in verify(bundle)}
        added.unlink()
    assert verify(bundle) == ()


def test_the_commands_say_so_and_judge_nothing(copied: Path, workshop: Workshop):
    assert workshop.orch("evidence", "verify", str(copied)).returncode == 0
    target = next(copied.glob("steps/split/1/part-2/*/progress"))
    content = bytearray(target.read_bytes())
    content[5] ^= 1
    target.write_bytes(bytes(content))
    verified = workshop.orch("evidence", "verify", str(copied))
    assert verified.returncode == 1
    assert target.relative_to(copied).as_posix() in verified.stdout + verified.stderr
    judged = workshop.orch("judge", str(copied))
    assert judged.returncode == 1
    assert "agrees" not in judged.stdout


def test_two_files_that_disagree_are_both_named(copied: Path):
    sums = copied / "SHA256SUMS"
    lines = sums.read_bytes().splitlines(keepends=True)
    digest = lines[3][:64]
    lines[3] = lines[3].replace(digest, digest[::-1])
    sums.write_bytes(b"".join(lines))
    assert {"SHA256SUMS", "qualification.json"} <= {problem.name for problem in verify(copied)}
