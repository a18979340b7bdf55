"""A Remote that does not take a lost connection for a lost node: it asks again until the grace is over.

Every request of a Remote may be made again: a start knows its folder, a file goes through a temporary name.
Knows nothing of how a node is reached; the Remote inside connects anew when it is asked.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from orchestrator.remote.around import Around
from orchestrator.remote.base import NodeLostError, Remote, UnreachableError

T = TypeVar("T")
Journal = Callable[[str, Mapping[str, Any]], None]
Wait = Callable[[float], None]

SLICE_S = 0.2

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0


class Retrying(Around):
    """Asks again, after pauses with jitter, for as long as the node has not been silent for its grace.

    The grace counts from the last good answer; a node that nobody asked meanwhile has it from the request on.
    Once a node is lost, each further request is one try: whoever goes on to collect from the others does not
    wait the grace again.

    Args:
        inner: raises UnreachableError where there is no way to the node now.
        journal: gets `remote.unreachable`, `remote.reachable` and `remote.lost`, once per outage; from any
            thread that asks.
        wait: sleeps, for at most 0.2 s at a time; what it raises ends the request.
        grace_s: seconds without a good answer after which the node is lost.
    """

    def __init__(self, inner: Remote, *, journal: Journal, wait: Wait, grace_s: float) -> None:
        super().__init__(inner)
        self._journal = journal
        self._wait = wait
        self._grace_s = grace_s
        self._lock = threading.Lock()
        self._heard = time.monotonic()
        self._out_since: float | None = None
        self._tries = 0
        self._is_lost = False

    def _ask(self, what: str, request: Callable[[], T]) -> T:
        asked = time.monotonic()
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                answer = request()
            except UnreachableError as error:
                left_s = self._missed(what, asked, error)
                self._pause(min(left_s, pause_s * random.uniform(0.5, 1.0)))  # noqa: S311  # jitter is no secret
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            else:
                self._answered()
                return answer

    def _missed(self, what: str, asked: float, error: UnreachableError) -> float:
        """Notes a request that reached nobody; gives the seconds of grace that are left.

        Raises:
            NodeLostError: none are.
        """
        with self._lock:
            now = time.monotonic()
            self._tries += 1
            if self._out_since is None:
                self._out_since = asked
                self._journal("remote.unreachable", {"node": self.name, "what": what, "why": str(error)})
            silent_s = now - max(self._heard, asked)
            if not self._is_lost and silent_s < self._grace_s:
                return self._grace_s - silent_s
            out_s = now - self._out_since
            if not self._is_lost:
                self._is_lost = True
                outage = {"node": self.name, "elapsed_ms": round(1000 * out_s), "tries": self._tries}
                self._journal("remote.lost", {**outage, "why": str(error)})
            cause = error.cause.removeprefix(f"{self.name}: ")  # one refusal, one label, one way out
            raise NodeLostError(
                f"{self.name}: no answer for {out_s:.0f} s"
                f" (got `{cause}`, expected one within the {self._grace_s:g} s of `deadlines: unreachable`)"
            ) from error

    def _answered(self) -> None:
        with self._lock:
            self._heard = time.monotonic()
            if self._out_since is not None:
                elapsed_ms = round(1000 * (self._heard - self._out_since))
                outage = {"node": self.name, "elapsed_ms": elapsed_ms, "tries": self._tries}
                self._out_since, self._tries, self._is_lost = None, 0, False
                self._journal("remote.reachable", outage)

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left_s := end - time.monotonic()) > 0:
            self._wait(min(left_s, SLICE_S))
