"""Bundles that verify and yet say anything at all: read, or refused in our words."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import tracker_building as building
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker import sealed
from tracker.errors import TrackerError
from tracker.store import open_store

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    [
        "lane",
        "system",
        "plan",
        "content_sha256",
        "judge",
        "grade",
        "omitted",
        "started",
        "ended",
        "parent",
        "steps",
    ]
)
CARD_FIELDS = st.sampled_from(["product", "uuid", "minor", "profile", "driver"])


def outcome(bundle: Path) -> str:
    """Ingest a bundle into a new database; gives the run id, or what the refusal says."""
    try:
        return building.ingest(open_store(f"{bundle}.sqlite3"), bundle).run_id
    except TrackerError as error:
        return str(error)


@settings(max_examples=60, deadline=None)
@given(changed=st.dictionaries(FIELDS, ANYTHING, min_size=1, max_size=3))
def test_a_qualification_may_say_anything(changed: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bundle = building.build(Path(folder), "r1", extra=changed)
        assert outcome(bundle).startswith(("r1", f"{bundle}: "))


@settings(max_examples=60, deadline=None)
@given(cards=st.lists(ANYTHING | st.dictionaries(CARD_FIELDS, ANYTHING), max_size=3))
def test_a_binding_may_say_anything(cards: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bundle = building.build(Path(folder), "r1", grade="physical", cards=cards)
        assert outcome(bundle).startswith(("r1", f"{bundle}: "))


def test_what_is_read_of_a_bundle(tmp_path: Path) -> None:
    cards = [building.card(building.RTX_3070, "GPU-1"), None, building.card("stand-in", None)]
    told = sealed.read(
        building.build(tmp_path, "r1", grade="simulated", cards=cards, omitted={"b": "x", "a": "y"})
    )
    assert (told.run_id, told.lane, told.verdict, told.grade) == ("r1", "coordinates", "pass", "simulated")
    assert told.omitted == '{"a":"y","b":"x"}'
    assert told.judge == '{"version":"1"}'
    assert [(device.role, device.uuid) for device in told.devices] == [
        ("role0", "GPU-1"),
        ("role2", "role:role2"),
    ]
    assert [name for name, _ in told.seconds] == ["wall", "step.preflight.wall"]


def test_a_run_that_ended_before_its_binding_is_read_too(tmp_path: Path) -> None:
    bundle = building.build(tmp_path, "r1", verdict="unknown", binding=False)
    assert not (bundle / "binding.json").exists()
    assert sealed.read(bundle).devices == ()


@pytest.mark.parametrize("given", ["absent", "a file", "a device"])
def test_what_is_no_bundle_is_refused(tmp_path: Path, given: str) -> None:
    path = tmp_path / "bundle"
    if given == "a file":
        path.write_text("text", "utf-8")
    elif given == "a device":
        path = Path("/dev/null")
    with pytest.raises(TrackerError, match=str(path)):
        sealed.read(path)
