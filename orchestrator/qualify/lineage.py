"""The reference's versions, one after another from a beginning, each computed once.

Digests are kept for all of them; words, which may be many, only for those that judges ask for.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from orchestrator.oracle.reference import Reference, Version, bits, held_words, state_digest
from orchestrator.plan.model import Plan
from orchestrator.qualify.launch import ProgressLine


@dataclass(frozen=True)
class _Kept:
    """What stays of a version: its loss, and the digest of what each role holds; one where all hold all."""

    loss: str
    held: tuple[str, ...]


class Lineage:
    """Versions after a beginning.

    Args:
        plan: says what each role holds.
        reference: yields them.
        start: where they begin; None for the declared initial state.
        kept: numbers of those whose words are kept.
    """

    def __init__(self, plan: Plan, reference: Reference, start: Version | None, kept: Container[int]) -> None:
        self._plan = plan
        self._is_whole = not any(map(plan.is_partitioned, plan.system.state_fields))
        self._first = start.number if start else 0
        self._more = reference.versions(start)
        self._kept = kept
        self._made: list[_Kept] = []
        self._versions: dict[int, Version] = {}

    def line(self, number: int, role: int) -> ProgressLine:
        """The line of `progress` that a role writes after an update past the beginning.

        Raises:
            NonFiniteError: the declared arithmetic leaves the finite numbers before that.
        """
        while self._first + len(self._made) < number:
            version = next(self._more)
            self._made.append(_Kept(bits(version.results["loss"]), self._held(version)))
            if version.number in self._kept:
                self._versions[version.number] = version
        made = self._made[number - self._first - 1]
        return ProgressLine(number, made.held[0 if self._is_whole else role], made.loss)

    def version(self, number: int) -> Version:
        """A version whose words are kept.

        Raises:
            NonFiniteError: the declared arithmetic leaves the finite numbers before that.
        """
        self.line(number, 0)
        return self._versions[number]

    def _held(self, version: Version) -> tuple[str, ...]:
        if self._is_whole:
            return (version.state,)
        roles = self._plan.roles
        return tuple(state_digest(held_words(self._plan, role, version.words)) for role in roles)
