"""The task of `ssh.py` by `ssh` and `scp`: `python peer_ssh.py TASK.json default|tuned FOLDER`.

Default: one connection for each command. Tuned: one master for each node (ControlMaster), files through
`cat`, and no more than eight nodes at once. Prints the seconds that it took, once Python and its modules
were there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


def main(given: str, how: str, folder: str) -> None:
    begun = time.perf_counter()
    task = json.loads(Path(given).read_text())
    act: Callable[[Mapping[str, Any]], None]
    if how == "tuned":
        threads, act = 8, lambda node: through_a_master(task, node, folder)
    else:
        threads, act = len(task["nodes"]), lambda node: one_by_one(task, node)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(act, task["nodes"]))
    print(time.perf_counter() - begun)


def options(task: Mapping[str, Any]) -> list[str]:
    known = f"UserKnownHostsFile={task['known']}"
    return ["-F", "none", "-i", task["key"], "-o", "BatchMode=yes", "-o", known]


def one_by_one(task: Mapping[str, Any], node: Mapping[str, Any]) -> None:
    own, to, port = options(task), f"{task['user']}@127.0.0.1", str(node["port"])
    if task["source"]:
        quietly(["scp", *own, "-P", port, task["source"], f"{to}:{node['mark']}"])
    for command in node["commands"]:
        quietly(["ssh", *own, "-p", port, to, command])


def through_a_master(task: Mapping[str, Any], node: Mapping[str, Any], folder: str) -> None:
    socket = f"ControlPath={folder}/{node['name']}"
    master = ["-o", socket, "-o", "ControlMaster=auto", "-o", "ControlPersist=30"]
    argv = ["ssh", *options(task), *master, "-p", str(node["port"]), f"{task['user']}@127.0.0.1"]
    if task["source"]:
        with Path(task["source"]).open("rb") as source:
            quietly([*argv, f"cat >{node['mark']} && {node['commands'][0]}"], source)
    else:
        for command in node["commands"]:
            quietly([*argv, command])
    quietly([*argv[:-1], "-O", "exit", argv[-1]])


def quietly(argv: list[str], source: Any = subprocess.DEVNULL) -> None:
    subprocess.run(argv, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
