"""A gate's programs: what each role's is made for, all of them built, and looked at as files.

Knows what a lane pairs its roles with; must not know how a finding is told.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.build.assemble import Report, assemble
from orchestrator.build.compile import Made, Program, build_programs
from orchestrator.build.elf import verify
from orchestrator.build.kernels import kernels
from orchestrator.build.ptx import architecture
from orchestrator.build.rebuild import differences
from orchestrator.plan.derive import Planned, unsupported
from orchestrator.plan.model import Plan, Role
from orchestrator.spec.device import DeviceSpec
from orchestrator.spec.lane import LaneSpec

Pairings = tuple[tuple[Role, Made], ...]


@dataclass(frozen=True)
class Built:
    """A program that was built: whose, and what for."""

    role: Role
    made: Made
    program: Program

    def __str__(self) -> str:
        return f"{self.role.name} for {self.made.device.name if self.made.device else self.made.target}"

    def as_json(self) -> dict[str, object]:
        """What `--json` says of it."""
        return {
            "role": self.role.name,
            "target": self.made.target,
            "device": self.made.device.name if self.made.device else None,
            "program_sha256": self.program.sha256,
            "size": self.program.size,
        }


Group = tuple[Built, ...]
"""Programs in which no role is twice."""


def wanted(planned: Planned, lane: LaneSpec, profiles: Sequence[DeviceSpec]) -> tuple[Pairings, ...]:
    """What programs are made for: as paired, as swapped at the resume, and device roles for each profile.

    Args:
        planned: the lane's plan, with targets and devices.
        lane: says what is swapped.
        profiles: of other cards that device roles might have.

    Raises:
        RefusedError: the lane swaps for what no program is made for.
    """
    paired = [_pairings(planned)]
    if lane.swap:
        paired.append(_pairings(planned.swapped(lane)))
    others = (
        tuple((role, Made(made.target, profile)) for role, made in paired[0] if made.device is not None)
        for profile in profiles
    )
    return (*paired, *(each for each in others if each))


def one_of_each_architecture(profiles: Iterable[DeviceSpec]) -> tuple[DeviceSpec, ...]:
    """Of each compute capability that there are kernels for, the first profile by name."""
    of: dict[object, DeviceSpec] = {}
    for profile in sorted(profiles, key=lambda profile: profile.name):
        if not unsupported("x86_64-linux", profile):
            of.setdefault(profile.facts["compute_capability"].value, profile)
    return tuple(of.values())


def _pairings(planned: Planned) -> Pairings:
    return tuple(
        (role, Made(planned.targets[role.name], planned.devices[role.name])) for role in planned.plan.roles
    )


def build(plan: Plan, pairings: Pairings, content_root: Path) -> Group:
    """The programs of some roles, by the compiler and from no cache.

    Raises:
        RefusedError, UndecidedError: see `build_programs`.
    """
    programs = build_programs(plan, pairings, content_root, cache=None)
    return tuple(Built(*pair, program) for pair, program in zip(pairings, programs, strict=True))


def faults(plan: Plan, built: Built) -> Iterator[str]:
    """What is wrong with a program as a file of its plan and its role."""
    data, role = built.program.data, built.role.name
    for problem in verify(
        data, target=built.made.target, plan=plan.digest, role=role, is_device=built.made.device is not None
    ):
        yield f"{built}: {problem}"


def assembled(plan: Plan, built: Iterable[Built]) -> Mapping[str, Report]:
    """What the kernels of device roles take of their cards; by program, none of a host role.

    Raises:
        RefusedError, UndecidedError: see `assemble`.
    """
    modules: dict[str, dict[str, str]] = {}
    for each in built:
        if each.made.device is not None:
            capability = str(each.made.device.facts["compute_capability"].value)
            ptx = kernels(plan, each.role, capability).ptx
            modules.setdefault(architecture(capability), {})[str(each)] = ptx
    return {name: report for of_one in modules.values() for name, report in assemble(of_one).items()}


def others(plan: Plan, groups: Iterable[Group], content_root: Path) -> tuple[str, ...]:
    """Which programs are not the same when they are built again, from a copy of the sources elsewhere.

    Raises:
        RefusedError, UndecidedError: see `build_programs`.
    """
    with tempfile.TemporaryDirectory(prefix="orch-gate-") as folder:
        shutil.copytree(content_root / "roles", Path(folder, "roles"))
        return tuple(
            other
            for group in groups
            for other in differences(
                plan,
                [(each.role, each.made) for each in group],
                {each.role.name: each.program.data for each in group},
                Path(folder),
            )
        )
