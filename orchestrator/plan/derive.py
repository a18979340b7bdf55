"""RunSpec -> Plan: what the user declared, typed, with its identities.

Knows no machine. What the files mean alone is settled in `orchestrator.spec`; here stands what they mean
together, and what is not built yet is refused by name.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

from orchestrator.errors import Label, Refusal, RefusedError
from orchestrator.plan.command import CommandPlan, command_plan
from orchestrator.plan.model import Field, Plan, Role, System
from orchestrator.plan.ownership import Ownership
from orchestrator.plan.programs import Programs, type_programs
from orchestrator.plan.roles import Roles
from orchestrator.plan.rounding import rounding_refusals, sample_words, state_fields
from orchestrator.plan.separability import separability_refusals
from orchestrator.plan.topology import Topology, star
from orchestrator.plan.words import WORD_TYPES
from orchestrator.spec.data import read_samples
from orchestrator.spec.names import ByName
from orchestrator.spec.program import CommandRunSpec
from orchestrator.spec.run import Hierarchy, RunSpec
from orchestrator.spec.system import SystemSpec, header

if TYPE_CHECKING:  # files that a run need not name
    from orchestrator.spec.device import DeviceSpec
    from orchestrator.spec.lane import LaneSpec
    from orchestrator.spec.matrix import MatrixSpec

NATIVE_TARGETS = ("x86_64-linux", "aarch64-linux")
LEAST_CAPABILITY = (7, 5)
"""Compute capability from which on there are kernels."""


@dataclass(frozen=True)
class Planned:
    """A plan with the words that it was made over.

    Attributes:
        plan: the plan.
        words: every sample word, row by row.
        targets: role name -> target, in role order. Not part of the plan.
        devices: role name -> the profile of its card, None of a host role. Not part of the plan either.
    """

    plan: Plan
    words: array[float]
    targets: Mapping[str, str]
    devices: Mapping[str, DeviceSpec | None]

    def made_for(self, role: str) -> tuple[str, str | None]:
        """What a role's program is made for: target, and name of the card's profile or None."""
        device = self.devices[role]
        return self.targets[role], device.name if device else None

    def swapped(self, lane: LaneSpec | MatrixSpec) -> Planned:
        """The same plan, of programs as they are made for the resumed part of a lane's split run.

        Raises:
            RefusedError: `target-unsupported`: the lane swaps for what no program is built for.
        """
        if not lane.swap:
            return self
        targets = {role: lane.swap.get(target, target) for role, target in self.targets.items()}
        devices = {
            role: device and lane.profiles.get(lane.swap.get(device.name, ""), device)
            for role, device in self.devices.items()
        }
        refused = {
            device.name: lane.document.at(Label.TARGET_UNSUPPORTED, why, ("swap", before.name))
            for role, device in devices.items()
            if device and (before := self.devices[role]) and (why := unsupported(targets[role], device))
        }
        if refused:
            raise RefusedError(refused.values())
        return replace(self, targets=targets, devices=devices)

    def samples_of(self, role: Role) -> bytes:
        """The role's own samples as the file that travels beside its executable: little-endian words."""
        return encode(own_samples(self.plan, role, self.words))


def own_samples(plan: Plan, role: Role, words: array[float]) -> array[float]:
    """Of all sample words those that a role has, row by row."""
    rows, width = plan.rows(role), plan.system.sample_words
    if plan.system.has_own_rows:
        return words[rows.start * width : rows.stop * width]
    firsts = accumulate((field.size for field in plan.system.sample), initial=0)
    columns = [
        first + i
        for field, first in zip(plan.system.sample, firsts, strict=False)
        for i in plan.columns(field, role).coordinates
    ]
    return array(words.typecode, (words[row * width + column] for row in rows for column in columns))


def other_plan(planned: Planned) -> Planned:
    """Another plan for controls: the same roles and data under a system of half the rate. Sound in itself.

    A rate that is its own half (zero) becomes 1, so that the plan is another one whatever the rate was.
    """
    rate = planned.plan.system.rate
    half = rate / 2
    system = replace(planned.plan.system, rate=half if half != rate else 1.0)
    return replace(planned, plan=replace(planned.plan, system=system))


