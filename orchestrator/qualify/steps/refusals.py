"""Refusal controls: experiments that must be refused, each by exactly its label, with nothing committed.

A short base run comes first: it publishes the checkpoint that the controls tamper with.
"""

from __future__ import annotations

from orchestrator.plan.derive import other_plan
from orchestrator.qualify.checks import Check
from orchestrator.qualify.compose import Wanted, compose
from orchestrator.qualify.controls import (
    BASE,
    CHUNK,
    CONTROLS,
    COVERAGE,
    DATA,
    FRAME_IDENTITY,
    HOLDER,
    PORT,
    STEP,
    SYSTEM,
    tampered,
)
from orchestrator.qualify.launch import OTHER
from orchestrator.qualify.launch_checks import began, refused, right_bytes, trained
from orchestrator.qualify.launcher import Launcher, checkpoint_files
from orchestrator.qualify.session import AttemptLostError
from orchestrator.qualify.tamper import alter_samples, drop_shard, flip_shard_byte, other_system
from orchestrator.qualify.view import View

NAME = STEP
DOES = "tampers with programs, checkpoints, data and ports, one at a time, after a base run of one update"
CHECKS = (
    "a program of another plan: frame-identity, on both sides",
    "a flipped byte in a checkpoint: checkpoint-chunk",
    "a missing shard: checkpoint-coverage",
    "a checkpoint of another system: checkpoint-system",
    "an altered data file: data-chunk",
    "a port in use: port-in-use",
)


def act(launcher: Launcher) -> None:
    """The base run, then every control."""
    session = launcher.session
    roles = session.role_names
    launcher.run(compose(session, Wanted(BASE, epoch=1, target=1)))
    base = checkpoint_files(session.bundle, launcher.attempt.folder / BASE, roles, 1)
    if not base:
        return  # the judge will say what the base run did instead; there is nothing to tamper with
    if len(roles) > 1:
        launcher.run(
            compose(session, Wanted(FRAME_IDENTITY.name, epoch=1, target=1, programs={roles[-1]: OTHER}))
        )
    folder = launcher.attempt.folder
    restores = {
        CHUNK: flip_shard_byte(session.bundle, base, folder / CHUNK.name),
        COVERAGE: drop_shard(base),
        SYSTEM: other_system(
            session.bundle, other_plan(session.planned), session.run_id, folder / SYSTEM.name
        ),
    }
    for control, restore in restores.items():
        launcher.run(compose(session, Wanted(control.name, epoch=2, target=2, restore=restore)))
    samples = alter_samples(
        session.bundle, folder / DATA.name, {role: session.samples(role) for role in roles}
    )
    launcher.run(compose(session, Wanted(DATA.name, epoch=1, target=1, samples=samples)))
    if len(roles) > 1:
        _port_in_use(launcher, roles[0])


def _port_in_use(launcher: Launcher, root: str) -> None:
    """A first root holds the port, waiting for peers that never come, while a second one is started on it."""
    session = launcher.session
    holder = launcher.begin(compose(session, Wanted(HOLDER, epoch=1, target=1, roles=(root,))))
    if not launcher.ended(PORT.name):
        if not launcher.listening(holder, root):
            raise AttemptLostError("the port's holder ended before the control began")
        port = holder.starts[0].binding.port
        contender = compose(session, Wanted(PORT.name, epoch=1, target=1, roles=(root,), port=port))
        launcher.run(contender, port_is_taken=True)
        if not launcher.running(holder):
            raise AttemptLostError("the port's holder ended while the control ran")
    launcher.stop(holder)
    launcher.finish(holder)


def judge(view: View) -> tuple[Check, ...]:
    """The base run against the reference, then each control by its label."""
    checks: list[Check] = []
    base, missing = began(view, NAME, BASE)
    checks += missing
    if base is not None:
        checks += trained(base, epoch=1, first=1, last=1)
    for control in CONTROLS:
        if len(view.roles) == 1 and control in (FRAME_IDENTITY, PORT):
            continue
        launched, missing = began(view, NAME, control.name)
        checks += missing
        if launched is not None:
            checks += right_bytes(launched, {"mode": "train"})
            checks.append(refused(launched, control.labels(view.roles)))
    checks += tampered(view)
    return tuple(checks)
