"""Roles on simulated cards: what lies in their work folders, what they are bound to, what must come of it."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from role_bench import CONTENT, X86, Bench, Outcome, Setup
from role_plans import Case

from orchestrator.build.binding import DeviceBinding
from orchestrator.build.counted import Counted, counted
from orchestrator.build.kernels import kernels
from orchestrator.build.standin import (
    CALLS,
    Calls,
    Card,
    StandIn,
    build_standin,
    calls,
    cards_text,
    proc_tree,
)
from orchestrator.oracle.kinds import reference_of
from orchestrator.oracle.reference import bits, held_words, state_digest
from orchestrator.plan.model import Role
from orchestrator.spec.device import DeviceSpec
from orchestrator.spec.read import read_device

PROFILE = read_device(CONTENT / "specs" / "devices" / "nvidia-geforce-rtx-3070.yaml")
OWN = Card(
    minor=3,
    uuid="GPU-1f8a0001-0203-0405-0607-08090a0b0c0d",
    bus="0000:41:00.0",
    cc="8.6",
    memory_mib=8192,
    reserved_mib=227,
    driver="550.54.14",
    name=PROFILE.product,
)
OTHER = replace(OWN, minor=2, uuid="GPU-77c00001-0203-0405-0607-08090a0b0c0d", bus="0000:01:00.0")
BOUND = DeviceBinding(OWN.minor, OWN.uuid, is_simulated=True)
LIBCUDA, NVML = "standin/libcuda.so.1", "standin/libnvidia-ml.so.1"


@dataclass(frozen=True)
class Machine:
    """What a device role finds on its machine, what it is bound to there, and what it was made for."""

    cards: Sequence[Card] = (OTHER, OWN)
    proc: Sequence[Card] | None = None  # what the kernel says of them, if something else
    bound: DeviceBinding = BOUND
    profile: DeviceSpec = PROFILE

    def place(self, work: Path, stand_in: StandIn) -> None:
        shown = self.cards if self.proc is None else self.proc
        files = {f"standin/proc/{name}": data for name, data in proc_tree(shown).items()}
        files |= {"standin/cards": cards_text(self.cards).encode(), LIBCUDA: stand_in.libcuda}
        files[NVML] = stand_in.libnvidia_ml
        for name, data in files.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_bytes(data)


def place(run: Bench, setup: Setup, names: Sequence[str] = (), machine: Machine = Machine()) -> None:
    """Places a run of which these roles, or all, have a card."""
    names = names or [role.name for role in run.case.plan.roles]
    bind = {name: {**setup.bind.get(name, {}), "device": machine.bound} for name in names}
    run.place(replace(setup, devices=dict.fromkeys(names, machine.profile), bind={**setup.bind, **bind}))
    stand_in = build_standin(CONTENT, run.cache, X86)
    for name in names:
        machine.place(run.work(name), stand_in)


def expected(case: Case, updates: int) -> dict[str, list[str]]:
    """Every role's lines of progress, by the reference."""
    words = array(case.plan.system.word.typecode, case.words)
    versions = list(islice(reference_of(case.plan, words).versions(), updates))
    return {
        role.name: [
            f"{each.number} {state_digest(held_words(case.plan, role, each.words))} "
            f"{bits(each.results['loss'])}"
            for each in versions
        ]
        for role in case.plan.roles
    }


def asked(work: Path) -> Mapping[int, Calls]:
    """By minor, what was asked of each card."""
    path = work / CALLS
    return {each.minor: each for each in calls(path.read_text())} if path.exists() else {}


def account(case: Case, role: Role, updates: int, mode: str = "train") -> Counted:
    made = kernels(case.plan, role, OWN.cc)
    return counted(case.plan, role, made, mode=mode, updates=updates)


def told(outcome: Outcome) -> Counted:
    """What a role says that it has done with its card."""
    device = outcome.results["device"]
    return Counted(*(device[name] for name in ("launches", "to_device", "from_device", "allocated")))
