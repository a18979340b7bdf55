"""A system's three programs, typed: contribution, update, evaluate.

Who may read and write what (the seat of the rule that a contribution reads one version of the state):

* `contribution` reads parameters and one sample; writes locals, among them the contributions;
* `evaluate` goes on where `contribution` stopped, and assigns scalar results, `loss` among them;
* `update` reads parameters, state, `rate` and `mean_X` for every contribution X; writes parameters and state.

A name X is a contribution if and only if `update` reads `mean_X`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.errors import Label, Refusal
from orchestrator.plan import grammar, shapes
from orchestrator.plan.model import Field
from orchestrator.plan.tree import Assignment
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

    @property
    def results(self) -> tuple[str, ...]:
        """What evaluation yields: every name that `evaluate` assigns."""
        return tuple(statement.target for statement in self.evaluate)


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
    parameters = {field.name: field.size for field in spec.parameters}
    state = {field.name: field.size for field in spec.state}
    sample = {field.name: field.size for field in spec.sample}

    inner = shapes.Scope(
        {**parameters, **sample}, {}, why_not=_absent(state, "contributions read parameters and one sample")
    )
    contribution = out.program(spec.contribution, inner)
    locals_of_contribution = dict(inner.assigned)

    broken_means = {f"{MEAN}{name}" for name in inner.broken}
    scope = shapes.Scope(dict(inner.readable), {}, why_not=inner.why_not, broken=set(inner.broken))
    evaluate = out.program(spec.evaluate, scope)
    _check_results(out, spec, evaluate)

    contributions = _contributions(out, spec, contribution, locals_of_contribution)
    means = {f"{MEAN}{field.name}": field.size for field in contributions}
    readable = {**parameters, **state, "rate": 1, **means}
    not_here = _absent(sample, "an update reads means, not single samples")
    writable = {**parameters, **state}
    update = out.program(spec.update, shapes.Scope(readable, writable, why_not=not_here, broken=broken_means))
    if out.refusals:
        return None, tuple(sorted(out.refusals, key=lambda refusal: refusal.where))
    return Programs(contributions, contribution, update, evaluate), ()


def _absent(names: Mapping[str, int], reason: str) -> dict[str, str]:
    return dict.fromkeys(names, reason)


def _check_results(out: _Collector, spec: SystemSpec, evaluate: tuple[Assignment, ...]) -> None:
    if not spec.evaluate or len(evaluate) != len(spec.evaluate):
        return
    for number, assignment in enumerate(evaluate):
        if assignment.size != 1:
            out.refuse(
                Label.EXPRESSION_TYPE,
                spec.evaluate[number],
                "evaluation assigns scalars"
                f" (got {assignment.target} of {assignment.size} words, expected one word)",
            )
    if "loss" not in {assignment.target for assignment in evaluate}:
        shown = ", ".join(assignment.target for assignment in evaluate)
        out.refuse(
            Label.EXPRESSION_TYPE,
            spec.evaluate[0],
            f"evaluation assigns no loss (got {shown}, expected loss)",
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
