"""The reference of a plan by its kind: who has which samples, and what is added up over owners.

`data-parallel` is `orchestrator.oracle.reference` itself. Of the other kinds every owner has all samples, in
the columns of its own coordinates; what is said here of all coordinates at once is what each owner does with
its own.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable
from functools import reduce

from orchestrator.oracle.arithmetic import compile_statements
from orchestrator.oracle.reference import Reference, Version, finite, place, store_of
from orchestrator.plan.model import Field, Plan, Role
from orchestrator.plan.tree import Assignment, Dot, Sum, names

Column = list[float]


def reference_of(plan: Plan, words: array[float]) -> Reference:
    """The reference realization of a plan over its sample words."""
    kinds = {"data-parallel": Reference, "coordinate-owned": CoordinateOwned, "independent": Independent}
    return kinds[plan.system.kind](plan, words)


class _Columns(Reference):
    """What the kinds share whose owners have columns."""

    def _partial(self, statement: Assignment, role: Role) -> Column:
        """For each sample a sum over the role's own coordinates, from the first term on; of none +0.0."""
        plan = self._plan
        value = statement.value
        if not isinstance(value, Dot | Sum):
            raise TypeError(f"no sum over coordinates (got {value!r})")
        own = plan.ownership.owned(value.size, role.index, len(plan.roles))
        multiply = self._samples.each(operator.mul)
        terms: list[Column] = []
        for i in own.coordinates:
            first, *others = (self._inner[name][i] for name in names(value))
            terms.append(multiply(first, others[0]) if others else first)
        if not terms:
            return [0.0] * plan.system.rows
        return reduce(self._samples.each(operator.add), terms)

    def _mass(self, role: Role) -> float:
        """All samples are everyone's; they count once."""
        return float(self._plan.system.rows) if role.index == 0 else 0.0


class CoordinateOwned(_Columns):
    """Each owner has some coordinates of a linear predictor, and of every sample those columns.

    A round: every owner sums, for every sample, the terms of its own coordinates; these sums are combined up
    the tree and told to all. With them every owner computes the results and the contributions to its own
    coordinates, sample by sample from +0.0, and updates those. How the sums over coordinates are bracketed is
    the owners' to say: another number of owners is another order.
    """

    def contributions(self, version: Version) -> Callable[[Role], list[float]]:
        """Each owner's forward sums of every sample; no results, which all compute alike; mass."""
        system = self._plan.system
        place(self._inner, system.parameters, map(self._constant, version.words))

        def own(role: Role) -> list[float]:
            sums = [word for statement in system.forward for word in self._partial(statement, role)]
            return [*sums, *[0.0] * len(system.results), self._mass(role)]

        return own

    def _total(self, version: Version, number: int) -> list[float]:
        combined = super()._total(version, number)
        system = self._plan.system
        for at, statement in enumerate(system.forward):
            self._inner[statement.target][:] = [combined[at * system.rows : (at + 1) * system.rows]]
        self._run_samples(version)
        return finite(self._sums(range(system.rows)), number, "a sum over samples")


class Independent(_Columns):
    """Each coordinate goes from sample to sample by a rule of its own; only results are added up.

    A round: the results at the state that it reads, for every sample, each owner's sums over its own
    coordinates combined up the tree; then the local program, sample after sample in their order.
    """

    def __init__(self, plan: Plan, words: array[float]) -> None:
        super().__init__(plan, words)
        system = plan.system
        apart = tuple(each for each in system.evaluate if each.target not in system.results)
        self._sample_program = compile_statements(apart, self._inner, self._samples)
        self._sums_of_results = tuple(each for each in system.evaluate if each.target in system.results)
        self._fields: tuple[Field, ...] = system.state_fields + system.sample
        self._outer = store_of(self._fields, self._single)
        self._outer["rate"] = [system.rate]
        self._local_program = compile_statements(system.local, self._outer, self._single)
        width = system.sample_words
        self._rows = [words[at : at + width] for at in range(0, len(words), width)]

    def contributions(self, version: Version) -> Callable[[Role], list[float]]:
        """Each owner's results over its own coordinates, summed from +0.0 in sample order; mass."""
        self._run_samples(version)

        def own(role: Role) -> list[float]:
            partials = (self._partial(statement, role) for statement in self._sums_of_results)
            return [*(reduce(self._add, column, 0.0) for column in partials), self._mass(role)]

        return own

    def _advance(self, version: Version) -> Version:
        number = version.number + 1
        system = self._plan.system
        total = self._total(version, number)
        place(self._outer, system.state_fields, version.words)
        for row in self._rows:
            place(self._outer, system.sample, row)
            for step in self._local_program:
                step()
        words = array(system.word.typecode)
        for field in system.state_fields:
            words.extend(self._outer[field.name])
        return Version(number, finite(words, number, "the new state"), self._results(total))
