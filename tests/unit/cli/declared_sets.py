"""A small system whose states are written as checkpoint sets."""

from __future__ import annotations

from orchestrator.plan.model import Field, System

SYSTEM = System(
    name="set",
    kind="data-parallel",
    parameters=(Field("w", 3, (0.0,) * 3), Field("b", 1, (0.0,))),
    state=(Field("v", 4, (0.0,) * 4),),
    sample=(Field("x", 1),),
    contributions=(Field("g", 1),),
    contribution=(),
    update=(),
    evaluate=(),
    results=("loss",),
    rate=1.0,
    rows=1,
    samples_sha256="0" * 64,
    numerics="binary64-ordered",
)
WORDS = (1.0, -2.5, 3e-310, -0.0, 0.1, 4.0, 1e300, -7.0)
