"""Record: what is left on the nodes is looked at, and our own folder there removed; then comes the seal.

Sealing itself follows when this step has been judged: a seal covers the verdict.
"""

from __future__ import annotations

import time
from pathlib import PurePosixPath

from evidence.canonical import dumps
from evidence.files import write_whole
from orchestrator.qualify.checks import Check, Verdict, equal
from orchestrator.qualify.journal_checks import whole_run
from orchestrator.qualify.launcher import Launcher
from orchestrator.qualify.view import View
from orchestrator.remote.base import Remote

NAME = "record"
DOES = "looks for processes left behind, removes the run's own folder from every node, seals the bundle"
CHECKS = (
    "no process of the run is left",
    "every launch that began was collected",
    "the run's folder is gone, or kept by request",
)
LEFT = "left.json"
PATIENCE_S = 2.0  # a runner that has written its exit code is as good as gone
POLL_S = 0.01


def act(launcher: Launcher) -> None:
    """Looks first, then ends what was found and removes: what is left is noted and does not live on."""
    session = launcher.session
    left = {}
    for name, node in session.nodes.items():
        root = session.roots[name]
        processes = _left(node, root)
        if processes:
            node.end(root)
        if not session.keep:
            node.remove(root)
        left[name] = {
            "processes": list(processes),
            "files": len(node.list(root)),
            "kept": session.keep,
        }
    launcher.attempt.folder.mkdir(parents=True, exist_ok=True)
    write_whole(launcher.attempt.folder / LEFT, dumps(left))


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
    checks = [whole_run(view), equal("nodes", (file, "binding.json"), sorted(binding["nodes"]), sorted(left))]
    for name, node in left.items():
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
