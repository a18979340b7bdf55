"""What is demanded for a role against what its program really holds, told from the ELF file's segments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from declared import VECTOR, VECTOR_ROWS, pair, planned, star

from orchestrator.admit.memory import demand
from orchestrator.build.compile import TARGETS, Made, build_programs
from orchestrator.build.image import read_image
from orchestrator.plan.derive import Planned
from orchestrator.plan.ownership import Ownership
from orchestrator.spec.read import read_device

WORD = 8

CONTENT = Path(__file__).parents[3]
CARD = CONTENT / "specs" / "devices" / "nvidia-geforce-rtx-3070.yaml"
SLACK = 132 * 1024


def wide(folder: Path) -> Planned:
    """Every array that a plan sizes is larger than all that is set aside for what it does not."""
    size = 4000
    initial = ", ".join(f"{index / 7!r}" for index in range(size))
    return planned(
        folder,
        VECTOR,
        [tuple(float(row + column) for column in range(size + 1)) for row in range(3)],
        {"root": 1, "left": 0, "right": 2},
        parameters=f"{{w: {{size: {size}, initial: [{initial}]}}}}",
        state=f"{{v: {{size: {size}, initial: 0}}}}",
        sample=f"{{x: {size}, y: 1}}",
        contribution=["e = dot(w, x) - y", "held[i] = e * x[i] / 3", "g[i] = held[i] + x[i]"],
        update=["step[i] = 0.9 * v[i] + mean_g[i]", "v[i] = step[i]", "w[i] = w[i] - rate * v[i]"],
        evaluate=["loss = 0.5 * e * e"],
    )


def long(folder: Path) -> Planned:
    """Many statements, results and fields."""
    names = [f"p{index}" for index in range(12)]
    terms = [f"{name} = sqrt(e * e + {at}) * (y - {at}) / {at + 1}" for at, name in enumerate(names)]
    return planned(
        folder,
        VECTOR,
        VECTOR_ROWS,
        {"root": 2, "worker": 3},
        state="{" + ", ".join(f"s{name}: {{size: 2, initial: 0}}" for name in names) + "}",
        contribution=["e = dot(w, x) - y", *terms, "g[i] = e * x[i]"],
        update=[*(f"s{name}[i] = s{name}[i] / 3 + rate" for name in names), "w[i] = w[i] - rate * mean_g[i]"],
        evaluate=[*(f"r{name} = {name} * e" for name in names), "loss = 0.5 * e * e"],
    )


@pytest.mark.parametrize(
    ("of", "target"), [*product([pair, star], TARGETS), (wide, "x86_64-linux"), (long, "x86_64-linux")]
)
def test_a_demand_is_never_less_than_the_program_and_little_more(
    tmp_path: Path, program_cache: Path, of: Callable[[Path], Planned], target: str
) -> None:
    plan = of(tmp_path).plan
    programs = build_programs(plan, [(role, Made(target)) for role in plan.roles], CONTENT, program_cache)
    for role, program in zip(plan.roles, programs, strict=True):
        segments = read_image(program.data).segments
        held = sum(segment.memory_size for segment in segments if segment.kind == "PT_LOAD")
        demanded = demand(plan, role)
        assert held <= demanded.total <= held + SLACK, (held, demanded)


@pytest.mark.parametrize(("of", "target"), [(wide, "x86_64-linux"), (star, "aarch64-linux")])
def test_so_is_that_of_the_host_side_of_a_role_with_a_card(
    tmp_path: Path, cache: Path, of: Callable[[Path], Planned], target: str
) -> None:
    plan, made = of(tmp_path).plan, Made(target, read_device(CARD))
    (program,) = build_programs(plan, [(plan.roles[0], made)], CONTENT, cache)
    segments = read_image(program.data).segments
    held = sum(segment.memory_size for segment in segments if segment.kind == "PT_LOAD")
    demanded = demand(plan, plan.roles[0], made.device)
    assert held <= demanded.static <= held + SLACK, (held, demanded)


def test_a_demand_is_told_line_by_line(tmp_path: Path) -> None:
    plan = star(tmp_path).plan
    root, idle, worker = (demand(plan, role) for role in plan.roles)
    assert root.role == "root"
    for each in (root, idle, worker):
        assert each.total == sum(line.bytes for line in each.lines)
        assert len({line.what for line in each.lines}) == len(each.lines)
    lines = {line.what: line for line in worker.lines}
    assert (lines["samples"].formula, lines["samples"].bytes) == ("3 rows x 4 words x 8 bytes", 96)
    assert lines["parameters and state held"].bytes == 6 * WORD
    # [0.25, 0.25, -0.5] and zeros: three runs, and room for one that is empty
    assert lines["initial state"].formula == "4 runs of equal words x 16 bytes"
    assert worker.persistent == (3 * 4 + 6) * WORD


def test_a_role_holds_a_window_for_each_neighbour(tmp_path: Path) -> None:
    shared_out = Ownership("replicated", "partitioned", "partitioned")
    plan = replace(star(tmp_path).plan, ownership=shared_out)
    root, idle, worker = (
        {line.what: line.bytes for line in demand(plan, role).lines}["windows"] for role in plan.roles
    )
    assert (root, idle, worker) == tuple(n * plan.system.combined_words * WORD for n in (3, 1, 1))


def test_a_role_of_a_star_that_adds_whole_sums_holds_what_waits_of_the_others(tmp_path: Path) -> None:
    plan = star(tmp_path).plan
    for role in plan.roles:
        lines = {line.what: line.bytes for line in demand(plan, role).lines}
        assert "windows" not in lines
        assert lines["inbox of a mesh"] == 2 * plan.system.combined_words * WORD


def test_what_is_partitioned_is_held_by_its_owners(tmp_path: Path) -> None:
    plan = replace(star(tmp_path).plan, ownership=Ownership("partitioned", "partitioned", "partitioned"))
    for role in plan.roles:
        held = demand(plan, role)
        lines = {line.what: line for line in held.lines}
        assert lines["parameters and state held"].formula == "2 of 6 words x 8 bytes"
        assert lines["read replica, in a round"].bytes == 3 * WORD
        assert held.persistent == (role.samples * 4 + 2) * WORD
        assert held.total == held.static + 3 * WORD
