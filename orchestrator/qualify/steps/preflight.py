"""Preflight: what the nodes say of themselves, and whether every role may run where it is placed.

Acting writes the nodes' own words down (`nodes.json`, `binding.json`); judging admits or refuses, by label,
before a byte is built.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Any

from evidence.canonical import dumps
from evidence.files import write_whole
from orchestrator.admit.host import admit
from orchestrator.admit.memory import demand
from orchestrator.errors import Label, Refusal
from orchestrator.qualify.checks import Check, Verdict, equal
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.session import Session
from orchestrator.qualify.view import View
from orchestrator.remote.base import NodeFacts, Remote
from orchestrator.spec.run import RunSpec

NAME = "preflight"
DOES = "asks every node what it is, makes its own folder there, finds ports, and admits every role"
CHECKS = (
    "the node's instruction set is the target's, or an emulator is at hand",
    "the role's memory fits its node's quota (an unknown quota is refused)",
    "a program can be executed in the run's own folder",
)
MACHINES = {"x86_64-linux": "x86_64", "aarch64-linux": "aarch64"}
EMULATORS = {"x86_64-linux": "qemu-x86_64-static", "aarch64-linux": "qemu-aarch64-static"}
EMULATOR_PACKAGE = "qemu-user-static"
_PROBE = b"#!/bin/sh\nexit 0\n"
_DEADLINE_S = 30.0


def act(launcher: Launcher) -> None:
    """Asks, and writes down. Nothing is refused here."""
    session = launcher.session
    nodes: dict[str, dict[str, Any]] = {}
    for name, node in session.nodes.items():
        facts = node.facts()
        nodes[name] = {
            **_facts_json(facts),
            "probe_exit": _probe(node, session.roots[name]),
            "emulators": _emulators(node),
        }
    launcher.attempt.folder.mkdir(parents=True, exist_ok=True)
    write_whole(launcher.attempt.folder / "nodes.json", dumps(nodes))
    view = session.view
    session.emulators |= emulated(view, nodes, session.placement)
    port = session.free_port(view.roles[0]) if len(view.roles) > 1 else None
    write_whole(session.bundle / "binding.json", dumps(_binding(view, nodes, session.placement, port)))


def _facts_json(facts: NodeFacts) -> dict[str, Any]:
    """Facts as JSON; a hostname can name its owner, so only its digest is kept."""
    known = asdict(facts)
    known["hostname_sha256"] = hashlib.sha256(known.pop("hostname").encode()).hexdigest()
    return known


def _probe(node: Remote, root: PurePosixPath) -> int | None:
    """Whether a program can be executed in our own folder: on a noexec file system it cannot."""
    node.put(_PROBE, root / ".probe", executable=True)
    return node.run([str(root / ".probe")], deadline_s=_DEADLINE_S).exit


def _emulators(node: Remote) -> dict[str, str]:
    """Target -> the first line with which its emulator answers, for emulators that answer."""
    found = {}
    for target, emulator in EMULATORS.items():
        said = node.run([emulator, "--version"], deadline_s=_DEADLINE_S)
        if said.exit == 0:
            found[target] = said.stdout.decode("utf-8", "replace").partition("\n")[0]
    return found


def emulated(view: View, nodes: Mapping[str, Any], placement: Mapping[str, str]) -> dict[str, str]:
    """Role -> the emulator that it needs and its node has, for roles under another instruction set."""
    return {
        role: EMULATORS[target]
        for role, target in view.targets.items()
        if nodes[placement[role]]["machine"] != MACHINES.get(target)
        and target in nodes[placement[role]]["emulators"]
    }


def load(session: Session) -> None:
    """Takes the emulators from a finished preflight."""
    folder = session.view.attempt(NAME)
    if folder:
        nodes = session.view.json(f"{folder}/nodes.json")
        session.emulators |= emulated(session.view, nodes, session.placement)


def _binding(
    view: View, nodes: Mapping[str, Any], placement: Mapping[str, str], port: int | None
) -> dict[str, Any]:
    """What `binding.json` says, of these nodes' words and this placement."""
    kept = ("machine", "kernel", "hostname_sha256", "boot_id", "cpus", "memory_bytes", "quota_bytes")
    emulators = emulated(view, nodes, placement)
    return {
        "schema": "orch-binding/v1",
        "nodes": {
            name: {**{key: node[key] for key in kept}, "pod": None, "clock_offset_ns": 0}
            for name, node in nodes.items()
        },
        "roles": {
            role: {
                "node": placement[role],
                "target": target,
                "emulator": emulators.get(role),
                "port": port if role == view.roles[0] else None,
                "device": None,
            }
            for role, target in view.targets.items()
        },
    }


