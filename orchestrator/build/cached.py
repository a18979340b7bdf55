"""Programs by their tasks: kept ones as they are, all others compiled side by side and kept.

Knows a cache and a compiler; must not know what is compiled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from orchestrator.build.compiler import Task, compile_all, identity
from orchestrator.build.kept import keep, recall


def go_on() -> None:
    """Nobody asks to stop."""


def build_all(
    tasks: Sequence[Task], cache: Path | None, workers: int | None = None, check: Callable[[], None] = go_on
) -> tuple[bytes, ...]:
    """The programs, in the order of their tasks.

    Args:
        tasks: what to make.
        cache: where programs are kept; None keeps nothing, and one that cannot be used is as none.
        workers: how many compilers may run at once; as many as there are processors if None.
        check: asked again and again while they run; what it raises ends them.

    Raises:
        RefusedError: `compiler` with what the compiler said.
        UndecidedError: the compiler cannot be started, was ended by a signal, or did not end in time.
    """
    keys = [identity(task) for task in tasks]
    kept = {key: data for key in keys if cache is not None and (data := recall(cache, key)) is not None}
    missing = {key: task for key, task in zip(keys, tasks, strict=True) if key not in kept}
    built = compile_all(tuple(missing.values()), workers or os.cpu_count() or 1, check)
    for key, data in zip(missing, built, strict=True):
        kept[key] = data
        if cache is not None:
            keep(cache, key, data)
    return tuple(kept[key] for key in keys)
