"""Shipped runs with their words made binary32."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from role_bench import CONTENT
from role_plans import REPLICATED, Case, roles

from orchestrator.plan.derive import derive
from orchestrator.plan.ownership import Ownership
from orchestrator.plan.topology import Topology
from orchestrator.spec.read import read_run

SPECS = CONTENT / "specs"


def narrow(folder: Path, name: str, topology: Topology, ownership: Ownership = REPLICATED) -> Case:
    """A shipped run with its words made binary32."""
    run = (SPECS / "runs" / f"{name}.yaml").read_text(encoding="utf-8")
    path = SPECS / "systems" / run.partition("../systems/")[2].partition("\n")[0]
    system = path.read_text(encoding="utf-8").replace("binary64-ordered", "binary32-ordered")
    (folder / path.name).write_text(system.replace("../data/", f"{SPECS}/data/"), encoding="utf-8")
    (folder / "run.yaml").write_text(run.replace("../systems/", ""), encoding="utf-8")
    planned = derive(read_run(folder / "run.yaml"))
    rows, count = planned.plan.system.rows, topology.roles
    each = rows // (count + 1) if planned.plan.system.has_own_rows else 0
    first = rows - each * (count - 1) if each else 0
    who = roles(*((f"r{index}", each if index else first) for index in range(count)))
    plan = replace(planned.plan, roles=who, topology=topology, ownership=ownership)
    return Case(plan, tuple(planned.words))
