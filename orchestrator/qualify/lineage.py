"""The reference's versions, one after another from a beginning, each computed once.

Lines of progress are kept for all of them; words, which may be many, only for those that judges ask for.
"""

from __future__ import annotations

from collections.abc import Container

from orchestrator.oracle.reference import Reference, Version, bits
from orchestrator.qualify.launch import ProgressLine


class Lineage:
    """Versions after a beginning.

    Args:
        reference: yields them.
        start: where they begin; None for the declared initial state.
        kept: numbers of those whose words are kept.
    """

    def __init__(self, reference: Reference, start: Version | None, kept: Container[int]) -> None:
        self._first = start.number if start else 0
        self._more = reference.versions(start)
        self._kept = kept
        self._lines: list[ProgressLine] = []
        self._versions: dict[int, Version] = {}

    def line(self, number: int) -> ProgressLine:
        """The line of `progress` of an update past the beginning.

        Raises:
            NonFiniteError: the declared arithmetic leaves the finite numbers before that.
        """
        while self._first + len(self._lines) < number:
            version = next(self._more)
            self._lines.append(ProgressLine(version.number, version.state, bits(version.results["loss"])))
            if version.number in self._kept:
                self._versions[version.number] = version
        return self._lines[number - self._first - 1]

    def version(self, number: int) -> Version:
        """A version whose words are kept.

        Raises:
            NonFiniteError: the declared arithmetic leaves the finite numbers before that.
        """
        self.line(number)
        return self._versions[number]
