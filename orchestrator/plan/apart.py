"""Which names of an update have words that belong to one role each.

Knows the typed update; whether it may be computed apart at all is `orchestrator.plan.separability`'s to say.
"""

from __future__ import annotations

from orchestrator.plan.model import System
from orchestrator.plan.tree import Binary, Dot, Expression, Negate, Number, SquareRoot, Sum, Word


def own_names(system: System) -> frozenset[str]:
    """Fields that are not shared, means, and the temporaries that read any of them."""
    own = {field.name for field in system.state_fields if not field.shared}
    own |= {f"mean_{field.name}" for field in system.contributions}
    for assignment in system.update:
        if assignment.local and own.intersection(_names(assignment.value)):
            own.add(assignment.target)
    return frozenset(own)


def _names(node: Expression) -> tuple[str, ...]:
    match node:
        case Word(name, _) | Sum(name, _):
            return (name,)
        case Dot(left_name, right_name, _):
            return (left_name, right_name)
        case Binary(_, left, right):
            return _names(left) + _names(right)
        case Negate(operand) | SquareRoot(operand):
            return _names(operand)
        case Number():
            return ()