def judge(view: View) -> tuple[Check, ...]:
    """Admits every role against its node's own words."""
    file = f"{view.attempt(NAME)}/nodes.json"
    nodes, binding = view.json(file), view.json("binding.json")
    if nodes is None or binding is None:
        return (Check("nodes", Verdict.UNKNOWN, (file, "binding.json"), "facts of every node", "nothing"),)
    placement = view.wiring.placement
    expected = _binding(view, nodes, placement, binding["roles"][view.roles[0]]["port"])
    fine = "what the nodes said of themselves"
    checks = [
        equal("binding", ("binding.json", file), fine, fine if binding == expected else "something else")
    ]
    checks += [
        equal(f"{name}-executes", (file,), "exit 0 from a probe in the run's folder", _probe_said(node))
        for name, node in nodes.items()
    ]
    run = view.lane.run
    if isinstance(run, RunSpec):  # of a user's own program nothing is known that a node could lack
        quotas = {name: node["quota_bytes"] for name, node in nodes.items()}
        checks += (_instruction_set(view, file, role, nodes[placement[role]]) for role in view.roles)
        checks += _memory(view, file, placement, admit(view.planned.plan, run, placement, quotas), quotas)
    return tuple(checks)


def _probe_said(node: Mapping[str, Any]) -> str:
    if node["probe_exit"] == 0:
        return "exit 0 from a probe in the run's folder"
    got = f"exit {node['probe_exit']} from a probe in the run's folder"
    return f"{Label.REMOTE_ROOT}: {got} (is it mounted noexec?)"


def _instruction_set(view: View, file: str, role: str, node: Mapping[str, Any]) -> Check:
    target = view.planned.targets[role]
    name, machine = f"{role}-target", MACHINES[target]
    if node["machine"] == machine:
        return Check(name, Verdict.PASS, (file,), machine, machine)
    if target in node["emulators"]:
        return Check(
            name,
            Verdict.PASS,
            (file,),
            machine,
            f"{node['machine']}, emulated by {node['emulators'][target]}",
        )
    got = (
        f"{Label.EMULATOR_MISSING}: the node is {node['machine']} and has no {EMULATORS[target]}"
        f" (install Debian's package {EMULATOR_PACKAGE})"
    )
    return Check(name, Verdict.FAIL, (file,), f"{machine}, or {EMULATORS[target]}", got)


def _memory(
    view: View,
    file: str,
    placement: Mapping[str, str],
    refusals: tuple[Refusal, ...],
    quotas: Mapping[str, int | None],
) -> Iterator[Check]:
    for role in view.planned.plan.roles:
        need = demand(view.planned.plan, role).total
        quota = quotas[placement[role.name]]
        said = [
            f"{refusal.label}: {refusal.message}"
            for refusal in refusals
            if refusal.key == f"memory.{role.name}"
        ]
        expected = f"{need} bytes within the quota"
        got = "; ".join(said) if said else f"{need} of {quota} bytes"
        yield Check(f"{role.name}-memory", Verdict.FAIL if said else Verdict.PASS, (file,), expected, got)
