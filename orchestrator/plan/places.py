"""Where the words of a system's names lie in one role, and which of them it computes.

Knows the plan's kinds and where a role keeps its words; knows no language that programs are written in. Of a
system whose owners have columns all of it is of the role's own coordinates: columns, parameters, what a
sample does.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from orchestrator.plan.apart import own_names, own_sample_names
from orchestrator.plan.model import Field, Plan, Role
from orchestrator.plan.ownership import Part, part
from orchestrator.plan.tree import Assignment, Dot, Sum


@dataclass(frozen=True)
class Place:
    """Where a name's words lie: `array[first]` and on; or one constant, if `array` is empty.

    Attributes:
        array: an array of the role's.
        first: where in it the name's words begin.
        constant: the word, where there is no array.
        is_compact: whether the array holds this role's own words alone.
    """

    array: str
    first: int
    constant: float = 0.0
    is_compact: bool = False


@dataclass(frozen=True)
class Apart:
    """How a program is run by one of several roles.

    Attributes:
        own: names whose words belong to one role each.
        part: of a name with so many words, the coordinates that this role computes.
    """

    own: frozenset[str]
    part: Callable[[int], Part]


@dataclass(frozen=True)
class Step:
    """One assignment as a role runs it.

    Attributes:
        assignment: what is assigned.
        part: the coordinates that it is for; None for all.
        is_partial: whether it is a sum over coordinates, of which the role adds those of the part alone.
    """

    assignment: Assignment
    part: Part | None
    is_partial: bool = False

    @property
    def count(self) -> int:
        """Words that it assigns."""
        return self.assignment.size if self.part is None or self.is_partial else self.part.count


@dataclass(frozen=True)
class Program:
    """Assignments as a role runs them, and where the names that outlast them lie; others are temporaries."""

    steps: tuple[Step, ...]
    places: Mapping[str, Place]


@dataclass(frozen=True)
class Extents:
    """How many words a role's arrays have.

    Attributes:
        held: its part of the state.
        samples: how many samples it has.
        sample: one of them.
        parameters: all parameters, as a replica has them.
        sums: what it adds up over its samples for means.
        terms: the same and the results.
        own_means: totals for means that it receives.
        total: those, the results and the mass.
    """

    held: int
    samples: int
    sample: int
    parameters: int
    sums: int
    terms: int
    own_means: int
    total: int


def extents(plan: Plan, role: Role) -> Extents:
    """The words of one role's arrays."""
    system = plan.system
    sums, means = sum(own_sums(plan, role)), sum(each.count for each in own_means_of(plan, role))
    return Extents(
        held=sum(_held(plan, role, system.state_fields)),
        samples=len(plan.rows(role)),
        sample=sum(_column_counts(plan, role)),
        parameters=sum(field.size for field in system.parameters),
        sums=sums,
        terms=sums + len(system.results),
        own_means=means,
        total=means + len(system.results) + 1,
    )


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


def _column_counts(plan: Plan, role: Role) -> tuple[int, ...]:
    return tuple(plan.columns(field, role).count for field in plan.system.sample)


def _columns(plan: Plan, role: Role) -> dict[str, Place]:
    return _places("sample", plan.system.sample, _column_counts(plan, role))


def _sampled(plan: Plan, role: Role) -> dict[str, Place]:
    """Where a program over one sample finds parameters and columns."""
    fields = plan.system.parameters
    is_whole = plan.system.has_own_rows  # then a replica has every parameter
    counts = [field.size for field in fields] if is_whole else _held(plan, role, fields)
    return {**_places("parameters", fields, counts), **_columns(plan, role)}


def _steps(
    program: Iterable[Assignment], apart: Apart | None = None, sums: Container[str] = ()
) -> Iterator[Step]:
    """The assignments as a role runs them; of those named in `sums` it adds its own terms alone."""
    for assignment in program:
        value = assignment.value
        if apart and assignment.target in sums and isinstance(value, Dot | Sum):
            yield Step(assignment, apart.part(value.size), is_partial=True)
        elif apart and assignment.target in apart.own:
            yield Step(assignment, apart.part(assignment.size))
        else:
            yield Step(assignment, None)


def terms_program(plan: Plan, role: Role) -> Program:
    """What one sample adds, in `terms`: contributions, then results; forward sums are read of `forward`."""
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
        return Program(tuple(_steps(program)), places)
    apart = _apart(plan, role, own_sample_names(system))
    return Program(tuple(_steps(program, apart, system.results if system.local else ())), places)


def forward_program(plan: Plan, role: Role) -> Program:
    """Sums over own coordinates of one sample: one word of each row of `combined`."""
    program = plan.system.forward
    targets = {each.target: Place("combined", at * plan.system.rows) for at, each in enumerate(program)}
    apart = _apart(plan, role, own_sample_names(plan.system))
    return Program(tuple(_steps(program, apart, targets)), {**_sampled(plan, role), **targets})


def local_program(plan: Plan, role: Role) -> Program:
    """What one sample does to the role's words of `state`."""
    places = {**_state_places(plan, role), **_columns(plan, role)}
    return Program(tuple(_steps(plan.system.local, _apart(plan, role))), places)


def update_program(plan: Plan, role: Role) -> Program:
    """What changes the role's words of `state`, from the means in `mean`."""
    system = plan.system
    means = [part.count for part in own_means_of(plan, role)] if system.has_own_rows else own_sums(plan, role)
    places = {**_state_places(plan, role), **_places("mean", system.contributions, means, "mean_")}
    return Program(tuple(_steps(system.update, _apart(plan, role))), places)


def _state_places(plan: Plan, role: Role) -> dict[str, Place]:
    fields = plan.system.state_fields
    held = _places("state", fields, _held(plan, role, fields))
    return {**held, "rate": Place("", 0, plan.system.rate)}
