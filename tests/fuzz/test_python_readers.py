"""Any bytes give a value or a labelled refusal: what Python reads of checkpoints, bindings, plans, data."""

from __future__ import annotations

import contextlib
import io
import json
from array import array
from pathlib import Path

import fuzzing
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from one_binding import ONE_BINDING

from evidence.canonical import CanonicalError, dumps, loads
from orchestrator.build.binding import Binding, BindingError
from orchestrator.cli.main import main
from orchestrator.errors import RefusedError
from orchestrator.oracle.checkpoint import CheckpointError, read_set
from orchestrator.oracle.manifest import Capture, read_manifest
from orchestrator.oracle.publication import write_set
from orchestrator.oracle.survey import survey
from orchestrator.qualify.command import tensors
from orchestrator.spec.data import read_samples

PLAN = fuzzing.planned()
SYSTEM = PLAN.system
WORDS = array("d", (index / 8 for index in range(SYSTEM.state_words)))
SET = write_set(SYSTEM, 3, WORDS, Capture(2, PLAN.digest, "0189" * 8))
MANIFEST = SET["3.manifest.json"]
((SHARD, SHARD_BYTES),) = ((name, data) for name, data in SET.items() if name != "3.manifest.json")
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def spoiled(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes with a few pieces cut out, doubled, or replaced."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        end = min(at + draw(st.integers(0, 40)), len(data))
        piece = draw(st.sampled_from((b"", data[at:end] * 2, data[end:at])) | st.binary(max_size=20))
        data = data[:at] + piece + data[end:]
    return data


@RELAXED
@given(st.binary(max_size=300) | spoiled(MANIFEST))
def test_manifests(data: bytes) -> None:
    with contextlib.suppress(CheckpointError):
        read_manifest(data)


@RELAXED
@given(spoiled(MANIFEST) | st.just(MANIFEST), spoiled(SHARD_BYTES) | st.just(SHARD_BYTES), st.booleans())
def test_sets(manifest: bytes, shard: bytes, has_system: bool) -> None:  # noqa: FBT001 - drawn
    """Whatever is wrong, it is said; and the survey finds nothing exactly where the reader takes a set."""
    files = {"3.manifest.json": manifest, SHARD: shard}
    try:
        read_set(SYSTEM, {"manifest.json": manifest, SHARD: shard})
        is_sound = True
    except CheckpointError:
        is_sound = False
    try:
        found = survey("3.manifest.json", files.get, SYSTEM if has_system else None)
    except CheckpointError:
        assert not is_sound
        return
    assert not (is_sound and found.faults)
    assert is_sound or found.faults or not has_system


@settings(RELAXED, max_examples=60)
@given(spoiled(MANIFEST) | st.just(MANIFEST), spoiled(SHARD_BYTES) | st.just(SHARD_BYTES))
def test_the_command_never_ends_as_a_bug_of_ours(tmp_path: Path, manifest: bytes, shard: bytes) -> None:
    (tmp_path / "3.manifest.json").write_bytes(manifest)
    (tmp_path / SHARD).write_bytes(shard)
    for words in (["show"], ["verify"], ["diff", str(tmp_path)]):
        out, err = io.StringIO(), io.StringIO()
        action, *more = words
        with contextlib.redirect_stdout(Text(out)), contextlib.redirect_stderr(Text(err)):
            code = main(["checkpoint", action, str(tmp_path), *more, "--json"])
        assert code in (0, 1, 4), err.getvalue()
        json.loads(out.getvalue())


class Text(io.TextIOBase):
    """A stream that takes text and can be reconfigured, as the standard ones can."""

    def __init__(self, into: io.StringIO) -> None:
        self._into = into

    def write(self, text: str) -> int:
        return self._into.write(text)

    def reconfigure(self, **_: object) -> None:
        pass


@RELAXED
@given(st.binary(max_size=600) | spoiled(ONE_BINDING.pack()))
def test_bindings(data: bytes) -> None:
    with contextlib.suppress(BindingError):
        Binding.unpack(data)


@RELAXED
@given(st.dictionaries(st.sampled_from(sorted(ONE_BINDING.as_json())), ANY_JSON, max_size=3))
def test_bindings_as_values(change: dict) -> None:
    with contextlib.suppress(BindingError):
        Binding.from_json({**ONE_BINDING.as_json(), **change})


@RELAXED
@given(spoiled(dumps(PLAN.file_json())))
def test_plans_are_json_or_are_not(data: bytes) -> None:
    with contextlib.suppress(CanonicalError):
        assert loads(data) is not None or data.strip() == b"null"


@RELAXED
@given(st.binary(max_size=300) | spoiled(SHARD_BYTES))
def test_tensors_of_a_program_of_ones_own(data: bytes) -> None:
    with contextlib.suppress(tensors.TensorsError):
        tensors.read({"": data})


@RELAXED
@given(spoiled(b"x,y\n1,2\n-0.5,1e300\r\n+.5,0.\n"), st.integers(1, 3))
def test_data_files(tmp_path: Path, data: bytes, width: int) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(data)
    with contextlib.suppress(RefusedError):
        assert read_samples(path, width).rows > 0


def test_what_is_spoiled_was_sound() -> None:
    """So that these tests begin from what is read."""
    assert read_set(SYSTEM, {"manifest.json": MANIFEST, SHARD: SHARD_BYTES}).words == WORDS
    assert Binding.unpack(ONE_BINDING.pack()) == ONE_BINDING
    assert tensors.read({"": SHARD_BYTES}).keys() == {f"{f.name}[0:{f.size}]" for f in SYSTEM.state_fields}
    with pytest.raises(CheckpointError):
        read_manifest(MANIFEST + b" ")
