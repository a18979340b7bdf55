"""Roles that do nothing but combine: their program, and processes of it with a connection between any two.

Knows the program's command line; must not know what is measured or what its words are.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.content import CONTENT, TARGET
from orchestrator.build.compile import FLAGS, STATIC

SOURCES = Path(__file__).with_name("combine_role")
RUNTIME = ("clock", "exchange", "files", "frame", "memory", "net", "refuse", "text")
SCHEDULES = ("gather", "slices", "root", "chosen")
"""As the program numbers them; the last leaves it to the program."""

Row = list[socket.socket | None]


@dataclass(frozen=True)
class Rounds:
    """What the roles do.

    Attributes:
        roles: how many there are.
        fan_out: of the tree whose order the additions have.
        schedule: one of `SCHEDULES`.
        words: in the vector.
        rounds: how many are timed; 0 for one over given words.
    """

    roles: int
    fan_out: int
    schedule: str
    words: int
    rounds: int = 0


def compile_role(folder: Path, target: str = TARGET, more: Sequence[str] = ()) -> Path:
    """Give the program, compiled with the flags of role programs and `more`."""
    program = folder / "combine_role"
    roles = CONTENT / "roles"
    units = [SOURCES / "main.c", roles / "native" / "schedule.c"]
    units += [roles / "runtime" / f"{name}.c" for name in RUNTIME]
    includes = [f"-I{each}" for each in (SOURCES, roles / "runtime", roles / "native")]
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, STATIC, *FLAGS, *more, *includes]
    cache = str(folder / "zig")
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
    subprocess.run([*command, *map(str, units), "-o", str(program)], env=environment, check=True)
    return program


def run(
    program: Path, what: Rounds, given: Sequence[bytes] | None = None, emulator: Sequence[str] = ()
) -> tuple[bytes, ...]:
    """Run every role to its end and give what each printed; `given` is each one's standard input.

    Raises:
        ChildProcessError: a role refused.
    """
    connections = _mesh(what.roles)
    processes = [_start([*emulator, str(program)], what, role, row) for role, row in enumerate(connections)]
    for row in connections:
        for end in row:
            if end is not None:
                end.close()
    inputs = given or [b""] * what.roles
    with ThreadPoolExecutor(what.roles) as pool:
        said = tuple(pool.map(lambda process, data: process.communicate(data), processes, inputs))
    if any(process.returncode for process in processes):
        raise ChildProcessError(f"roles did not combine: {[complaint for _, complaint in said]}")
    return tuple(out for out, _ in said)


def _mesh(roles: int) -> list[Row]:
    """Every role's row: its end of a TCP connection to each other one."""
    connections: list[Row] = [[None] * roles for _ in range(roles)]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for one in range(roles):
            for other in range(one):
                ends = socket.create_connection(listener.getsockname()), listener.accept()[0]
                for end in ends:
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    end.settimeout(0)
                connections[one][other], connections[other][one] = ends
    return connections


def _start(command: Sequence[str], what: Rounds, role: int, row: Row) -> subprocess.Popen[bytes]:
    files = [-1 if end is None else end.fileno() for end in row]
    numbers = (role, what.roles, what.fan_out, SCHEDULES.index(what.schedule), what.words, what.rounds)
    return subprocess.Popen(
        [*command, *map(str, numbers), *("0" if file < 0 else str(file) for file in files)],
        pass_fds=[file for file in files if file >= 0],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
