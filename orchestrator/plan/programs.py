"""A system's programs, typed: contribution, update, evaluate, and what its kind has besides or instead.

Who may read and write what (the seat of the rule that a contribution reads one version of the state):

* `contribution` reads parameters and one sample; writes locals, among them the contributions;
* `evaluate` goes on where `contribution` stopped, and assigns scalar results, `loss` among them;
* `update` reads parameters, state, `rate` and means `mean_X`; writes parameters and state;
* `forward`, of `coordinate-owned`, runs before `contribution`: each statement is one sum over coordinates;
* `local`, of `independent`, is all there is besides `evaluate`: it reads the state, `rate` and one sample and
  writes the state. `evaluate` then yields the sums over coordinates that it assigns.

A name X is a contribution if and only if `update` reads `mean_X`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from orchestrator.errors import Label, Refusal
from orchestrator.plan import grammar, shapes
from orchestrator.plan.model import Field
from orchestrator.plan.tree import Assignment, Dot, Sum, names
from orchestrator.plan.words import WORD_TYPES
from orchestrator.spec.system import Statement, SystemSpec

MEAN = "mean_"
_MEANS = re.compile(rf"\b{MEAN}(\w+)", re.ASCII)


@dataclass(frozen=True)
class Programs:
    """The typed programs of one system; `contributions` in order of assignment."""

    contributions: tuple[Field, ...]
    contribution: tuple[Assignment, ...]
    update: tuple[Assignment, ...]
    evaluate: tuple[Assignment, ...]
    results: tuple[str, ...]
    forward: tuple[Assignment, ...]
    local: tuple[Assignment, ...]


class _Collector:
    """Parses and types statements, keeping every refusal with its place."""

    def __init__(self) -> None:
        self.refusals: list[Refusal] = []

    def refuse(
        self, label: Label, statement: Statement, message: str, offset: int = 0, hint: str = ""
    ) -> None:
        self.refusals.append(Refusal(label, message, statement.at(offset), statement.key, hint))

    def program(self, statements: Iterable[Statement], scope: shapes.Scope) -> tuple[Assignment, ...]:
        typed = []
        for statement in statements:
            try:
                typed.append(shapes.shape(grammar.parse(statement.text), scope))
                continue
            except grammar.GrammarError as error:
                self.refuse(Label.EXPRESSION_SYNTAX, statement, str(error), error.offset)
            except shapes.ShapeError as error:
                self.refuse(Label.EXPRESSION_TYPE, statement, str(error), error.offset, error.hint)
            except shapes.BrokenError:
                pass
            if name := grammar.assigned_name(statement.text):
                scope.break_name(name)
        return tuple(typed)


def type_programs(spec: SystemSpec) -> tuple[Programs | None, tuple[Refusal, ...]]:
    """The typed programs, or every refusal that its statements earn (then the first value is None)."""
    out = _Collector()
    programs = _independent(out, spec) if spec.kind == "independent" else _of_contributions(out, spec)
    if out.refusals:
        return None, tuple(sorted(out.refusals, key=lambda refusal: refusal.where))
    return programs, ()


def _of_contributions(out: _Collector, spec: SystemSpec) -> Programs:
    """Of a system whose update reads means of what its samples contribute."""
    parameters = {field.name: field.size for field in spec.parameters}
    state = {field.name: field.size for field in spec.state}
    sample = {field.name: field.size for field in spec.sample}
    word = WORD_TYPES[spec.numerics]

    inner = shapes.Scope(
        {**parameters, **sample},
        {},
        why_not=_absent(state, "contributions read parameters and one sample"),
        word=word,
    )
    forward = out.program(spec.forward, inner)
    _check_sums(out, spec, spec.forward, forward)
    inner.assigned.clear()
    contribution = out.program(spec.contribution, inner)
    locals_of_contribution = dict(inner.assigned)

    broken_means = {f"{MEAN}{name}" for name in inner.broken}
    scope = shapes.Scope(dict(inner.readable), {}, why_not=inner.why_not, broken=set(inner.broken), word=word)
    evaluate = out.program(spec.evaluate, scope)
    _check_results(out, spec, evaluate, _results(evaluate, _is_assigned))

    contributions = _contributions(out, spec, contribution, locals_of_contribution)
    means = {f"{MEAN}{field.name}": field.size for field in contributions}
    readable = {**parameters, **state, "rate": 1, **means}
    not_here = _absent(sample, "an update reads means, not single samples")
    writable = {**parameters, **state}
    update = out.program(
        spec.update, shapes.Scope(readable, writable, why_not=not_here, broken=broken_means, word=word)
    )
    results = _results(evaluate, _is_assigned)
    return Programs(contributions, contribution, update, evaluate, results, forward, ())


def _independent(out: _Collector, spec: SystemSpec) -> Programs:
    """Of a system whose coordinates go by themselves from sample to sample."""
    parameters = {field.name: field.size for field in spec.parameters}
    state = {field.name: field.size for field in spec.state}
    sample = {field.name: field.size for field in spec.sample}
    word = WORD_TYPES[spec.numerics]
    own = {**parameters, **state}
    local = out.program(spec.local, shapes.Scope({**own, **sample, "rate": 1}, own, word=word))
    not_here = _absent(state, "evaluation reads parameters and one sample")
    evaluate = out.program(
        spec.evaluate, shapes.Scope({**parameters, **sample}, {}, why_not=not_here, word=word)
    )
    results = _results(evaluate, _is_sum)
    _check_results(out, spec, evaluate, results)
    if len(evaluate) == len(spec.evaluate):
        for statement, assignment in zip(spec.evaluate, evaluate, strict=True):
            if read := [name for name in names(assignment.value) if name in results]:
                message = f"{read[0]} is a sum over all owners' coordinates, and no owner has it"
                message += f" (got {read[0]} in {assignment.target}, expected other names)"
                out.refuse(Label.EXPRESSION_TYPE, statement, message)
    return Programs((), (), (), evaluate, results, (), local)


def _is_assigned(_: Assignment) -> bool:
    return True


def _is_sum(statement: Assignment) -> bool:
    """Whether it is one sum over coordinates, to which each owner can add those of its own."""
    return statement.size == 1 and isinstance(statement.value, Dot | Sum)


def _results(evaluate: tuple[Assignment, ...], counts: Callable[[Assignment], bool]) -> tuple[str, ...]:
    """What evaluation yields; where owners have their own coordinates alone, the sums over them."""
    return tuple(statement.target for statement in evaluate if counts(statement))


def _check_sums(
    out: _Collector, spec: SystemSpec, statements: tuple[Statement, ...], typed: tuple[Assignment, ...]
) -> None:
    """Each owner adds the terms of its own coordinates: such a statement is one sum of words with owners."""
    if len(statements) != len(typed):
        return
    fields = {field.name for field in spec.parameters if not field.shared}
    fields |= {column.name for column in spec.sample if column.size > 1}
    for statement, assignment in zip(statements, typed, strict=True):
        if not _is_sum(assignment) or not fields.issuperset(names(assignment.value)):
            out.refuse(
                Label.EXPRESSION_TYPE,
                statement,
                "a forward statement is one sum over coordinates"
                f" (got {statement.text.strip()}, expected {assignment.target} = dot(..) or sum(..)"
                f" of {', '.join(sorted(fields))})",
            )


def _absent(names: Mapping[str, int], reason: str) -> dict[str, str]:
    return dict.fromkeys(names, reason)


def _check_results(
    out: _Collector, spec: SystemSpec, evaluate: tuple[Assignment, ...], results: tuple[str, ...]
) -> None:
    if not spec.evaluate or len(evaluate) != len(spec.evaluate):
        return
    for number, assignment in enumerate(evaluate):
        if assignment.target in results and assignment.size != 1:
            out.refuse(
                Label.EXPRESSION_TYPE,
                spec.evaluate[number],
                "evaluation assigns scalars"
                f" (got {assignment.target} of {assignment.size} words, expected one word)",
            )
    if "loss" not in results:
        shown = ", ".join(results) or "no sum over coordinates"
        expected = "loss" if spec.kind != "independent" else "loss = dot(..) or sum(..)"
        out.refuse(
            Label.EXPRESSION_TYPE,
            spec.evaluate[0],
            f"evaluation assigns no loss (got {shown}, expected {expected})",
        )


def _contributions(
    out: _Collector, spec: SystemSpec, contribution: tuple[Assignment, ...], assigned: Mapping[str, int]
) -> tuple[Field, ...]:
    """Contributions in order of assignment; the mean of a name never assigned is refused by `update`."""
    # told from the text, so that a statement which cannot be parsed still uses what it names
    wanted = {name for statement in spec.update for name in _MEANS.findall(statement.text.rpartition("=")[2])}
    order = dict.fromkeys(assignment.target for assignment in contribution)
    found = tuple(Field(name, assigned[name]) for name in order if name in wanted)
    if not found and spec.contribution and len(contribution) == len(spec.contribution):
        expected = f"the update to read {MEAN}{next(iter(order))}"
        out.refuse(
            Label.EXPRESSION_TYPE,
            spec.contribution[-1],
            f"the update uses no contribution (got {', '.join(order)}, expected {expected})",
        )
    return found
