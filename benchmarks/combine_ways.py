"""Ways to add vectors up over all processes: orch's roles, gloo, MPICH, and a stream that adds nothing.

Each way takes a number of processes, bytes and rounds, and gives nanoseconds. Knows how each is built and
started; must not know which sizes are compared.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from benchmarks import mesh
from benchmarks.measure import quietly

PEERS = Path(__file__).with_name("combine_peers")
PACKAGES = ("torch==2.13.0", "numpy==2.4.6", "mpich==5.0.2")
WORD_BYTES = 8

Way = Callable[[int, int], int]
"""(bytes, rounds) -> nanoseconds, of a fixed number of processes."""


def ours(program: Path, roles: int) -> Way:
    """Frames, identity checks and deadlines in force; the order of a star."""

    def way(size: int, rounds: int) -> int:
        what = mesh.Rounds(roles, roles - 1, "chosen", size // WORD_BYTES, rounds)
        return int(mesh.run(program, what)[0])

    return way


def stream(program: Path, roles: int) -> Way:
    """One process sends another all the bytes that any all-reduce must move, and nobody adds."""

    def way(size: int, rounds: int) -> int:
        return int(quietly([str(program), str(2 * (roles - 1) * size), str(rounds)], program.parent))

    return way


def mpich(python: Path, folder: Path, ranks: int) -> Way:
    """MPICH, made to use TCP within a machine."""
    tools, program = python.parent, folder / "mpi"
    quietly([str(tools / "mpicc"), "-O2", str(PEERS / "mpi.c"), "-o", str(program)], folder)
    settings = {
        "MPIR_CVAR_NOLOCAL": "1",
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": "lo",
    }

    def way(size: int, rounds: int) -> int:
        argv = [str(tools / "mpiexec.hydra"), "-n", str(ranks), str(program), str(size), str(rounds)]
        return int(quietly(argv, folder, **settings))

    return way


class Gloo(AbstractContextManager["Gloo"]):
    """Ranks of one process group, which sleep while they are not asked."""

    def __init__(self, python: Path, folder: Path, ranks: int) -> None:
        store = folder / f"gloo-{ranks}"
        command = [str(python), str(PEERS / "gloo.py")]
        self._ranks = [
            subprocess.Popen(
                [*command, str(rank), str(ranks), str(store)],
                env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(ranks)
        ]

    def __call__(self, size: int, rounds: int) -> int:
        """The way."""
        for rank in self._ranks:
            assert rank.stdin is not None
            print(size, rounds, file=rank.stdin, flush=True)
        said = [rank.stdout.readline() for rank in self._ranks if rank.stdout is not None]
        return int(said[0])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for rank in self._ranks:
            rank.communicate()


def compiled(name: str, folder: Path) -> Path:
    """Give a peer's program."""
    compiler: Sequence[str] = ["cc"] if shutil.which("cc") else [sys.executable, "-m", "ziglang", "cc"]
    program = folder / name
    quietly([*compiler, "-O2", "-Wall", "-Wextra", str(PEERS / f"{name}.c"), "-o", str(program)], folder)
    return program
