"""The combine tree: who talks to whom, in arithmetic on a role's index alone.

A pair and a star are the tree in which the root is everyone's parent; a hierarchy is the complete tree in
which role i's children are roles `k i + 1` to `k i + k`. Nothing here grows with the number of roles: what a
role needs to know of the others is bounded by the fan-out and the tree's depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["pair", "star", "hierarchy"]


@dataclass(frozen=True)
class Topology:
    """A shape over roles 0 (the root) to `roles` - 1.

    Attributes:
        kind: as declared.
        roles: how many there are.
        fan_out: most children of a role; of a pair or star, all roles but the root, and at least 1.
    """

    kind: Kind
    roles: int
    fan_out: int

    def parent(self, role: int) -> int | None:
        """The role that this one dials; None for the root."""
        return None if role == 0 else (role - 1) // self.fan_out

    def children(self, role: int) -> range:
        """The roles that dial this one, in the order in which their subtotals are added."""
        first = self.fan_out * role + 1
        return range(min(first, self.roles), min(first + self.fan_out, self.roles))

    def path(self, role: int) -> tuple[int, ...]:
        """From the root to the role, both among them."""
        found = [role]
        while (above := self.parent(found[-1])) is not None:
            found.append(above)
        return tuple(reversed(found))

    def below(self, role: int) -> tuple[range, ...]:
        """The role and all roles under it, as one range of indices for each level of the tree."""
        levels = []
        level = range(role, role + 1)
        while level:
            levels.append(level)
            first, last = self.fan_out * level.start + 1, self.fan_out * (level.stop - 1) + self.fan_out
            level = range(min(first, self.roles), min(last + 1, self.roles))
        return tuple(levels)

    def as_json(self) -> object:
        """As in a plan: a name, or a hierarchy with its fan-out."""
        return {"kind": self.kind, "fan_out": self.fan_out} if self.kind == "hierarchy" else self.kind

    def combine_json(self) -> dict[str, object]:
        """The order in which every word's contributions are added.

        `left-deep`: ((c0 + c1) + c2) + ... `tree`: a role's subtotal is its own contribution, then its
        children's subtotals added one by one in their order; the total is the root's.
        """
        if self.kind == "hierarchy":
            return {"kind": "tree", "fan_out": self.fan_out}
        return {"kind": "left-deep"}


def star(roles: int) -> Topology:
    """The topology of one root and everyone else; of one role too."""
    return Topology("pair" if roles == 2 else "star", roles, max(1, roles - 1))  # noqa: PLR2004  # a pair is two
