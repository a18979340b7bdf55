"""Plan and role to program: copies the sources beside the rendered header and runs the pinned compiler there.

Knows the compiler and its flags; knows no deployment. A program is a function of header, sources, flags and
compiler alone: the same bytes come from any folder, cache and user.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from orchestrator.build.render import TEMPLATE, render_header
from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.plan.model import Plan, Role

TARGETS = ("x86_64-linux", "aarch64-linux")

FOLDERS = ("runtime", "native")

FLAGS = (
    *("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror"),
    *("-Os", "-Xclang", "-Oz", "-flto", "-fomit-frame-pointer"),
    "-mno-implicit-float",  # no vector registers for moving words about: functions begin and end shorter
    *("-ffreestanding", "-nostdlib", "-static", "-s"),
    *("-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-Wl,--build-id=none"),
    *("-fno-stack-protector", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"),
    "-fno-math-errno",  # a square root is one instruction, not a call
    "-ffp-contract=off",  # last: the compiler's driver sets its own before
)


@dataclass(frozen=True)
class Program:
    """One role's executable with its binding section zeroed.

    Attributes:
        role: the role's name.
        target: what it is made for.
        data: the bytes of the file.
    """

    role: str
    target: str
    data: bytes

    @property
    def sha256(self) -> str:
        """The `program` identity."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self.data)


def build_programs(
    plan: Plan,
    pairings: Sequence[tuple[Role, str]],
    content_root: Path,
    cache: Path | None,
    workers: int | None = None,
) -> tuple[Program, ...]:
    """Every role's program for its target, in the order given, built side by side.

    Raises:
        RefusedError: see `build_program`.
    """
    with ThreadPoolExecutor(max_workers=workers or os.cpu_count() or 1) as pool:
        build = partial(build_program, plan, content_root=content_root, cache=cache)
        return tuple(pool.map(lambda pairing: build(*pairing), pairings))


def build_program(plan: Plan, role: Role, target: str, content_root: Path, cache: Path | None) -> Program:
    """One role's program.

    Args:
        plan: what it computes.
        role: whose it is.
        target: one of `TARGETS`.
        content_root: the folder that holds `roles/`.
        cache: where programs are kept; None keeps nothing.

    Raises:
        RefusedError: `target-unsupported`, or `compiler` with what the compiler said.
    """
    if target not in TARGETS:
        message = (
            f"no native program can be made for this target (got {target}, expected {' or '.join(TARGETS)})"
        )
        raise RefusedError([Refusal(Label.TARGET_UNSUPPORTED, message, Where(role.name))])
    sources = _sources(content_root / "roles", plan, role)
    kept = None if cache is None else cache / "programs" / _key(sources, target)
    data = None if kept is None else _recall(kept)
    if data is None:
        data = _compile(sources, role, target)
        if kept is not None:
            _keep(kept, data)
    return Program(role.name, target, data)


def _sources(roles: Path, plan: Plan, role: Role) -> dict[str, bytes]:
    """What the compiler sees, by name: all C files of the two folders, and the rendered header."""
    files = {
        f"{folder}/{path.name}": path.read_bytes()
        for folder in FOLDERS
        for path in sorted((roles / folder).glob("*.[ch]"))
    }
    files[f"native/{TEMPLATE.removesuffix('.j2')}"] = render_header(plan, role, roles / "native").encode()
    return files


def _key(sources: dict[str, bytes], target: str) -> str:
    key = hashlib.sha256()
    for part in (version("ziglang"), target, *FLAGS, *sources):
        key.update(f"{len(part)}:{part}".encode())
    for data in sources.values():
        key.update(hashlib.sha256(data).digest())
    return key.hexdigest()


def _recall(kept: Path) -> bytes | None:
    """A program from the cache, unless its bytes are not those that were put there."""
    try:
        stored = kept.read_bytes()
    except OSError:
        return None
    digest, data = stored[:32], stored[32:]
    return data if hashlib.sha256(data).digest() == digest else None


def _keep(kept: Path, data: bytes) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as file:
        file.write(hashlib.sha256(data).digest() + data)
    Path(file.name).replace(kept)


def _compile(sources: dict[str, bytes], role: Role, target: str) -> bytes:
    folder = Path(tempfile.mkdtemp(prefix="orch-build-"))
    try:
        for name, data in sources.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(folder),
            # in a folder of its own every file is new: a cache that stays would only grow
            "ZIG_GLOBAL_CACHE_DIR": str(folder / "zig"),
            "ZIG_LOCAL_CACHE_DIR": str(folder / "zig"),
        }
        units = [name for name in sources if name.endswith(".c")]
        includes = [f"-I{each}" for each in FOLDERS]
        command = [
            sys.executable,
            "-m",
            "ziglang",
            "cc",
            "-target",
            target,
            *includes,
            *units,
            "-o",
            "program",
        ]
        done = subprocess.run(
            [*command, *FLAGS], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            message = f"the compiler refuses the program of {role.name}: {done.stderr.strip()}"
            raise RefusedError([Refusal(Label.COMPILER, message, Where(role.name))])
        return (folder / "program").read_bytes()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
