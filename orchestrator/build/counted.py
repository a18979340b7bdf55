"""What a device role asks of its card in one start: launches, bytes each way, bytes allocated.

Knows the order in which `roles/native/learner_device.c` works; must not know what a card answers. The program
counts for itself, and a judge holds its counts against these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from orchestrator.build.kernels import Kernels
from orchestrator.plan.model import Plan, Role
from orchestrator.plan.places import extents
from orchestrator.plan.resident import buffers, replica_words


@dataclass(frozen=True)
class Counted:
    """What a role does with its card.

    Attributes:
        launches: kernels started.
        to_device: bytes copied to the card.
        from_device: bytes copied from it.
        allocated: bytes of its memory.
    """

    launches: int
    to_device: int
    from_device: int
    allocated: int


def counted(
    plan: Plan, role: Role, kernels: Kernels, *, mode: Literal["train", "evaluate"], updates: int
) -> Counted:
    """What one start of a role comes to.

    Args:
        plan: what it computes.
        role: which one it is.
        kernels: its kernels.
        mode: whether it updates the state, or evaluates it once.
        updates: how often it does; 0 in an evaluation.
    """
    words, size = extents(plan, role), plan.system.word.size
    rounds = updates if mode == "train" else 1
    captures = updates if mode == "train" else 1
    launched = [kernels.forward, kernels.terms, kernels.sums]
    up = rounds * replica_words(plan, words)
    down = rounds * words.terms if kernels.terms else 0
    if kernels.forward:
        up += rounds * words.total
        down += rounds * words.samples * len(plan.system.forward)
    if plan.system.has_own_rows:
        up += updates * words.total
    up += updates * _assembled(plan)
    return Counted(
        launches=rounds * sum(threads > 0 for threads in launched) + updates * len(kernels.update),
        to_device=(words.held + words.samples * words.sample + up) * size,
        from_device=(down + captures * words.held) * size,
        allocated=sum(buffers(plan, role).values()),
    )


def _assembled(plan: Plan) -> int:
    """Words that all roles hold and one computes: after an update they come from their owners."""
    if not plan.ownership.is_partitioned:
        return 0
    fields = plan.system.state_fields
    return sum(field.size for field in fields if not field.shared and not plan.is_partitioned(field))
