"""The refusal controls that every run has: what each asks for, and what each role must say of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.errors import Label
from orchestrator.plan.model import Plan
from orchestrator.qualify.compose import Wanted
from orchestrator.qualify.launch import OTHER, WITNESS, Launch
from orchestrator.qualify.tamper import alter_samples, drop_shard, flip_shard_byte, other_system
from orchestrator.qualify.view import View

BASE, ORDER, HOLDER = "base", "order", "port-holder"
Checkpoint = Mapping[str, str]


@dataclass(frozen=True)
class Control:
    """One experiment.

    Attributes:
        name: of its launch.
        asked: bundle, the base run's checkpoint, folder of the launch -> what is launched.
        labels: plan of the run -> what each role that takes part must say.
        needs_peers: whether a run of one role leaves it out.
    """

    name: str
    asked: Callable[[View, Checkpoint, str], Wanted]
    labels: Callable[[Plan], Mapping[str, str]]
    needs_peers: bool = False


def base() -> Wanted:
    """The run whose checkpoint the controls tamper with."""
    return Wanted(BASE, epoch=1, target=1)


def order(view: View) -> Wanted:
    """One update over the witness's words: its totals are what they are in the declared order alone."""
    return Wanted(ORDER, epoch=1, target=1, programs=dict.fromkeys(view.roles, WITNESS))


def holder(view: View) -> Wanted:
    """A root that binds its port and waits for peers that never come."""
    return Wanted(HOLDER, epoch=1, target=1, roles=view.roles[:1])


def applying(view: View) -> tuple[Control, ...]:
    """The controls that a run of these roles can have."""
    return tuple(control for control in CONTROLS if len(view.roles) > 1 or not control.needs_peers)


def _everyone(label: Label) -> Callable[[Plan], Mapping[str, str]]:
    return lambda plan: {role.name: label for role in plan.roles}


def _mismatched_edge(plan: Plan) -> Mapping[str, str]:
    """The alien and its parent say what is wrong; the others only see a peer go."""
    last = len(plan.roles) - 1
    ends = (last, plan.topology.parent(last))
    return {role.name: Label.FRAME_IDENTITY if role.index in ends else Label.PEER_LOST for role in plan.roles}


def _another_plan(view: View, _base: Checkpoint, folder: str) -> Wanted:
    return Wanted(_name(folder), epoch=1, target=1, programs={view.roles[-1]: OTHER})


def _changed_shard(view: View, base: Checkpoint, folder: str) -> Wanted:
    restore, placed = flip_shard_byte(view, base, folder)
    return Wanted(_name(folder), epoch=2, target=2, restore=restore, placed=placed)


def _missing_shard(_view: View, base: Checkpoint, folder: str) -> Wanted:
    return Wanted(_name(folder), epoch=2, target=2, restore=drop_shard(base))


def _another_system(view: View, _base: Checkpoint, folder: str) -> Wanted:
    restore, placed = other_system(view, folder)
    return Wanted(_name(folder), epoch=2, target=2, restore=restore, placed=placed)


def _changed_samples(view: View, _base: Checkpoint, folder: str) -> Wanted:
    samples, placed = alter_samples(view, folder)
    return Wanted(_name(folder), epoch=1, target=1, samples=samples, placed=placed)


def _held_port(view: View, _base: Checkpoint, folder: str) -> Wanted:
    """A second root on the port that the holder's launch wrote down."""
    held = Launch.read((view.bundle / folder).parent / HOLDER)
    return Wanted(_name(folder), epoch=1, target=1, roles=view.roles[:1], port=held.starts[0].bound.port)


def _name(folder: str) -> str:
    return folder.rpartition("/")[2]


PORT = Control(
    "port-in-use", _held_port, lambda plan: {plan.roles[0].name: Label.PORT_IN_USE}, needs_peers=True
)
CONTROLS = (
    Control("frame-identity", _another_plan, _mismatched_edge, needs_peers=True),
    Control("checkpoint-chunk", _changed_shard, _everyone(Label.CHECKPOINT_CHUNK)),
    Control("checkpoint-coverage", _missing_shard, _everyone(Label.CHECKPOINT_COVERAGE)),
    Control("checkpoint-system", _another_system, _everyone(Label.CHECKPOINT_SYSTEM)),
    Control("data-chunk", _changed_samples, _everyone(Label.DATA_CHUNK)),
    PORT,
)
