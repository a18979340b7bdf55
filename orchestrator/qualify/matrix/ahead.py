"""Programs of cells that are to come, compiled while another runs: roles wait more than they compute.

Knows plans and the cache that a cell's build finds its programs in; must not know what became of them: a cell
builds what is not there, and says itself what cannot be built.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from orchestrator.build.compile import Made, build_programs
from orchestrator.errors import OrchError
from orchestrator.plan.model import Plan, Role

LOOK_S = 0.05
Pairings = tuple[tuple[Role, Made], ...]


class _LeftError(Exception):
    """Nobody needs the programs any more."""


class Ahead:
    """Compilers at work for the cells in their order; as a context, for as long as cells run.

    Args:
        wanted: cell -> its plan, and every program of it: role and what it is made for.
        content_root: the folder that holds `roles/`.
        cache: where programs are kept; None keeps nothing, and nothing is done ahead.
    """

    def __init__(
        self, wanted: Mapping[str, tuple[Plan, Pairings]], content_root: Path, cache: Path | None
    ) -> None:
        self._wanted = wanted if cache is not None else {}
        self._done = {cell: threading.Event() for cell in self._wanted}
        self._root, self._cache = content_root, cache
        self._is_left = False
        self._thread = threading.Thread(target=self._work, name="build-ahead", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_left = True
        self._thread.join()

    def wait(self, cell: str, check: Callable[[], None]) -> None:
        """Waits until this cell's programs have been tried.

        Args:
            cell: its name.
            check: asked again and again meanwhile; what it raises ends the wait.
        """
        while cell in self._done and not self._done[cell].wait(LOOK_S):
            check()

    def _work(self) -> None:
        for cell, (plan, pairings) in self._wanted.items():
            try:
                with suppress(OrchError, OSError):
                    # on every processor: where compiling is what takes the time, cells wait for it
                    build_programs(plan, pairings, self._root, self._cache, check=self._check)
            except _LeftError:
                return
            finally:
                self._done[cell].set()

    def _check(self) -> None:
        if self._is_left:
            raise _LeftError
