"""Work on several nodes at once, in order on each, with a look at the limits however long one of them takes.

A node that does not answer holds up its own work alone: whoever waits here comes back when a limit passes.
"""

from __future__ import annotations

import concurrent.futures
import queue
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from orchestrator.qualify.limits import Limits, StopLaneError
from orchestrator.remote.base import RemoteError, UnreachableError

T = TypeVar("T")
Task = tuple[str, Callable[[], T]]
_LOOK_S = 0.05


class Crew:
    """One worker for every node.

    Args:
        limits: what may end the lane meanwhile.
        far: whether nodes are reached over a network; else everything is done in turn by the caller, since
            nothing takes long.
    """

    def __init__(self, limits: Limits, *, far: bool) -> None:
        self._limits = limits
        self._far = far
        self._workers: dict[str, queue.SimpleQueue[Callable[[], None]]] = {}

    def each(self, tasks: Sequence[Task[T]]) -> list[T]:
        """Does all tasks, those of one node in order; their results in the tasks' order.

        Args:
            tasks: (node's name, what to do there).

        Raises:
            StopLaneError: the lane is to end now; what was begun goes on behind our back.
            RemoteError: the first, in the tasks' order, that one of them raised; all others were done.
        """
        if not self._far:
            return [do() for _, do in tasks]
        futures = [self._submit(node, do) for node, do in tasks]
        while concurrent.futures.wait(futures, timeout=_LOOK_S).not_done:
            self._limits.check()
        return [future.result() for future in futures]

    def settle(self, tasks: Sequence[Task[T]], patience_s: float) -> list[T | RemoteError]:
        """Does what can be done: results, and the errors of nodes that refuse or do not answer in time.

        Args:
            tasks: (node's name, what to do there).
            patience_s: for all of them together.
        """
        if not self._far:
            return [_tried(do) for _, do in tasks]
        futures = [self._submit(node, partial(_tried, do)) for node, do in tasks]
        until = time.monotonic() + patience_s
        while concurrent.futures.wait(futures, timeout=_LOOK_S).not_done and time.monotonic() < until:
            pass
        return [
            future.result()
            if future.done()
            else UnreachableError(f"{node}: no answer within {patience_s:g} s")
            for (node, _), future in zip(tasks, futures, strict=True)
        ]

    def _submit(self, node: str, do: Callable[[], T]) -> concurrent.futures.Future[T]:
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def work() -> None:
            try:
                future.set_result(do())
            except BaseException as error:  # noqa: BLE001  # it is raised where the result is asked for
                future.set_exception(error)

        if node not in self._workers:
            self._workers[node] = queue.SimpleQueue()
            threading.Thread(target=_serve, args=(self._workers[node],), name=node, daemon=True).start()
        self._workers[node].put(work)
        return future


def _serve(tasks: queue.SimpleQueue[Callable[[], None]]) -> None:
    while True:
        tasks.get()()


def _tried(do: Callable[[], T]) -> T | RemoteError:
    try:
        return do()
    except RemoteError as error:
        return error
    except StopLaneError as stop:  # a wait for a node that is out of reach ended with the lane
        return UnreachableError(str(stop))
