"""Building one role's program, beside the same compiler at a program of nothing; binding, beside a copy."""

from __future__ import annotations

import itertools
import shutil
import sys
from functools import partial
from pathlib import Path

from benchmarks.content import CONTENT, TARGET, Deployment, planned
from benchmarks.measure import Row, quietly, row, take_turns, timed
from orchestrator.build.bind import bind
from orchestrator.build.compile import Made, build_program

TURNS = 7
BINDS_A_TURN = 50
EMPTY = "void _start(void) { for (;;) ; }\n"


def run(folder: Path) -> tuple[Row, ...]:
    return *_builds(folder), _bind(folder)


def _builds(folder: Path) -> tuple[Row, ...]:
    cold, warm = "a role, empty cache", "a role, kept from before"
    empty_cold, empty_warm = "zig cc of nothing, empty cache", "zig cc of nothing, again"
    plan = planned("diabetes").plan
    role = plan.roles[-1]
    (folder / "empty.c").write_text(EMPTY)
    caches = (folder / f"cache-{number}" for number in itertools.count())
    kept, kept_empty = folder / "kept", folder / "kept-empty"
    build = partial(build_program, plan, role, Made(TARGET), CONTENT)
    build(kept)
    _compile_empty(folder, kept_empty)
    turns = take_turns(
        (
            timed(cold, lambda: build(next(caches))),
            timed(empty_cold, lambda: _compile_empty(folder, next(caches))),
            timed(warm, lambda: build(kept)),
            timed(empty_warm, lambda: _compile_empty(folder, kept_empty)),
        ),
        TURNS,
    )
    return row(turns, cold, empty_cold, "1 s"), row(turns, warm, empty_warm)


def _compile_empty(folder: Path, cache: Path) -> None:
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", TARGET]
    flags = ["-Os", "-ffreestanding", "-nostdlib", "-static", "-s", "empty.c", "-o", "empty"]
    where = str(cache)
    quietly([*compiler, *flags], folder, ZIG_GLOBAL_CACHE_DIR=where, ZIG_LOCAL_CACHE_DIR=where)


def _bind(folder: Path) -> Row:
    bound, copied = "binding a program", "copying its file"
    deployment = Deployment(planned("diabetes"), updates=1, port=20000)
    role = deployment.planned.plan.roles[-1]
    program = build_program(deployment.planned.plan, role, Made(TARGET), CONTENT, folder / "kept")
    binding = deployment.binding(role)
    source, target = folder / "program", folder / "executable"
    source.write_bytes(program.data)
    turns = take_turns(
        (
            timed(bound, lambda: target.write_bytes(bind(program, binding)), BINDS_A_TURN),
            timed(copied, lambda: shutil.copyfile(source, target), BINDS_A_TURN),
        ),
        TURNS,
    )
    return row(turns, bound, copied, "50 ms")
