"""A pair's rounds on loopback, beside a bare exchange of messages of the same size.

The learner is the smallest there is, so that a round is its two frames, its update, its digest and its line
of progress. The time is the whole pair's, from the start of its two processes to their end, over its rounds.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.content import CONTENT, TARGET, Deployment, planned
from benchmarks.measure import Experiment, Row, quietly, row, take_turns
from orchestrator.build.bind import bind
from orchestrator.build.compile import Made, Program, build_programs

TURNS = 7
ROUNDS = 5_000
HEADER_BYTES, WORD_BYTES = 96, 8
LOOKS = 200  # as often as a role looks before it sleeps


def run(folder: Path) -> tuple[Row, ...]:
    ours, spinning, blocking = "a round of a pair", "ping-pong, looking then polling", "ping-pong, blocking"
    plan = planned("samples").plan
    pairings = [(role, Made(TARGET)) for role in plan.roles]
    programs = build_programs(plan, pairings, CONTENT, cache=None)
    size = HEADER_BYTES + WORD_BYTES * plan.system.combined_words
    pingpong = _compile(folder)
    turns = take_turns(
        (
            lambda: {ours: _pair(folder / "pair", programs)},
            _pingpong(spinning, pingpong, size, LOOKS),
            _pingpong(blocking, pingpong, size, 0),
        ),
        TURNS,
    )
    return row(turns, ours, spinning, "1.5"), row(turns, ours, blocking)


def _pair(folder: Path, programs: tuple[Program, ...]) -> float:
    """Start both roles and wait for them; seconds per round."""
    deployment = Deployment(planned("samples"), ROUNDS, _free_port())
    for role, program in zip(deployment.planned.plan.roles, programs, strict=True):
        work = folder / role.name
        work.mkdir(parents=True)
        (work / "role").write_bytes(bind(program, deployment.binding(role)))
        (work / "role").chmod(0o700)
        (work / "samples").write_bytes(deployment.planned.samples_of(role))
    begun = time.perf_counter()
    roles = [
        subprocess.Popen([str(work / "role"), str(work)], stdout=subprocess.DEVNULL)
        for work in folder.iterdir()
    ]
    codes = [role.wait() for role in roles]
    seconds = time.perf_counter() - begun
    shutil.rmtree(folder)
    if any(codes):
        raise ChildProcessError(f"the pair did not run to its end: exit codes {codes}")
    return seconds / ROUNDS


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _compile(folder: Path) -> Path:
    source, program = Path(__file__).with_name("pingpong.c"), folder / "pingpong"
    compiler = ["cc"] if shutil.which("cc") else [sys.executable, "-m", "ziglang", "cc"]
    quietly([*compiler, "-O2", "-Wall", "-Wextra", str(source), "-o", str(program)], folder)
    return program


def _pingpong(name: str, program: Path, size: int, looks: int) -> Experiment:
    argv = [str(program), str(size), str(ROUNDS), str(looks)]

    def experiment() -> Mapping[str, float]:
        return {name: int(quietly(argv, program.parent)) / 1e9 / ROUNDS}

    return experiment
