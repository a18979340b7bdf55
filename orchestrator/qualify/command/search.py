"""Where two ways of running a program first part: found by halving, with launches of their own.

A pure function of what the launches before left: the acting side and the judge go through the same versions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from orchestrator.qualify.command import checks
from orchestrator.qualify.compose import Wanted
from orchestrator.qualify.launched import Launched
from orchestrator.qualify.view import View


def at(view: View, folder: str, name: str) -> Launched | None:
    """A launch of an attempt that may not be finished yet; None if it never began."""
    file = f"{folder}/{name}"
    return Launched(view, file) if view.bytes(f"{file}/launch.json") is not None else None


@dataclass(frozen=True)
class Search:
    """Two launches for each version that is looked at, until the first that differs is known.

    Attributes:
        view: the bundle.
        folder: of the attempt, as the manifest names it.
        low: a version at which both are the same.
        high: one at which they differ.
        pair: version -> the launch that is expected, and the one that is held against it.
    """

    view: View
    folder: str
    low: int
    high: int
    pair: Callable[[int], tuple[Wanted, Wanted]]

    def wanted(self) -> Iterator[Wanted]:
        """What is launched, each after what came before has been collected."""
        for version in self._versions():
            yield from self.pair(version)

    def found(self) -> tuple[int, str]:
        """The first version at which they differ and what differs; (0, "") if no launch shows it."""
        versions = self._versions()
        while True:
            try:
                next(versions)
            except StopIteration as end:
                answer: tuple[int, str] = end.value
                return answer

    def _versions(self) -> Generator[int, None, tuple[int, str]]:
        yield self.high
        low, high, said = self.low, self.high, self._difference(self.high)
        if not said:
            return 0, ""
        while high - low > 1:
            middle = (low + high) // 2
            yield middle
            found = self._difference(middle)
            if found is None:
                break
            low, high, said = (low, middle, found) if found else (middle, high, said)
        return high, said

    def _difference(self, version: int) -> str | None:
        left, right = (at(self.view, self.folder, wanted.name) for wanted in self.pair(version))
        return checks.same_state(left, right) if left is not None and right is not None else None
