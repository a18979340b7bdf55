"""A system's programs as one role runs them, in C: what the template says of them.

Knows which programs there are; where their names lie is `orchestrator.plan.places`' to say.
"""

from __future__ import annotations

from orchestrator.build.expressions import statements
from orchestrator.plan.model import Plan, Role
from orchestrator.plan.places import forward_program, local_program, terms_program, update_program


def programs(plan: Plan, role: Role) -> dict[str, object]:
    """The lines of a role's programs."""
    return {
        "terms": statements(terms_program(plan, role)),
        "update": statements(update_program(plan, role)),
        "forward": statements(forward_program(plan, role)),
        "local": statements(local_program(plan, role)),
    }
