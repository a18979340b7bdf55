"""Content: where it is looked for, and what its digest is the digest of."""

import hashlib
import json
from pathlib import Path

import pytest

from orchestrator.errors import Label, RefusedError
from orchestrator.spec.content import find, names

ROOT = Path(__file__).parents[3]


@pytest.fixture
def content(tmp_path: Path) -> Path:
    for name, text in {
        "lanes/a.yaml": "a",
        "roles/runtime/b.c": "b",
        "specs/runs/c.yaml": "c",
        "specs/schema/d.json": "d",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_checkout_is_found_by_itself() -> None:
    assert find().root == ROOT
    assert "specs/systems/samples.yaml" in names(ROOT)


def test_the_digest_is_of_names_and_bytes(content: Path) -> None:
    listing = [
        {"name": name, "sha256": hashlib.sha256(text).hexdigest()}
        for name, text in (("lanes/a.yaml", b"a"), ("roles/runtime/b.c", b"b"), ("specs/runs/c.yaml", b"c"))
    ]
    canonical = json.dumps(listing, separators=(",", ":"), sort_keys=True).encode()
    assert find(content).digest == hashlib.sha256(canonical).hexdigest()


def test_what_changes_the_digest_and_what_does_not(content: Path) -> None:
    first = find(content).digest
    for name in (
        "specs/schema/e.json",
        "README.md",
        "lanes/.hidden",
        "roles/__pycache__/x.pyc",
        "lanes/a.yaml~",
    ):
        (content / name).parent.mkdir(parents=True, exist_ok=True)
        (content / name).write_text("more")
        assert find(content).digest == first
    (content / "lanes" / "a.yaml").write_text("b")
    second = find(content).digest
    assert second != first
    (content / "lanes" / "a.yaml").rename(content / "lanes" / "b.yaml")
    assert find(content).digest not in (first, second)


def test_a_folder_without_content(tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as caught:
        find(tmp_path)
    assert [(refusal.label, refusal.where.path) for refusal in caught.value.refusals] == [
        (Label.FILE_MISSING, str(tmp_path))
    ]
