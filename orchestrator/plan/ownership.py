"""Who holds and may change which words.

Every coordinate of a field has one owner. A *replicated* part of the state is held by every role as well; of
a *partitioned* part a role holds its own coordinates alone. *Shared* words are each role's own to compute:
they depend on no contribution, so that all roles come to the same bits without a word between them.

Where nothing is partitioned every role computes every word. Where anything is, a role computes its own
coordinates alone, and what is replicated is assembled afterwards by selection: every word from its owner,
none by arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

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

    def owned(self, size: int, role: int, roles: int) -> Part:
        """The coordinates of a field of `size` words that belong to a role of `roles`."""
        if self.ranges:
            own = self.ranges[role]
            return part(own.start, 1, min(own.stop, size) - min(own.start, size))
        return part(role, roles, max(0, -(-(size - role) // roles)))

    def owner(self, coordinate: int, roles: int) -> int:
        """The role that a coordinate belongs to.

        Raises:
            LookupError: declared ranges leave it out.
        """
        if not self.ranges:
            return coordinate % roles
        for role, own in enumerate(self.ranges):
            if coordinate in own:
                return role
        raise LookupError(f"coordinate {coordinate} has no owner")

    def as_json(self) -> dict[str, object]:
        """As in a plan."""
        dealt: object = [[own.start, own.stop] for own in self.ranges] if self.ranges else "modulo"
        return {
            "parameters": self.parameters,
            "optimizer_state": self.optimizer_state,
            "gradients": self.gradients,
            "coordinates": dealt,
        }
