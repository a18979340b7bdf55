"""Bundles and programmes for the tracker's tests, sealed by `evidence` itself: they verify for real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evidence import bundle as bundles
from evidence import canonical
from evidence.stream import Stream
from tracker import record
from tracker.engine import Engine, Judge
from tracker.programme import Item, Programme, Proof
from tracker.store import Store

PLAN = "a" * 64
SYSTEM = "b" * 64
RTX_3070 = "NVIDIA GeForce RTX 3070"
RTX_3090 = "NVIDIA GeForce RTX 3090"


BELIEVES = Judge("1", lambda _: ())
"""A judge that finds every record to be what the files show."""


def engine(database: Path, **changed: Any) -> Engine:
    """An engine whose programmes are `unequal`, with the file's name as status; each part may be another."""
    parts = {
        "version": "0",
        "read_programme": lambda path: unequal(path.stem),
        "judge": BELIEVES,
        "default_db": lambda: str(database),
        "find_bundle": Path,
        "bundles": lambda: (),
        "lane_file": lane_file,
    }
    return Engine(**{**parts, **changed})


def lane_file(name: str) -> Path:
    return Path(f"lanes/{name}.yaml")


def ingest(store: Store, bundle: Path, judge: Judge = BELIEVES) -> record.Recorded:
    return record.ingest(store, bundle, judge)


def card(product: str, uuid: str | None) -> dict[str, Any]:
    return {"product": product, "uuid": uuid, "minor": 0, "profile": None, "driver": "580.1"}


def build(  # noqa: PLR0913  (keywords, each a way in which one bundle differs from another)
    folder: Path,
    run_id: str,
    *,
    lane: str = "coordinates",
    verdict: str = "pass",
    grade: str = "host",
    cards: Sequence[dict[str, Any] | None] = (None,),
    omitted: Mapping[str, str] | None = None,
    steps: Sequence[str] | None = None,
    emulator: str | None = None,
    extra: Mapping[str, Any] | None = None,
    binding: bool = True,
) -> Path:
    """Seal a bundle in `folder/run_id`; one role for each entry of `cards`, None for one without a card."""
    bundle = folder / run_id
    (bundle / "steps/preflight/1").mkdir(parents=True)
    roles = {
        f"role{at}": {
            "node": "a",
            "target": "x86_64-linux",
            "emulator": emulator,
            "port": None,
            "device": each,
        }
        for at, each in enumerate(cards)
    }
    if binding:
        bound = {"schema": "orch-binding/v1", "nodes": {}, "roles": roles}
        (bundle / "binding.json").write_bytes(canonical.dumps(bound))
    (bundle / "steps/preflight/1/said.txt").write_text("ready\n", "utf-8")
    stream = Stream.create(bundle / "stream.jsonl", source=run_id)
    stream.append("orch.step.begun", "preflight", {})
    stream.append("orch.step.ended", "preflight", {"verdict": "pass"})
    told = steps if steps is not None else (verdict,)
    qualification = {
        "schema": "orch-qualification/v1",
        "lane": lane,
        "run_id": run_id,
        "system": SYSTEM,
        "plan": PLAN,
        "content_sha256": "c" * 64,
        "judge": {"version": "1"},
        "grade": grade,
        "verdict": verdict,
        "omitted": dict(omitted or {}),
        "started": "2026-11-29T09:00:00Z",
        "ended": "2026-11-29T09:00:02.5Z",
        "parent": None,
        "lane_gate": None,
        "steps": [
            {"name": name, "verdict": said, "attempts": 1, "reason": "", "checks": []}
            for name, said in zip(("preflight", "build", "record"), told, strict=False)
        ],
        **(extra or {}),
    }
    bundles.seal(bundle, stream, verdict, qualification)
    return bundle


def unequal(status: str = "in-progress", grade: str = "physical", lane: str = "coordinates") -> Programme:
    """A programme of two items: N7 proven by a host run, N10 (needs N7) by two unequal cards."""
    products = (RTX_3070, RTX_3090) if grade == "physical" else ()
    return Programme(
        {"M1": "One machine", "M2": "Unequal cards"},
        (
            Item("N7", "The lane on a host", "M1", proof=Proof(lane, "host"), status=status),
            Item("N10", "Two unequal cards", "M2", ("N7",), Proof(lane, grade, products), status),
        ),
    )
