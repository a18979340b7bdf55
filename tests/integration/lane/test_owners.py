"""One checkpoint goes on with any number of owners, in any tree, however its state is dealt out.

Data and constants are small dyadic numbers, so that every sum is exact in every order: then a plan changes
nothing of what is learned, to the last bit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from covering import some
from lane_workshop import Workshop

from orchestrator.oracle.checkpoint import MANIFEST, read_set
from orchestrator.oracle.reference import Reference
from orchestrator.plan.derive import derive
from orchestrator.qualify.judge import judge_bundle
from orchestrator.spec.read import read_lane

WIDTH, ROWS, FROM, TO = 5, 16, 2, 4
R, P = "replicated", "partitioned"
# owners -> topology, rows of each, parameters, optimizer state, gradients
RESUMED: dict[int, tuple[str, tuple[int, ...], str, str, str]] = {
    1: ("star", (16,), R, R, R),
    2: ("pair", (3, 13), P, R, P),
    3: ("star", (0, 9, 7), R, P, R),
    4: ("star", (1, 2, 13, 0), P, P, R),
    7: ("{kind: hierarchy, fan_out: 2}", (2, 0, 3, 4, 1, 5, 1), P, P, P),
    16: ("{kind: hierarchy, fan_out: 3}", (1,) * 16, R, P, P),
}
SYSTEM = f"""\
orch: system/v1
name: exact
kind: data-parallel
parameters: {{w: {{size: {WIDTH}, initial: 0}}}}
state: {{v: {{size: {WIDTH}, initial: 0}}}}
sample: {{x: {WIDTH}, y: 1}}
contribution: ["e = dot(w, x) - y", "g[i] = e * x[i]"]
update: ["v[i] = 0.5 * v[i] + mean_g[i]", "w[i] = w[i] - rate * v[i]"]
evaluate: ["loss = 0.5 * e * e"]
rate: 0.25
samples: {{file: ../data/exact.csv}}
numerics: binary64-ordered
"""


def declare(workshop: Workshop, name: str, split: int, updates: int, how: tuple[Any, ...]) -> str:
    """A lane of the system over these owners."""
    topology, rows, parameters, state, gradients = how
    roles = [f"r{index}" for index in range(len(rows))]
    run = f"""\
orch: run/v1
name: {name}
system: ../systems/exact.yaml
topology: {topology}
roles: [{", ".join(roles)}]
samples: {{{", ".join(f"{role}: {count}" for role, count in zip(roles, rows, strict=True))}}}
ownership: {{parameters: {parameters}, optimizer_state: {state}, gradients: {gradients}}}
pairings: {{{", ".join(f"{role}: {{target: x86_64-linux}}" for role in roles)}}}
"""
    lane = f"""\
orch: lane/v1
name: {name}
run: ../specs/runs/{name}.yaml
updates: {updates}
split: {split}
omit: {{refusals: shown elsewhere, evaluate: shown elsewhere}}
deadlines: {{connect: 30s, round: 30s, run: 5m}}
limits: {{duration: 20m}}
"""
    rows_text = (
        ",".join(str((7 * row + 3 * at + row * at) % 4 - 1) for at in range(WIDTH + 1)) for row in range(ROWS)
    )
    for path, text in {
        "specs/systems/exact.yaml": SYSTEM,
        "specs/data/exact.csv": "\n".join(rows_text) + "\n",
        f"specs/runs/{name}.yaml": run,
        f"lanes/{name}.yaml": lane,
    }.items():
        target = workshop.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return f"lanes/{name}.yaml"


def state(bundle: Path, launch: str, version: int) -> str:
    (path,) = bundle.glob(f"steps/{launch}/*/checkpoint/{version}.manifest.json")
    return str(json.loads(path.read_bytes())["state"])


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> tuple[Workshop, Path]:
    """A pair that holds everything twice, run past the version that others go on from."""
    workshop = Workshop(tmp_path_factory.mktemp("begun"), cache)
    lane = declare(workshop, "begin", FROM, TO, ("pair", (6, 10), R, R, R))
    code, result = workshop.run(lane)
    assert (code, result["verdict"]) == (0, "pass"), result
    return workshop, Path(result["bundle"])


@pytest.mark.parametrize("owners", some(RESUMED, lambda owners: owners in (1, 4, 7)))
def test_a_checkpoint_goes_on_with_any_owners(begun: tuple[Workshop, Path], owners: int) -> None:
    workshop, origin = begun
    lane = declare(workshop, f"on-{owners}", FROM + 1, TO, RESUMED[owners])
    code, result = workshop.run(lane, "--from", f"{origin}:checkpoint@{FROM}")
    assert (code, result["verdict"]) == (0, "pass"), result
    bundle = Path(result["bundle"])
    expected = state(origin, "uninterrupted/1/run-1", TO)
    assert state(bundle, "uninterrupted/1/run-1", TO) == expected
    assert state(bundle, "split/1/part-2", TO) == expected
    # as any reader takes it, and as the single owner's reference has it
    files = {
        MANIFEST if path.name == f"{TO}.manifest.json" else path.name: path.read_bytes()
        for path in bundle.glob(f"steps/split/1/part-2/*/checkpoint/{TO}.*")
    }
    planned = derive(read_lane(workshop.folder / lane).run)
    found = read_set(planned.plan.system, files)
    assert found.words == Reference(planned.plan, planned.words).at(TO).words
    assert (found.state, found.owners) == (expected, owners)
    assert judge_bundle(bundle).agrees


def test_an_owner_of_no_samples_contributes_zeros_and_is_counted(workshop: Workshop) -> None:
    """Shares of 1, 2, 3 and 0 of six rows, whose mean is no dyadic number; the state is dealt out."""
    lane = declare(workshop, "shares", 2, TO, ("star", (1, 2, 3, 0), R, P, R))
    data = workshop.folder / "specs/data/exact.csv"
    data.write_text("".join(data.read_text().splitlines(keepends=True)[:6]))
    code, result = workshop.run(lane)
    assert (code, result["verdict"]) == (0, "pass"), result
    said = [
        json.loads(path.read_bytes())
        for path in sorted(Path(result["bundle"]).glob("steps/split/1/part-2/*/stdout"))
    ]
    assert [line["samples"] for line in said] == [1, 2, 3, 0]
    assert [line["held"] for line in said] == [WIDTH + len(range(index, WIDTH, 4)) for index in range(4)]
