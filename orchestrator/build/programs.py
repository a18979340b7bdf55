"""A system's programs as one role runs them: where their names lie, and the C of each.

Knows the plan's kinds and where a role keeps its words; knows no template and no file. Of a system whose
owners have columns all of it is of the role's own coordinates: columns, parameters, what a sample does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from orchestrator.build.expressions import Apart, Place, statements
from orchestrator.plan.apart import own_names, own_sample_names
from orchestrator.plan.model import Field, Plan, Role
from orchestrator.plan.ownership import Part, part


def programs(plan: Plan, role: Role) -> dict[str, object]:
    """What the template says of a role's programs: their lines, and how many words they need."""
    system = plan.system
    sums = own_sums(plan, role)
    return {
        "terms": _terms(plan, role),
        "update": statements(system.update, _update_places(plan, role), _apart(plan, role)),
        "forward": _forward(plan, role),
        "forward_count": len(system.forward),
        "local": _local(plan, role),
        "is_local": int(bool(system.local)),
        "sum_words": sum(sums),
        "term_words": sum(sums) + len(system.results),
    }


def own_means_of(plan: Plan, role: Role) -> tuple[Part, ...]:
    """Of each contribution field the coordinates whose totals a role receives."""
    count = len(plan.roles)
    if plan.system.has_own_rows and plan.ownership.gradients == "partitioned":
        return tuple(plan.ownership.owned(f.size, role.index, count) for f in plan.system.contributions)
    return tuple(part(0, 1, field.size) for field in plan.system.combined)


def own_sums(plan: Plan, role: Role) -> tuple[int, ...]:
    """Of each contribution field the words that a role sums over its samples."""
    system = plan.system
    if system.has_own_rows:
        return tuple(field.size for field in system.contributions)
    own = own_sample_names(system)
    return tuple(
        _owned(plan, role, field.size).count if field.name in own else field.size
        for field in system.contributions
    )


def _owned(plan: Plan, role: Role, size: int) -> Part:
    return plan.ownership.owned(size, role.index, len(plan.roles))


def _apart(plan: Plan, role: Role, own: frozenset[str] | None = None) -> Apart | None:
    if not plan.ownership.is_partitioned:
        return None
    return Apart(own_names(plan.system) if own is None else own, lambda size: _owned(plan, role, size))


def _places(
    array: str, fields: Iterable[Field], counts: Sequence[int], prefix: str = "", first: int = 0
) -> dict[str, Place]:
    """Fields one after the other in an array; compact where a role has fewer words than there are."""
    places = accumulate(counts, initial=first)
    return {
        prefix + field.name: Place(array, at, is_compact=count != field.size)
        for field, count, at in zip(fields, counts, places, strict=False)
    }


def _held(plan: Plan, role: Role, fields: Iterable[Field]) -> tuple[int, ...]:
    return tuple(plan.held(field, role).count for field in fields)


def _columns(plan: Plan, role: Role) -> dict[str, Place]:
    fields = plan.system.sample
    return _places("sample", fields, [plan.columns(field, role).count for field in fields])


def _sampled(plan: Plan, role: Role) -> dict[str, Place]:
    """Where a program over one sample finds parameters and columns."""
    fields = plan.system.parameters
    is_whole = plan.system.has_own_rows  # then a replica has every parameter
    counts = [field.size for field in fields] if is_whole else _held(plan, role, fields)
    return {**_places("parameters", fields, counts), **_columns(plan, role)}


def _terms(plan: Plan, role: Role) -> tuple[str, ...]:
    system = plan.system
    sums = own_sums(plan, role)
    places = {
        **_sampled(plan, role),
        **{each.target: Place("forward", at * system.rows) for at, each in enumerate(system.forward)},
        **_places("terms", system.contributions, sums),
        **{name: Place("terms", sum(sums) + at) for at, name in enumerate(system.results)},
    }
    program = system.contribution + system.evaluate
    if system.has_own_rows:
        return statements(program, places)
    apart = _apart(plan, role, own_sample_names(system))
    return statements(program, places, apart, system.results if system.local else ())


def _forward(plan: Plan, role: Role) -> tuple[str, ...]:
    """Sums over own coordinates of one sample: one word of each row of `combined`."""
    program = plan.system.forward
    targets = {each.target: Place("combined", at * plan.system.rows) for at, each in enumerate(program)}
    apart = _apart(plan, role, own_sample_names(plan.system))
    return statements(program, {**_sampled(plan, role), **targets}, apart, targets)


def _local(plan: Plan, role: Role) -> tuple[str, ...]:
    fields = plan.system.state_fields
    places = {
        **_places("state", fields, _held(plan, role, fields)),
        **_columns(plan, role),
        "rate": Place("", 0, plan.system.rate),
    }
    return statements(plan.system.local, places, _apart(plan, role))


def _update_places(plan: Plan, role: Role) -> dict[str, Place]:
    system = plan.system
    fields = system.state_fields
    has_rows = system.has_own_rows
    means = [part.count for part in own_means_of(plan, role)] if has_rows else own_sums(plan, role)
    return {
        **_places("state", fields, _held(plan, role, fields)),
        **_places("mean", system.contributions, means, "mean_"),
        "rate": Place("", 0, system.rate),
    }
