"""What orch does over SSH, as a process of its own: `python -m benchmarks.ssh_ours TASK.json`.

Knows the engine's way to nodes. Prints the seconds that it took, once Python and its modules were there.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

from benchmarks.ssh_peers import Task, Way
from benchmarks.sshd import Sshd


def way(task: Task, scratch: Path) -> Way:
    """The command; a pods file names the nodes, as it does for a lane."""
    scratch.mkdir(parents=True)
    entries = {f"n{i}": entry(node, scratch / f"root{i}") for i, node in enumerate(task.nodes)}
    (scratch / "pods.yaml").write_text(
        json.dumps({"orch": "pods/v1", "transport": "ssh-tunnel", "nodes": entries})
    )
    work = [
        {"node": f"n{i}", "mark": str(task.mark(i)), "commands": task.commands(i)}
        for i in range(len(task.nodes))
    ]
    given = {"pods": str(scratch / "pods.yaml"), "source": str(task.source or ""), "work": work}
    (scratch / "task.json").write_text(json.dumps({**given, "sha256": task.sha256}))
    root = str(Path(__file__).parents[1])
    argv = [sys.executable, "-m", "benchmarks.ssh_ours", str(scratch / "task.json")]
    return Way("orch", argv, {"PYTHONPATH": root}, tells=True)


def entry(node: Sshd, root: Path) -> dict[str, Any]:
    """A node's lines in a pods file."""
    return {
        "host": f"{node.user}@127.0.0.1",
        "port": node.port,
        "key": str(node.key),
        "host_key": node.fingerprint,
        "owned": True,
        "remote_root": str(root),
    }


def main(argv: Sequence[str]) -> int:
    from orchestrator.remote.open import open_nodes
    from orchestrator.spec import yaml_document  # noqa: F401  # read_pods would load it once the time runs
    from orchestrator.spec.read import read_pods

    begun = time.perf_counter()
    task = json.loads(Path(argv[0]).read_text())
    pods = read_pods(Path(task["pods"]))
    nodes = open_nodes(pods, journal=lambda *_: None, wait=time.sleep, grace_s=30)

    def act(work: dict[str, Any]) -> None:
        node = nodes[work["node"]]
        if task["source"]:
            mark = PurePosixPath(work["mark"])
            node.make_root(mark.parent, "benchmarks")
            if node.put(Path(task["source"]).read_bytes(), mark) != task["sha256"]:
                raise RuntimeError("another file lies there")
            return
        for command in work["commands"]:
            if node.run(["sh", "-c", command], deadline_s=30).exit != 0:
                raise RuntimeError(command)

    with ThreadPoolExecutor(len(nodes)) as threads:
        list(threads.map(act, task["work"]))
    for node in nodes.values():
        node.close()
    print(time.perf_counter() - begun)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
