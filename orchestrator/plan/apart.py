"""Which names of a program have words that belong to one role each.

Knows the typed programs; whether they may be computed apart is `orchestrator.plan.separability`'s to say.
"""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.plan.model import System
from orchestrator.plan.tree import Assignment, names


def own_names(system: System) -> frozenset[str]:
    """Of what changes the state: fields that are not shared, means, columns, and what is made of them."""
    own = {field.name for field in system.state_fields if not field.shared}
    if system.local:
        return _made_of(own | _columns(system), system.local)
    sampled = None if system.has_own_rows else own_sample_names(system)
    means = (field.name for field in system.contributions if sampled is None or field.name in sampled)
    return _made_of(own | {f"mean_{name}" for name in means}, system.update)


def own_sample_names(system: System) -> frozenset[str]:
    """Of what is computed over one sample, where owners have columns; results are everyone's."""
    own = {field.name for field in system.parameters if not field.shared} | _columns(system)
    return _made_of(own, system.contribution + system.evaluate).difference(system.results)


def _columns(system: System) -> set[str]:
    return {field.name for field in system.sample if field.size > 1}


def _made_of(own: set[str], program: Iterable[Assignment]) -> frozenset[str]:
    for assignment in program:
        if assignment.local and own.intersection(names(assignment.value)):
            own.add(assignment.target)
    return frozenset(own)
