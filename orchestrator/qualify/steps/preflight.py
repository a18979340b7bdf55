"""Preflight: what the nodes say of themselves, and whether every role may run where it is placed.

Acting writes the nodes' own words down (`nodes.json`, `binding.json`); judging admits or refuses, by label,
before a byte is built.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from evidence.canonical import dumps
from evidence.files import write_whole
from orchestrator.admit.host import admit
from orchestrator.admit.memory import demand
from orchestrator.errors import Label, Refusal
from orchestrator.oracle.checkpoint import CheckpointError
from orchestrator.oracle.reference import Version
from orchestrator.probe import Inventory
from orchestrator.qualify import card_checks, looks
from orchestrator.qualify import parent as parents
from orchestrator.qualify.card_memory import card_memory
from orchestrator.qualify.checks import Check, Verdict, equal
from orchestrator.qualify.fitness import DEADLINE_S, LEAST_BYTES, LEAST_INODES, examine
from orchestrator.qualify.launch import SWAPPED
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.publication_checks import unlike
from orchestrator.qualify.session import Session
from orchestrator.qualify.view import View
from orchestrator.remote.base import NodeFacts, NodeLostError, RemoteError, UnreachableError
from orchestrator.spec.run import RunSpec

NAME = "preflight"
DOES = "asks every node what it is, tries its own folder there, ports and tunnels, and admits every role"
CHECKS = (
    "the node's instruction set is the target's, or an emulator is at hand",
    "the node has the tools, the room and the inodes that its roles need",
    "the role's memory fits its node's quota (an unknown quota is refused)",
    "a program can be executed in the run's own folder",
    "what is sent into a tunnel comes out at its other end",
    "a device role's card is the one pinned, of its profile's product, whole, and nobody else's at this time",
    "what a device role allocates fits its card, under the driver that is there",
)
MACHINES = {"x86_64-linux": "x86_64", "aarch64-linux": "aarch64"}
EMULATORS = {"x86_64-linux": "qemu-x86_64-static", "aarch64-linux": "qemu-aarch64-static"}
EMULATOR_PACKAGE = "qemu-user-static"
_PROBE = b"#!/bin/sh\nexit 0\n"


def act(launcher: Launcher) -> None:
    """Asks, and writes down. Nothing is refused here."""
    session, view = launcher.session, launcher.session.view
    names = tuple(session.nodes)
    asked = session.crew.each([(name, partial(_look, session, name)) for name in names])
    nodes = dict(zip(names, asked, strict=True))
    ports = session.free_ports(view.wiring.listeners)
    for name, others in view.wiring.forwards.items():
        nodes[name]["tunnels"] = {other: _tunnel(session, name, other, ports) for other in others}
    launcher.attempt.folder.mkdir(parents=True, exist_ok=True)
    write_whole(launcher.attempt.folder / "nodes.json", dumps(nodes))
    session.emulators |= emulated(view, nodes)
    looks.place_stand_in(session)
    looks.take(session, launcher.attempt.folder)
    seen = looks.inventories(view, launcher.folder)
    write_whole(session.bundle / "binding.json", dumps(_binding(view, nodes, ports, seen)))


def _look(session: Session, name: str) -> dict[str, Any]:
    """One node's answers, and whether a program can be executed in our own folder there (not on noexec)."""
    node, root = session.nodes[name], session.roots[name]
    seen = examine(node, str(root), emulators_of(session.view, name))
    node.put(_PROBE, root / ".probe", executable=True)
    return {
        **_facts_json(seen.facts),
        "room": asdict(seen.room),
        "missing_tools": list(seen.missing),
        "clock": asdict(seen.clock),
        "emulators": {target: said for target, said in seen.emulators.items() if said},
        "probe_exit": node.run([str(root / ".probe")], deadline_s=DEADLINE_S).exit,
    }


def _facts_json(facts: NodeFacts) -> dict[str, Any]:
    """Facts as JSON; a hostname can name its owner, so only its digest is kept."""
    known = asdict(facts)
    known["hostname_sha256"] = hashlib.sha256(known.pop("hostname").encode()).hexdigest()
    return known


def _tunnel(session: Session, name: str, other: str, ports: Mapping[str, int]) -> str:
    """Why no tunnel leads from a node to a listening role's on another one; empty if one does."""
    key = f"{NAME}/{name}"
    to = next(role for role in ports if session.placement[role] == other)
    try:
        session.wires.lay(key, session.crew, session.nodes, {(name, to): (other, ports[to])})
    except (UnreachableError, NodeLostError):
        raise
    except RemoteError as error:
        return str(error)
    finally:
        session.wires.take_up(key)
    return ""


def emulators_of(view: View, node: str) -> Mapping[str, str]:
    """Target -> emulator that may be used on a node: any on this machine, the declared ones on others."""
    return EMULATORS if view.pods is None else view.pods.nodes[node]["emulators"]


