"""Programs built a second time, against those that are at hand.

Knows that a program is a function of plan, content and compiler; knows no bundle, and uses no cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.build.compile import Made, build_programs
from orchestrator.plan.model import Plan, Role


def differences(
    plan: Plan, pairings: Sequence[tuple[Role, Made]], programs: Mapping[str, bytes], content_root: Path
) -> tuple[str, ...]:
    """What is not the program that plan and content give, one sentence each, in the order of the pairings.

    Args:
        plan: what the programs compute.
        pairings: every role that has a program, with what it is made for.
        programs: role name -> the program's bytes, binding zeroed.
        content_root: the folder that holds `roles/`.

    Raises:
        RefusedError: a program cannot be built; see `build_program`.
    """
    built = build_programs(plan, pairings, content_root, cache=None)
    found = []
    for program in built:
        data = programs.get(program.role)
        got = "none" if data is None else hashlib.sha256(data).hexdigest()
        if got != program.sha256:
            found.append(
                f"{program.role}: not the program that is built (got {got}, expected {program.sha256})"
            )
    known = {program.role for program in built}
    found += [f"{role}: a program of no role that is built" for role in sorted(programs.keys() - known)]
    return tuple(found)
