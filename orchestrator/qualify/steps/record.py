"""Record: what is left on the nodes is looked at, and our own folder there removed; then comes the seal.

Sealing itself follows when this step has been judged: a seal covers the verdict.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from evidence.canonical import dumps
from evidence.files import write_whole
from orchestrator.qualify import card_checks, looks
from orchestrator.qualify.checks import Check, Verdict, equal
from orchestrator.qualify.jobs import SETTLE_S
from orchestrator.qualify.journal_checks import whole_run
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.session import Session
from orchestrator.qualify.steps import preflight
from orchestrator.qualify.view import View
from orchestrator.remote.base import Remote, RemoteError

NAME = "record"
DOES = (
    "looks at cards again and for processes left behind, removes the run's own folder from every node,"
    " seals the bundle"
)
CHECKS = (
    "the cards are still those that the run is bound to, and nothing else is on them",
    "no process of the run is left",
    "every launch that began was collected",
    "the run's folder is gone, or kept by request",
)
LEFT = "left.json"
PATIENCE_S = 2.0  # a runner that has written its exit code is as good as gone
POLL_S = 0.01
CARD_PATIENCE_S = 10.0  # a driver tells the load of the last second, and gives memory back in its own time
CARD_POLL_S = 1.0


def act(launcher: Launcher) -> None:
    """Looks first, then ends what was found and removes: what is left is noted and does not live on."""
    session = launcher.session
    session.limits.is_armed = False
    tasks = [(name, partial(_clear, session, name)) for name in session.nodes]
    is_parting = session.limits.parting
    if session.view.attempt(preflight.NAME) is not None:
        _look(launcher, is_parting=is_parting)
    cleared = session.crew.settle(tasks, SETTLE_S) if is_parting else [*session.crew.each(tasks)]
    left = {}
    for (name, _), found in zip(tasks, cleared, strict=True):
        left[name] = {"unreachable": str(found)} if isinstance(found, RemoteError) else found
        if isinstance(found, RemoteError):
            way_out = (
                "its roles end at their own deadlines, and `orch clean --pods FILE` removes what is left"
            )
            session.observer.note(f"{found}; {way_out}")
    launcher.attempt.folder.mkdir(parents=True, exist_ok=True)
    write_whole(launcher.attempt.folder / LEFT, dumps(left))


def _look(launcher: Launcher, *, is_parting: bool) -> None:
    """Looks at the cards until nothing is wrong with them: how busy one was is told for a while."""
    limit = time.monotonic() + CARD_PATIENCE_S
    while True:
        patience_s = SETTLE_S if is_parting else None
        looks.take(launcher.session, launcher.attempt.folder, patience_s=patience_s)
        wrong = [
            check for check in card_checks.judge(launcher.session.view, launcher.folder) if _is_open(check)
        ]
        if is_parting or not wrong or time.monotonic() > limit:
            return
        time.sleep(CARD_POLL_S)


def _is_open(check: Check) -> bool:
    """Whether a look may say otherwise in a moment."""
    return check.verdict in (Verdict.FAIL, Verdict.UNKNOWN)


def _clear(session: Session, name: str) -> dict[str, Any]:
    """One node's part; what was left there."""
    node, root = session.nodes[name], session.roots[name]
    processes = _left(node, root)
    if processes:
        node.end(root)
    if not session.keep:
        node.remove(root)
    left = {"processes": list(processes), "files": len(node.list(root)), "kept": session.keep}
    if name in session.reached.bases:
        node.unlock(session.reached.bases[name], session.run_id)
    return left


def _left(node: Remote, root: PurePosixPath) -> tuple[int, ...]:
    """Processes that work under the root and do not go away by themselves."""
    limit = time.monotonic() + PATIENCE_S
    while (found := node.processes_under(root)) and time.monotonic() < limit:
        time.sleep(POLL_S)
    return found


def judge(view: View) -> tuple[Check, ...]:
    """From what was found left, and from the journal."""
    file = f"{view.attempt(NAME)}/{LEFT}"
    left, binding = view.json(file), view.json("binding.json")
    if left is None or binding is None:
        return (Check("left", Verdict.UNKNOWN, (file,), "what is left on every node", "nothing"),)
    checks = [*card_checks.judge(view, f"{view.attempt(NAME)}"), whole_run(view)]
    checks += [equal("nodes", (file, "binding.json"), sorted(binding["nodes"]), sorted(left))]
    for name, node in left.items():
        if "unreachable" in node:
            got = f"it was out of reach: {node['unreachable']}"
            checks.append(Check(f"{name}-cleared", Verdict.UNKNOWN, (file,), "a look at the node", got))
            continue
        checks.append(
            equal(f"{name}-processes", (file,), "none", ", ".join(map(str, node["processes"])) or "none")
        )
        expected = "kept by request" if view.events()[0].data["keep"] else "0 files"
        got = "kept by request" if node["kept"] else f"{node['files']} files"
        checks.append(equal(f"{name}-folder", (file, "stream.jsonl"), expected, got))
    launches = {"orch.launch.started": [], "orch.launch.finished": []}  # type: dict[str, list[tuple[object, ...]]]
    for event in view.events():
        if event.type in launches:
            launches[event.type].append(tuple(event.data[key] for key in ("step", "attempt", "launch")))
    never = [each for each in launches["orch.launch.started"] if each not in launches["orch.launch.finished"]]
    got = "; ".join(f"{step}/{attempt}/{launch}" for step, attempt, launch in never)
    checks.append(
        equal("collected", ("stream.jsonl",), "every launch that began", got or "every launch that began")
    )
    return tuple(checks)
