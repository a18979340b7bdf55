"""Which roles are alike: consecutive ones that do and hold as much, with trees below them that do.

Knows the tree, rows and who owns how many words; must not know what is done with them. A plan has a few
classes for each level of its tree, however many roles it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from orchestrator.plan.model import Field, Plan
from orchestrator.plan.roles import Roles
from orchestrator.spec.repeated import Repeated, repeated


@dataclass(frozen=True)
class RoleClass:
    """Roles that are alike; two classes are equal where their roles are.

    Attributes:
        roles: their indices.
        level: how far below the root.
        children: of each.
        below: how many roles the tree of each has, itself among them.
        samples: rows of each.
        own: words of each state field, then of each contribution, that each owns; none where nothing is
            partitioned, since then nobody does otherwise for what he owns.
        own_below: the same of all roles in its tree together.
        values: of each in what else was looked at.
    """

    roles: range = field(compare=False)
    level: int
    children: int
    below: int
    samples: int
    own: tuple[int, ...]
    own_below: tuple[int, ...]
    values: tuple[object, ...]


def owned_below(plan: Plan, of: Field, role: int) -> int:
    """Words of a field that a role and all roles below it own."""
    if of.shared:
        return of.size if role == 0 else 0
    levels = plan.topology.below(role)
    return sum(plan.ownership.owned_by(of.size, level, len(plan.roles)) for level in levels)


def role_classes(plan: Plan, *columns: Repeated[object]) -> tuple[RoleClass, ...]:
    """All roles, in order, in classes; a class ends as well where a value of one of `columns` changes.

    Roles differ only where a number of rows, children or owned words does, in themselves or below them: only
    the roles on the way from the root to such places are looked at.
    """
    rows = _rows(plan)
    marks = {0, *rows.starts, *(start for column in columns for start in column.starts)}
    for place in _changes(plan):
        for role in plan.topology.path(place):
            marks |= {role, role + 1}
    starts = sorted(mark for mark in marks if mark < len(plan.roles))
    classes: list[RoleClass] = []
    for start, stop in zip(starts, (*starts[1:], len(plan.roles)), strict=True):
        values = tuple(column[start] for column in columns)
        found = _class(plan, range(start, stop), rows[start], values)
        if classes and classes[-1] == found:
            found = replace(found, roles=range(classes.pop().roles.start, stop))
        classes.append(found)
    return tuple(classes)


def _rows(plan: Plan) -> Repeated[int]:
    if not plan.system.has_own_rows:
        return Repeated(((plan.system.rows, len(plan.roles)),))
    if isinstance(plan.roles, Roles):
        return plan.roles.samples
    return repeated(((role.samples, 1) for role in plan.roles), int)


def _changes(plan: Plan) -> Iterator[int]:
    """Yields where levels of the tree begin, where it ends, and where roles own fewer or more words."""
    yield from (level.start for level in plan.topology.below(0))
    yield len(plan.roles)
    for size in {each.size for each in _fields(plan)}:
        yield from plan.ownership.changes(size, len(plan.roles))


def _fields(plan: Plan) -> tuple[Field, ...]:
    if not plan.ownership.is_partitioned:
        return ()
    return plan.system.state_fields + plan.system.contributions


def _class(plan: Plan, roles: range, rows: int, values: tuple[object, ...]) -> RoleClass:
    first = plan.roles[roles.start]
    return RoleClass(
        roles,
        level=len(plan.topology.path(first.index)) - 1,
        children=len(plan.topology.children(first.index)),
        below=sum(map(len, plan.topology.below(first.index))),
        samples=rows,
        own=tuple(plan.owned(each, first).count for each in _fields(plan)),
        own_below=tuple(owned_below(plan, each, first.index) for each in _fields(plan)),
        values=values,
    )