def encode(words: array[float]) -> bytes:
    """Words in the wire and file encoding: little-endian, on every controller."""
    if sys.byteorder == "little":
        return words.tobytes()
    swapped = array(words.typecode, words)
    swapped.byteswap()
    return swapped.tobytes()


def derive(run: RunSpec) -> Planned:
    """The plan of a run spec.

    Raises:
        RefusedError: with every refusal, in file order.
    """
    refusals = list(run_refusals(run))
    programs, found = type_programs(run.system)
    refusals += (*found, *rounding_refusals(run.system))
    if programs is not None and _ownership(run).is_partitioned:
        refusals += separability_refusals(run.system, programs)
    if refusals or programs is None:
        raise RefusedError(refusals)
    samples = read_samples(
        run.system.data, sum(size for _, size in run.system.sample), header(dict(run.system.sample))
    )
    words = sample_words(samples.words, WORD_TYPES[run.system.numerics], run.system.data)
    return Planned(
        Plan(
            system=_system(run.system, programs, words),
            roles=Roles(run.roles, run.samples),
            topology=_topology(run),
            ownership=_ownership(run),
        ),
        words,
        ByName(run.roles, run.targets),
        ByName(run.roles, run.devices),
    )


def plan_of(run: RunSpec | CommandRunSpec) -> Plan | CommandPlan:
    """The plan of a run spec of either sort.

    Raises:
        RefusedError: with every refusal, in file order.
    """
    return command_plan(run) if isinstance(run, CommandRunSpec) else derive(run).plan


def run_refusals(run: RunSpec) -> Iterable[Refusal]:
    """What a run spec asks for that no engine here realizes: refused by name, never done some other way."""
    for start, (pairing, count) in zip(run.pairings.starts, run.pairings.runs, strict=False):
        if why := unsupported(pairing.target, pairing.device):
            key = f"pairings.{run.roles.text(start, start + count)}"
            yield Refusal(Label.TARGET_UNSUPPORTED, why, pairing.where, key)


def unsupported(target: str, device: DeviceSpec | None) -> str:
    """Why no program is built for a target and a card's profile; empty where one is."""
    if target not in NATIVE_TARGETS:
        got, expected = target, f"one of {', '.join(NATIVE_TARGETS)}"
    elif device is None:
        return ""
    elif device.vendor != "nvidia":
        got, expected = f"{device.name} of vendor {device.vendor}", "a card of vendor nvidia"
    else:
        capability = device.facts["compute_capability"].value
        if isinstance(capability, str) and _numbers(capability) >= LEAST_CAPABILITY:
            return ""
        got = f"{device.name} of compute capability {capability or 'that is not known'}"
        expected = f"{'.'.join(map(str, LEAST_CAPABILITY))} or later"
    return f"no program is built for this pairing (got {got}, expected {expected})"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _system(spec: SystemSpec, programs: Programs, words: array[float]) -> System:
    word = WORD_TYPES[spec.numerics]
    return System(
        name=spec.name,
        kind=spec.kind,
        parameters=state_fields(spec.parameters, word),
        state=state_fields(spec.state, word),
        sample=tuple(Field(name, size) for name, size in spec.sample),
        contributions=programs.contributions,
        contribution=programs.contribution,
        update=programs.update,
        evaluate=programs.evaluate,
        results=programs.results,
        rate=word.rounded(spec.rate),
        rows=len(words) // spec.width,
        samples_sha256=hashlib.sha256(encode(words)).hexdigest(),
        numerics=spec.numerics,
        forward=programs.forward,
        local=programs.local,
        bound=spec.bound,
    )


def _ownership(run: RunSpec) -> Ownership:
    said = run.ownership
    return Ownership(said.parameters, said.optimizer_state, said.gradients, said.ranges)


def _topology(run: RunSpec) -> Topology:
    if isinstance(run.topology, Hierarchy):
        return Topology("hierarchy", len(run.roles), run.topology.fan_out)
    return star(len(run.roles)) if len(run.roles) > 1 else Topology(run.topology, 1, 1)
