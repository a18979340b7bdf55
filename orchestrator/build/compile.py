"""Plan and role to program: the sources and the rendered header, through the pinned compiler.

Knows the sources and the flags; knows no deployment, and not how a compiler is run. A program is a function
of header, sources, flags and compiler alone: the same bytes come from any folder, cache and user.

There are two kinds. A role that computes on the host is static. One that has a card loads the driver's
library, which a static program cannot: it has an interpreter, and takes two functions from the node's libdl.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.build.cached import build_all, go_on
from orchestrator.build.compiler import PROGRAM, Task
from orchestrator.build.render import TEMPLATE, render_header
from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.plan.model import Plan, Role
from orchestrator.spec.device import DeviceSpec

TARGETS = ("x86_64-linux", "aarch64-linux")

FOLDERS = ("runtime", "native")
UNIT = "program.c"
"""All C files as one: names at file scope must differ between them, static ones too."""

COMMON_FLAGS = (
    *("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror"),
    *("-ffreestanding", "-nostdlib", "-s"),
    *("-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-Wl,--build-id=none"),
    *("-fno-stack-protector", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"),
    "-fno-math-errno",  # a square root is one instruction, not a call
    "-ffp-contract=off",  # last: the compiler's driver sets its own before
)
"""What all C of ours is compiled with; they end a command."""
FLAGS = (
    *("-Os", "-Xclang", "-Oz", "-flto", "-fomit-frame-pointer"),
    "-mno-implicit-float",  # no vector registers for moving words about: functions begin and end shorter
    *COMMON_FLAGS,
)
STATIC = "-static"

LIBRARY = "libdl.so.2"
LIBRARY_SOURCE = "link/libdl.c"
"""What stands for the library while a device role is linked; the node's own may be of any age."""

_LIBRARY_FLAGS = ("-shared", "-nostdlib", "-ffreestanding", "-Wl,--build-id=none", f"-Wl,-soname,{LIBRARY}")
_DYNAMIC = (
    *("-no-pie", "-fvisibility=hidden"),
    *("-Wl,-z,now", "-Wl,-z,norelro"),  # two pointers, bound before it begins: no page of their own
    "-Wl,--hash-style=sysv",  # that table says how many symbols there are
)

INTERPRETERS = {"x86_64-linux": "/lib64/ld-linux-x86-64.so.2", "aarch64-linux": "/lib/ld-linux-aarch64.so.1"}
"""Which program loads a dynamic one: part of each platform's ABI."""

DEVICE_FILES = (
    *("runtime/device.c", "runtime/inventory.c", "runtime/dl.c"),
    "native/learner_device.c",
)
"""What only roles with a card are made of."""


@dataclass(frozen=True)
class Made:
    """What a role's program is made for.

    Attributes:
        target: one of `TARGETS`.
        device: the profile of its card; None for a role that computes on the host.
    """

    target: str
    device: DeviceSpec | None = None


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


def build_programs(  # noqa: PLR0913  # what programs are made of, and how
    plan: Plan,
    pairings: Sequence[tuple[Role, Made]],
    content_root: Path,
    cache: Path | None,
    *,
    workers: int | None = None,
    check: Callable[[], None] = go_on,
) -> tuple[Program, ...]:
    """Every role's program, in the order given, built side by side.

    Args:
        plan: what they compute.
        pairings: roles, each with what its program is made for.
        content_root: the folder that holds `roles/`.
        cache: where programs are kept; None keeps nothing, and one that cannot be used is as none.
        workers: how many compilers may run at once; as many as there are processors if None.
        check: asked again and again while they run; what it raises ends them.

    Raises:
        RefusedError: `target-unsupported`, or `compiler` with what the compiler said.
        UndecidedError: the compiler cannot be started, was ended by a signal, or did not end in time.
    """
    tasks = [_task(content_root / "roles", plan, role, made) for role, made in pairings]
    built = build_all(tasks, cache, workers, check)
    return tuple(
        Program(role.name, made.target, data) for (role, made), data in zip(pairings, built, strict=True)
    )


def build_program(plan: Plan, role: Role, made: Made, content_root: Path, cache: Path | None) -> Program:
    """One role's program; see `build_programs`."""
    (program,) = build_programs(plan, [(role, made)], content_root, cache)
    return program


def _task(roles: Path, plan: Plan, role: Role, made: Made) -> Task:
    target = made.target
    if target not in TARGETS:
        expected = " or ".join(TARGETS)
        message = f"no native program can be made for this target (got {target}, expected {expected})"
        raise RefusedError([Refusal(Label.TARGET_UNSUPPORTED, message, Where(role.name))])
    sources = _sources(roles, plan, role, made.device)
    includes = [f"-I{each}" for each in FOLDERS]
    arguments = ("-target", target, *includes, UNIT, "-o", PROGRAM)
    if made.device is None:
        return Task(role.name, (*arguments, STATIC, *FLAGS), sources)
    loader = f"-Wl,-dynamic-linker,{INTERPRETERS[target]}"
    library = ("-target", target, LIBRARY_SOURCE, "-o", LIBRARY, *_LIBRARY_FLAGS)
    sources[LIBRARY_SOURCE] = (roles / LIBRARY_SOURCE).read_bytes()
    return Task(role.name, (*arguments, LIBRARY, loader, *_DYNAMIC, *FLAGS), sources, before=library)


def _sources(roles: Path, plan: Plan, role: Role, device: DeviceSpec | None) -> dict[str, bytes]:
    """What the compiler sees, by name: the C files of both folders, the rendered header, the one unit."""
    files = {
        f"{folder}/{path.name}": path.read_bytes()
        for folder in FOLDERS
        for path in sorted((roles / folder).glob("*.[ch]"))
        if device is not None or f"{folder}/{path.name}" not in DEVICE_FILES
    }
    # one unit: every header is read once, and one compiler instead of twenty works at half the cost
    files[UNIT] = "".join(f'#include "{name}"\n' for name in files if name.endswith(".c")).encode()
    header = render_header(plan, role, roles / "native", device)
    files[f"native/{TEMPLATE.removesuffix('.j2')}"] = header.encode()
    return files
