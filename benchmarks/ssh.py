"""The same work over SSH, by orch and by others, in one run: commands, files, and many connections at once.

All nodes are sshds on 127.0.0.1 that the benchmark starts. The time of a program is from its start to its
end; that of a library, orch's among them, from when Python and its modules are there. Each node's mark is
looked at afterwards: a way that did not reach every node says how many it reached.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from benchmarks import ssh_ours
from benchmarks.content import CONTENT, orch
from benchmarks.measure import Experiment, Row, command, quietly, row, take_turns
from benchmarks.peers import environment
from benchmarks.ssh_peers import PACKAGES, Task, Way, ways
from benchmarks.sshd import Sshd, missing, servers

TURNS = 3
NODES = 8
CONNECTIONS = 48
UPLOAD_BYTES = 4 << 20
SLOW_S = 15.0
ORCH = "orch"


def run(folder: Path) -> tuple[Row, ...]:
    if what := missing():
        print(f"ssh: left out: {what}", file=sys.stderr)
        return ()
    python = environment("bench-peers", PACKAGES)
    source = folder / "source"
    source.write_bytes(os.urandom(UPLOAD_BYTES))
    sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
    rows: list[Row] = []
    with servers(folder / "sshd", NODES) as nodes:
        one = (nodes[0],) * CONNECTIONS
        rows += _compare("ten commands on 8 nodes", Task("commands", nodes, folder / "commands"), python)
        rows += _compare("4 MiB to 8 nodes", Task("upload", nodes, folder / "upload", source, sha256), python)
        rows += _compare("48 connections to one sshd", Task("connects", one, folder / "connects"), python)
        rows.append(_lane(folder / "lane", nodes[0]))
    return tuple(rows)


def _lane(folder: Path, node: Sshd) -> Row:
    """The example lane on a node over SSH, and the same lane here."""
    pods = folder / "pods.yaml"
    folder.mkdir()
    entry = ssh_ours.entry(node, folder / "there")
    pods.write_text(json.dumps({"orch": "pods/v1", "transport": "loopback", "nodes": {"a": entry}}))
    database = f"sqlite:///{folder}/tracker.sqlite3"
    lane = [*orch(), "run", str(CONTENT / "lanes/diabetes.yaml"), "--json", "--bundles", str(folder / "runs")]
    argv = [*lane, "--db", database, "--pods"]
    own = {"TMPDIR": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    there, here = "a lane of 60 updates, over SSH", "the same lane here"
    quietly([*argv, "local"], folder, **own)  # the programs are in the cache from here on
    experiments = (
        command(there, [*argv, str(pods)], folder, **own),
        command(here, [*argv, "local"], folder, **own),
    )
    return row(take_turns(experiments, TURNS), there, here)


def _compare(title: str, task: Task, python: Path | None) -> list[Row]:
    """One row for each of the others: those that reached every node first, the fastest with the aim."""
    scratch = task.folder.with_name(f"{task.name}-files")
    reached: dict[str, list[int]] = {}
    all_ways = (ssh_ours.way(task, scratch), *ways(task, python, scratch / "peers"))
    turns = take_turns([_experiment(way, task, reached) for way in all_ways], TURNS)
    counts = {name: round(median(reached[name])) for name in reached}
    times = {name: median(turn[name] for turn in turns) for name in reached}
    wanted = len(task.nodes)
    others = sorted(counts.keys() - {ORCH}, key=lambda name: (counts[name] < wanted, times[name]))
    return [
        Row(
            ours=_named(title, counts[ORCH], wanted),
            ours_amount=times[ORCH],
            theirs=_named(name, counts[name], wanted),
            theirs_amount=times[name],
            ratio=median(turn[ORCH] / turn[name] for turn in turns),
            aim="1.0" if name == others[0] else "",
        )
        for name in others
    ]


def _named(name: str, count: int, wanted: int) -> str:
    return name if count == wanted else f"{name} ({count} of {wanted})"


def _experiment(way: Way, task: Task, reached: dict[str, list[int]]) -> Experiment:
    """Runs a way and looks at what it left; one that is very slow runs in the first turn alone."""
    known: dict[str, float] = {}

    def experiment() -> Mapping[str, float]:
        if known.get(way.name, 0) > SLOW_S:
            return known
        task.folder.mkdir(mode=0o700)
        for node in range(len(task.nodes)):
            task.mark(node).parent.mkdir(mode=0o700)
        begun = time.perf_counter()
        done = subprocess.run(
            way.argv,
            env={**os.environ, **way.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            cwd=task.folder.parent,
        )
        taken_s = time.perf_counter() - begun
        known[way.name] = float(done.stdout) if way.tells and done.returncode == 0 else taken_s
        count = sum(_is_done(task, node) for node in range(len(task.nodes)))
        reached.setdefault(way.name, []).append(count)
        if count == 0:
            raise RuntimeError(f"{way.name} reached nobody: {done.stdout!r} {done.stderr!r}")
        shutil.rmtree(task.folder)
        return dict(known)

    return experiment


def _is_done(task: Task, node: int) -> bool:
    """Whether the node's mark is there, and whole."""
    try:
        data = task.mark(node).read_bytes()
    except FileNotFoundError:
        return False
    if task.source is not None:
        return hashlib.sha256(data).hexdigest() == task.sha256
    return sorted(data.split()) == [b"%d" % k for k in range(len(task.commands(node)))]
