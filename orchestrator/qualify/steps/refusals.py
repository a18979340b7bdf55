"""Refusal controls: experiments that must be refused, each by exactly its label, with nothing committed.

A short base run comes first: it publishes the checkpoint that the controls tamper with. Then the one control
that must not be refused: the same roles over words that show in which order they were added. A refusal proves
something only if its cause was in place, so what was launched is compared with what the control asks for.
"""

from __future__ import annotations

from orchestrator.qualify import controls
from orchestrator.qualify.checks import Check, Verdict, equal
from orchestrator.qualify.command import series
from orchestrator.qualify.controls import BASE, HOLDER, ORDER, PORT, Control
from orchestrator.qualify.counts import calls_as_counted, refused_calls
from orchestrator.qualify.device_controls import device_controls
from orchestrator.qualify.launch_checks import (
    as_asked,
    began,
    ended_well,
    executables,
    order_kept,
    refused,
    trained,
)
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.session import AttemptLostError
from orchestrator.qualify.view import View

NAME = "refusals"
DOES = "tampers with programs, checkpoints, data and ports, one at a time, after a base run of one update"
CHECKS = (
    "words that tell the declared order of additions from every other: they were added in it",
    "a program of another plan: frame-identity, on both sides",
    "a flipped byte in a checkpoint: checkpoint-chunk",
    "a missing shard: checkpoint-coverage",
    "a checkpoint of another system: checkpoint-system",
    "an altered data file: data-chunk",
    "a port in use: port-in-use",
    "of device roles: another UUID, no such minor, a program for another product: each by its label",
    "of stand-ins besides: a minor twice, no driver, no memory, a card lost: each by its label",
)


def act(launcher: Launcher) -> None:
    """The base run, then every control. Without a checkpoint to tamper with, the judge will say why."""
    if (plan := launcher.session.view.command) is not None:
        series.act(launcher, plan)
        return
    view = launcher.session.view
    launcher.run(controls.base())
    if len(view.roles) > 1 and view.planned.plan.system.bound is None:
        launcher.run(controls.order(view))
    checkpoint = view.checkpoint_files(f"{launcher.folder}/{BASE}", 1)
    for control in _applying(view) if checkpoint else ():
        if control is PORT:
            _port_in_use(launcher)
        else:
            launcher.run(control.asked(view, checkpoint, f"{launcher.folder}/{control.name}"))


def _applying(view: View) -> tuple[Control, ...]:
    return (*controls.applying(view), *device_controls(view))


def _port_in_use(launcher: Launcher) -> None:
    """A first root holds the port while a second one is started on it."""
    view = launcher.session.view
    held = launcher.begin(controls.holder(view))
    if not launcher.ended(PORT.name):
        if not launcher.listening(held, view.roles[0]):
            raise AttemptLostError("the port's holder ended before the control began")
        launcher.run(PORT.asked(view, {}, f"{launcher.folder}/{PORT.name}"), port_is_taken=True)
        if not launcher.running(held):
            raise AttemptLostError("the port's holder ended while the control ran")
    launcher.stop(held)
    launcher.finish(held)


def judge(view: View) -> tuple[Check, ...]:
    """The base run against the reference, then each control by its label."""
    if view.command is not None:
        return series.judge(view, view.command, NAME)
    folder = f"{view.attempt(NAME)}"
    launched, missing = began(view, NAME, BASE)
    checks = [*missing] if launched is None else [*trained(launched, controls.base(), first=1)]
    checks += _order(view) if len(view.roles) > 1 else ()
    checkpoint = view.checkpoint_files(f"{folder}/{BASE}", 1)
    for control in _applying(view) if checkpoint else ():
        if control is PORT:
            checks += _holder(view)
        launched, missing = began(view, NAME, control.name)
        checks += missing
        if launched is not None:
            wanted = control.asked(view, checkpoint, f"{folder}/{control.name}")
            checks += (as_asked(launched, wanted), executables(launched))
            labels = control.labels(view.planned.plan)
            checks.append(refused(launched, labels))
            checks += refused_calls(launched, labels)
    return tuple(checks)


def _order(view: View) -> tuple[Check, ...]:
    """The witness's totals came out as they do in the declared order, for every role and word."""
    if view.planned.plan.system.bound is not None:
        got = "an approximate system declares no order of additions"
        return (Check(f"{ORDER}-kept", Verdict.NOT_APPLICABLE, (), "the declared order", got),)
    launched, missing = began(view, NAME, ORDER)
    if launched is None:
        return missing
    wanted = controls.order(view)
    ended = ended_well(launched)
    checks = (as_asked(launched, wanted), executables(launched), ended)
    if ended.verdict is not Verdict.PASS:
        return checks
    return (*checks, order_kept(launched), *calls_as_counted(launched, wanted))


def _holder(view: View) -> tuple[Check, ...]:
    """The port was held: another root of this run listened on it."""
    launched, missing = began(view, NAME, HOLDER)
    if launched is None:
        return missing
    file = launched.file(view.roles[0], "listening")
    got = "it listened" if view.bytes(file) == b"" else "nothing listened"
    listened = equal("port-holder-listened", (file,), "it listened", got)
    return (as_asked(launched, controls.holder(view)), executables(launched), listened)