def made_for(view: View) -> tuple[tuple[str, str], ...]:
    """Role and target of every program that is run: in role order, then those of a swap that differ."""
    pairs = (*view.targets.items(), *view.targets_of(SWAPPED).items())
    return tuple(dict.fromkeys(pairs))


def emulated(view: View, nodes: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """(role, target) -> the emulator that it needs and its node has, for another instruction set's."""
    placement = view.wiring.placement
    return {
        (role, target): emulators_of(view, placement[role])[target]
        for role, target in made_for(view)
        if nodes[placement[role]]["machine"] != MACHINES.get(target)
        and target in nodes[placement[role]]["emulators"]
        and target in emulators_of(view, placement[role])
    }


def load(session: Session) -> None:
    """Takes the emulators from a finished preflight."""
    folder = session.view.attempt(NAME)
    if folder:
        nodes = session.view.json(f"{folder}/nodes.json")
        session.emulators |= emulated(session.view, nodes)


def _binding(
    view: View, nodes: Mapping[str, Any], ports: Mapping[str, int], cards: Mapping[str, Inventory]
) -> dict[str, Any]:
    """What `binding.json` says, of these nodes' words, their cards and the placement."""
    placement, pods = view.wiring.placement, view.pods
    kept = ("machine", "kernel", "hostname_sha256", "boot_id", "cpus", "memory_bytes", "quota_bytes")
    emulators = emulated(view, nodes)
    bound = card_checks.bound(view, cards)
    return {
        "schema": "orch-binding/v1",
        "nodes": {
            name: {
                **{key: node[key] for key in kept},
                "pod": pods.nodes[name]["pod"] if pods else None,
                "clock_offset_ns": node["clock"]["offset_ns"],
                "clock_error_ns": node["clock"]["error_ns"],
                "minors": card_checks.minors(cards[name]) if name in cards else [],
            }
            for name, node in nodes.items()
        },
        "roles": {
            role: {
                "node": placement[role],
                "target": target,
                "emulator": emulators.get((role, target)),
                "port": ports.get(role),
                "device": bound.get(role),
            }
            for role, target in view.targets.items()
        },
        **({"swapped": _swapped(view, emulators, cards)} if view.lane.swap else {}),
    }


def _swapped(
    view: View, emulators: Mapping[tuple[str, str], str], cards: Mapping[str, Inventory]
) -> dict[str, Any]:
    """What roles are made for, and run under, when the split run is resumed."""
    targets, bound = view.targets_of(SWAPPED), card_checks.bound(view, cards, SWAPPED)
    return {
        role: {"target": target, "emulator": emulators.get((role, target)), "device": bound.get(role)}
        for role, target in targets.items()
    }


def judge(view: View) -> tuple[Check, ...]:
    """Admits every role against its node's own words."""
    file = f"{view.attempt(NAME)}/nodes.json"
    nodes, binding = view.json(file), view.json("binding.json")
    if nodes is None or binding is None:
        return (Check("nodes", Verdict.UNKNOWN, (file, "binding.json"), "facts of every node", "nothing"),)
    placement = view.wiring.placement
    ports = {role: binding["roles"][role]["port"] for role in view.wiring.listeners}
    seen = looks.inventories(view, f"{view.attempt(NAME)}")
    expected = _binding(view, nodes, ports, seen)
    fine = "what the nodes said of themselves"
    checks = [
        equal("binding", ("binding.json", file), fine, fine if binding == expected else "something else")
    ]
    checks += [
        equal(f"{name}-executes", (file,), "exit 0 from a probe in the run's folder", _probe_said(node))
        for name, node in nodes.items()
    ]
    checks += card_checks.judge(view, f"{view.attempt(NAME)}")
    checks += card_checks.one_sort(view)
    checks += card_memory(view, f"{view.attempt(NAME)}")
    checks += _parent(view)
    for name, node in nodes.items():
        checks += _supplies(view, file, name, node)
    run = view.lane.run
    if isinstance(run, RunSpec):  # of a user's own program nothing is known that a node could lack
        quotas = {name: node["quota_bytes"] for name, node in nodes.items()}
        checks += (_instruction_set(view, file, made, nodes[placement[made[0]]]) for made in made_for(view))
        checks += _memory(view, file, placement, admit(view.planned.plan, run, placement, quotas), quotas)
    return tuple(checks)


def _parent(view: View) -> Iterator[Check]:
    """The checkpoint that the run goes on from: of this system, whole, as its own run must have left it."""
    parent, before = view.parent, view.before
    named = view.events()[0].data.get("parent_sha256")
    file = f"{parents.FOLDER}/{parents.FILE}"
    if parent is None or before is None:
        if named is not None:
            yield Check("parent", Verdict.FAIL, (file,), "the parent that the run was begun with", "nothing")
        return
    yield equal("parent", (file, "stream.jsonl"), named, view.digest(file))
    for system in (before.plan.system_digest, parent.system):
        yield equal("parent-system", (file,), view.plan.system_digest, system)
    yield equal("parent-plan", (file,), parent.plan, before.plan.digest)
    inputs = tuple(parent.restore.values())
    if view.command is not None:
        got = "nothing computes its state again; the run that published it is named, with its seal"
        yield Check("parent-checkpoint", Verdict.NOT_APPLICABLE, inputs, "a state computed again", got)
        return
    fine = f"the reference's state at update {parent.version}"
    try:
        origin = view.origin
    except CheckpointError as error:
        yield Check("parent-checkpoint", Verdict.FAIL, inputs, fine, str(error))
        return
    if origin is not None:
        captured = f"run {origin.run}, plan {origin.plan}, epoch {origin.epoch}"
        said = f"run {parent.run_id.replace('-', '')}, plan {parent.plan}, epoch {parent.epoch}"
        yield equal("parent-capture", (file, *inputs), captured, said)
    begins = view.beginning
    if begins is None or begins.number != parent.version:
        yield Check("parent-checkpoint", Verdict.FAIL, inputs, fine, "another version")
        return
    reference = Version(parent.version, before.words_at(parent.version), {})
    wrong, how_near = unlike(before.planned.plan.system, reference, begins.words)
    if wrong is not None:
        yield Check("parent-checkpoint", Verdict.FAIL, inputs, *wrong)
        return
    yield Check("parent-checkpoint", Verdict.PASS, inputs, fine, f"{fine}{how_near}")


def _probe_said(node: Mapping[str, Any]) -> str:
    if node["probe_exit"] == 0:
        return "exit 0 from a probe in the run's folder"
    got = f"exit {node['probe_exit']} from a probe in the run's folder"
    return f"{Label.REMOTE_ROOT}: {got} (is it mounted noexec?)"


def _supplies(view: View, file: str, name: str, node: Mapping[str, Any]) -> Iterator[Check]:
    """Tools, room, and a tunnel where one is needed. A room that the node does not tell is not judged."""
    lacking = ", ".join(node["missing_tools"])
    got = f"{Label.TOOL_MISSING}: it lacks {lacking}" if lacking else "all"
    yield equal(f"{name}-tools", (file,), "all", got)
    for key, unit, least in (
        ("free_bytes", "bytes", LEAST_BYTES),
        ("free_inodes", "inodes", LEAST_INODES),
    ):
        free = node["room"][key]
        if free is not None:
            expected, is_enough = f"at least {least} {unit} free", free >= least
            got = f"{free} {unit} free"
            verdict = Verdict.PASS if is_enough else Verdict.FAIL
            said = got if is_enough else f"{Label.DISK_SPACE}: {got}"
            yield Check(f"{name}-{unit}", verdict, (file,), expected, said)
    if others := view.wiring.forwards.get(name):
        faults = [f"to {other}: {node['tunnels'][other]}" for other in others if node["tunnels"][other]]
        fine = f"it carries to {', '.join(others)}"
        yield equal(f"{name}-tunnel", (file,), fine, "; ".join(faults) or fine)


def _instruction_set(view: View, file: str, made: tuple[str, str], node: Mapping[str, Any]) -> Check:
    """Of a role and a target that it has a program for."""
    role, target = made
    where, machine = view.wiring.placement[role], MACHINES[target]
    name = f"{role}-target" if target == view.targets[role] else f"{role}-swapped-target"
    if node["machine"] == machine:
        return Check(name, Verdict.PASS, (file,), machine, machine)
    emulator = emulators_of(view, where).get(target)
    if emulator is None:
        got = f"{Label.TARGET_ARCH}: node {where} is {node['machine']}, and declares no emulator for {target}"
        return Check(name, Verdict.FAIL, (file,), f"{machine}, or an emulator declared for {where}", got)
    if target in node["emulators"]:
        got = f"{node['machine']}, emulated by {node['emulators'][target]}"
        return Check(name, Verdict.PASS, (file,), machine, got)
    got = (
        f"{Label.EMULATOR_MISSING}: the node is {node['machine']} and has no {emulator}"
        f" (install Debian's package {EMULATOR_PACKAGE})"
    )
    return Check(name, Verdict.FAIL, (file,), f"{machine}, or {emulator}", got)


def _memory(
    view: View,
    file: str,
    placement: Mapping[str, str],
    refusals: tuple[Refusal, ...],
    quotas: Mapping[str, int | None],
) -> Iterator[Check]:
    for role in view.planned.plan.roles:
        need = demand(view.planned.plan, role, view.planned.devices[role.name]).total
        quota = quotas[placement[role.name]]
        said = [
            f"{refusal.label}: {refusal.message}"
            for refusal in refusals
            if refusal.key == f"memory.{role.name}"
        ]
        expected = f"{need} bytes within the quota"
        got = "; ".join(said) if said else f"{need} of {quota} bytes"
        yield Check(f"{role.name}-memory", Verdict.FAIL if said else Verdict.PASS, (file,), expected, got)
