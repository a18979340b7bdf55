"""The way to a run's nodes: opened, locked against other runs, with the run's own folder made on each.

Knows what a run needs of a node before its first step; must not know what the steps do there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.qualify.crew import Crew
from orchestrator.qualify.fitness import examine, faults
from orchestrator.qualify.limits import Limits
from orchestrator.qualify.view import LOCAL, View
from orchestrator.remote.base import NodeLostError, Remote, RemoteError, UnreachableError
from orchestrator.remote.given_up import GivenUp
from orchestrator.remote.local import Local
from orchestrator.remote.lock import is_left_behind
from orchestrator.remote.record import Recorded
from orchestrator.spec.pods import PodsSpec

MOVE_OUT_S = 10.0
Journal = Callable[[str, Mapping[str, object]], None]


@dataclass(frozen=True)
class Reached:
    """The nodes of a run.

    Attributes:
        nodes: name -> remote.
        bases: name -> the folder that all runs there share; only on rented and owned nodes, whose lock is in
            it.
        roots: name -> the run's own folder.
        owners: name -> who owns what is put there.
    """

    nodes: Mapping[str, Remote]
    bases: Mapping[str, PurePosixPath]
    roots: Mapping[str, PurePosixPath]
    owners: Mapping[str, str]

    def close(self) -> None:
        """Lets go of every node; what runs there goes on."""
        for node in self.nodes.values():
            node.close()


def local(root: PurePosixPath, owner: str, journal: Journal) -> Reached:
    """This machine alone."""
    return Reached({LOCAL: Recorded(Local(LOCAL), journal)}, {}, {LOCAL: root}, {LOCAL: owner})


def rental(pods: PodsSpec, view: View, owner: str, limits: Limits, journal: Journal) -> Reached:
    """Opens the way to every node that a role goes to.

    Raises:
        RemoteError: a node refuses, by label, or cannot be reached.
        StopLaneError: a limit or a person ended the lane meanwhile.
    """
    from orchestrator.remote.open import open_nodes  # loads the SSH library

    used = view.pods.used if view.pods else ()
    some = replace(pods, nodes={name: pods.nodes[name] for name in used})
    grace_s = view.lane.deadlines.unreachable_ms / 1000
    nodes = open_nodes(some, journal=journal, wait=limits.wait, grace_s=grace_s)
    try:
        tasks = [
            (name, partial(nodes[name].resolve, PurePosixPath(pods.nodes[name].remote_root))) for name in used
        ]
        bases = dict(zip(used, Crew(limits, far=True).each(tasks), strict=True))
    except BaseException:
        for node in nodes.values():
            node.close()
        raise
    owners = {name: pods.nodes[name].owner or owner for name in used}
    return Reached(nodes, bases, {name: base / view.run_id for name, base in bases.items()}, owners)


def given_up(view: View) -> Reached:
    """The nodes of a rental that is gone: none is asked for anything."""
    used = view.pods.used if view.pods else ()
    return Reached({name: GivenUp(name) for name in used}, {}, dict.fromkeys(used, PurePosixPath("/")), {})


def settle_in(reached: Reached, run_id: str, crew: Crew, note: Callable[[str], None]) -> None:
    """Locks every node for this run and makes the run's folder there.

    Raises:
        RefusedError: another run has a node, or a node is not fit; all that is wrong with all of them.
        UnreachableError: a node is gone.
        StopLaneError: a limit or a person ended the lane meanwhile.
    """
    tasks = [(name, partial(_settle, reached, name, run_id, note)) for name in reached.nodes]
    if refusals := [refusal for found in crew.each(tasks) for refusal in found]:
        raise RefusedError(refusals)


def _settle(reached: Reached, name: str, run_id: str, note: Callable[[str], None]) -> tuple[Refusal, ...]:
    """One node's part; what it is refused for."""
    node, base, owner = reached.nodes[name], reached.bases.get(name), reached.owners[name]
    if base is not None:
        where = Where(f"{name}:{base}")
        # the lock is looked at below: this very run may have it
        found = [fault for fault in faults(examine(node, str(base), {})) if fault.label != Label.RUN_LOCKED]
        if found:
            return tuple(Refusal(fault.label, fault.message, where, hint=fault.hint) for fault in found)
        if is_left_behind(holder := node.lock_holder(base)):
            note(f"{name}: took over the lock of {holder}")
    try:
        if base is not None and (holder := node.lock(base, run_id, owner)):
            message = f"another run has this node (got {holder}, expected none)"
            hint = "wait for it, or end it: `orch stop`"
            return (Refusal(Label.RUN_LOCKED, message, Where(f"{name}:{base}"), hint=hint),)
        node.make_root(reached.roots[name], owner)
    except (UnreachableError, NodeLostError):
        raise
    except RemoteError as error:
        message = str(error).removeprefix(f"{error.label}: ")
        hint = "" if base is None else "mend that, or name another `remote_root` in the pods file"
        where = Where(str(reached.roots[name]))
        return (Refusal(error.label or Label.REMOTE_ROOT, message, where, hint=hint),)
    return ()


def move_out(reached: Reached, run_id: str, crew: Crew) -> None:
    """Takes back what `settle_in` did, on every node that answers: for a run that never begins."""
    tasks = [(name, partial(_move_out, reached, name, run_id)) for name in reached.nodes]
    crew.settle(tasks, MOVE_OUT_S)


def _move_out(reached: Reached, name: str, run_id: str) -> None:
    node, base = reached.nodes[name], reached.bases.get(name)
    try:
        node.remove(reached.roots[name])
    finally:
        if base is not None:
            node.unlock(base, run_id)
