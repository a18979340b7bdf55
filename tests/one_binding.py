"""A binding that nothing is wrong with, for tests that need one or change a little of it."""

from __future__ import annotations

from orchestrator.build.binding import Binding

ONE_BINDING = Binding(
    plan="ab" * 32,
    run_id="01920000-0000-7000-8000-000000000001",
    epoch=1,
    mode="train",
    resume=False,
    restore_sha256=None,
    target=5,
    publish_at=0,
    data_sha256="cd" * 32,
    address="127.0.0.1",
    port=4000,
    connect_ms=1000,
    round_ms=2000,
    run_ms=3000,
    secret="5e" * 16,
)
