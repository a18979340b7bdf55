"""Who takes part, in order: a sequence of roles that is never laid out.

Knows names and rows. Two hundred thousand workers of one node set with as many rows each are one piece, here
and in the plan's identity; the same roles have the same pieces, however they were written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import overload

from orchestrator.spec.names import Names, names_of
from orchestrator.spec.nodesets import fold
from orchestrator.spec.repeated import Repeated, repeated


@dataclass(frozen=True)
class Role:
    """One participant.

    Attributes:
        name: as declared.
        index: place in declaration order; 0 is the root.
        first_sample: its first row.
        samples: its rows; 0 is legal, such an owner contributes zeros and is counted.
    """

    name: str
    index: int
    first_sample: int
    samples: int


@dataclass(frozen=True)
class Piece:
    """Roles whose names are one block, with as many rows each; `first_sample` is the first one's."""

    names: str
    count: int
    first_sample: int
    samples: int


@dataclass(frozen=True)
class Roles(Sequence[Role]):
    """Roles by their names and how many rows each has; a role's rows follow those of the role before it."""

    names: Names
    samples: Repeated[int]

    @cached_property
    def _first_samples(self) -> tuple[int, ...]:
        """The first row of each run of `samples`."""
        return tuple(accumulate((rows * count for rows, count in self.samples.runs), initial=0))

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> Role: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Role, ...]: ...
    def __getitem__(self, index: int | slice) -> Role | tuple[Role, ...]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(*index.indices(len(self))))
        index = range(len(self))[index]
        return Role(self.names[index], index, self._first_sample(index), self.samples[index])

    def __iter__(self) -> Iterator[Role]:
        first = 0
        for index, (name, rows) in enumerate(zip(self.names, self.samples, strict=True)):
            yield Role(name, index, first, rows)
            first += rows

    def _first_sample(self, index: int) -> int:
        run = self.samples.run_at(index)
        before = index - self.samples.starts[run]
        return self._first_samples[run] + before * self.samples.runs[run][0]

    @property
    def pieces(self) -> Iterator[Piece]:
        """All roles, in order, in the fewest pieces."""
        bounds = sorted({*self.names.starts, *self.samples.starts})
        for start, stop in pairwise(bounds):
            names = self.names.text(start, stop)
            yield Piece(names, stop - start, self._first_sample(start), self.samples[start])


def role_named(roles: Sequence[Role], name: str) -> Role | None:
    """The role of a name, or None where there is none."""
    if isinstance(roles, Roles):
        return roles[roles.names.index(name)] if name in roles.names else None
    return next((role for role in roles if role.name == name), None)


def node_set(roles: Sequence[Role], some: range) -> str:
    """The names of consecutive roles, as a node set; empty for none."""
    if isinstance(roles, Roles):
        return roles.names.text(some.start, some.stop) if some else ""
    return fold(roles[index].name for index in some)


def roles_json(roles: Sequence[Role]) -> list[object]:
    """Roles as in a plan: node set, how many, the first one's first row, rows each."""
    pieces = roles.pieces if isinstance(roles, Roles) else _pieces(roles)
    return [list(astuple(piece)) for piece in pieces]


def _pieces(roles: Sequence[Role]) -> Iterator[Piece]:
    """The pieces of roles that were listed; where rows do not follow each other, another piece begins."""
    starts = [
        index
        for index, role in enumerate(roles)
        if index == 0 or role.first_sample != roles[index - 1].first_sample + roles[index - 1].samples
    ]
    for start, stop in pairwise((*starts, len(roles))):
        listed = roles[start:stop]
        rows = repeated(((role.samples, 1) for role in listed), int)
        for piece in Roles(names_of(role.name for role in listed), rows).pieces:
            yield replace(piece, first_sample=piece.first_sample + listed[0].first_sample)
