"""Who holds and may change which words.

Every coordinate of a field has one owner. A *replicated* part of the state is held by every role as well; of
a *partitioned* part a role holds its own coordinates alone. *Shared* words are each role's own to compute:
they depend on no contribution, so that all roles come to the same bits without a word between them.

Where nothing is partitioned every role computes every word. Where anything is, a role computes its own
coordinates alone, and what is replicated is assembled afterwards by selection: every word from its owner,
none by arithmetic.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal

from orchestrator.spec.repeated import Repeated, repeated

Holding = Literal["replicated", "partitioned"]


@dataclass(frozen=True)
class Part:
    """Coordinates `first`, `first + stride`, ... of a field: `count` of them, maybe none.

    The one form of no coordinates is `Part(0, 1, 0)`; of one coordinate or a contiguous run, stride 1.
    """

    first: int
    stride: int
    count: int

    @property
    def coordinates(self) -> range:
        """The coordinates, in order."""
        return range(self.first, self.first + self.stride * self.count, self.stride)

    def count_before(self, end: int) -> int:
        """How many of the coordinates are less than `end`."""
        return min(self.count, max(0, -(-(end - self.first) // self.stride)))


def part(first: int, stride: int, count: int) -> Part:
    """The part in its one form."""
    if count == 0:
        return Part(0, 1, 0)
    return Part(first, 1 if count == 1 else stride, count)


@dataclass(frozen=True)
class Ownership:
    """How each part of the state is held, and how coordinates are dealt out.

    Attributes:
        parameters: `replicated` or `partitioned`.
        optimizer_state: the same.
        gradients: the same: whether a role receives the totals of all coordinates, or of its own.
        ranges: for each role the contiguous coordinates [start, stop) that it owns of every field; empty
            where coordinate i belongs to role i mod n.
    """

    parameters: Holding
    optimizer_state: Holding
    gradients: Holding
    ranges: Sequence[range] = ()

    @property
    def is_partitioned(self) -> bool:
        """Whether a role computes its own coordinates alone."""
        return "partitioned" in (self.parameters, self.optimizer_state, self.gradients)

    @property
    def declared(self) -> int:
        """How many declared ranges own anything."""
        return len(self._claims)

    def owned(self, size: int, role: int, roles: int) -> Part:
        """The coordinates of a field of `size` words that belong to a role of `roles`."""
        if self.ranges:
            own = self.ranges[role]
            return part(own.start, 1, min(own.stop, size) - min(own.start, size))
        return part(role, roles, max(0, -(-(size - role) // roles)))

    def owned_by(self, size: int, some: range, roles: int) -> int:
        """How many words of a field of `size` belong to consecutive roles of `roles`, all together."""
        if self.ranges:
            return self._words_before(size, some.stop) - self._words_before(size, some.start)
        each, one_more = divmod(size, roles)
        return each * len(some) + max(0, min(some.stop, one_more) - min(some.start, one_more))

    def changes(self, size: int, roles: int) -> tuple[int, ...]:
        """The roles from which on a role may own another number of words of a field than the one before."""
        return self._runs.starts[:-1] if self.ranges else (size % roles,)

    def _words_before(self, size: int, role: int) -> int:
        """Words of a field of `size` that the roles before one own."""
        if size not in self._totals:
            within = ((min(own.stop, size) - min(own.start, size)) * count for own, count in self._runs.runs)
            self._totals[size] = tuple(accumulate(within, initial=0))
        # roles in a row that own the same own nothing, so that a run's total is reached at its first role
        return self._totals[size][bisect_left(self._runs.starts, role)]

    @cached_property
    def _totals(self) -> dict[int, tuple[int, ...]]:
        """By a field's size: the words of all runs of `ranges` before each one."""
        return {}

    @cached_property
    def _runs(self) -> Repeated[range]:
        """`ranges` by runs of roles that own the same: nothing, unless it is one role."""
        runs = self.ranges.runs if isinstance(self.ranges, Repeated) else [(own, 1) for own in self.ranges]
        return repeated(((own or range(0), count) for own, count in runs), lambda own: (own.start, own.stop))

    @cached_property
    def _claims(self) -> tuple[tuple[int, int, int], ...]:
        """Start, stop and role of every range that is not empty, by start."""
        runs = zip(self._runs.starts, self._runs.runs, strict=False)
        return tuple(sorted((own.start, own.stop, role) for role, (own, _) in runs if own))

    def owner(self, coordinate: int, roles: int) -> int:
        """The role that a coordinate belongs to.

        Raises:
            LookupError: declared ranges leave it out.
        """
        if not self.ranges:
            return coordinate % roles
        place = bisect_right(self._claims, coordinate, key=lambda claim: claim[0]) - 1
        if place < 0 or coordinate >= self._claims[place][1]:
            raise LookupError(f"coordinate {coordinate} has no owner")
        return self._claims[place][2]

    def as_json(self) -> dict[str, object]:
        """As in a plan; declared ranges as start, stop, and how many roles in a row have just these."""
        dealt: object = [[own.start, own.stop, count] for own, count in self._runs.runs] or "modulo"
        return {
            "parameters": self.parameters,
            "optimizer_state": self.optimizer_state,
            "gradients": self.gradients,
            "coordinates": dealt,
        }
