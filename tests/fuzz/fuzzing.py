"""Fuzzed parts of the roles: the sources of a native role on a machine that is made of the input.

Builds each target with whatever C compiler with sanitizers is here; with clang's libFuzzer for long runs:
`python tests/fuzz/fuzzing.py MINUTES FOLDER [TARGET ...]` spends as many minutes in all, keeps what it found
in the folder, and fails if a target did.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from array import array
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.plan.model import Plan

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPUS = HERE / "corpus"
TARGETS = ("frame", "scan", "samples", "exchange", "meeting", "restore")
SECONDS_IN_A_MINUTE = 60
EPOCH = 1000  # that the restore target restores in

# Of the role's sources those that reach the machine are left out: `targets/machine.c` takes their place.
_REPLACED = {"main.c", "files.c", "net.c", "clock.c", "refuse.c"}
_SANITIZERS = "-fsanitize=address,undefined"
_FLAGS = ("-std=gnu11", "-O1", "-g", "-ffp-contract=off", "-fno-sanitize-recover=all", "-fno-builtin", "-w")
# the freestanding runtime has its own; the sanitizers watch the library's
_RENAMED = tuple(f"-D{name}=runtime_{name}" for name in ("memcpy", "memmove", "memset", "memcmp"))


def standalone_compiler() -> str | None:
    """A compiler whose programs can be watched; None if there is none here."""
    return next((found for name in ("clang", "gcc") if (found := shutil.which(name))), None)


def header(folder: Path) -> None:
    """`plan.h` of a root with two kinds of fields."""
    from orchestrator.build.render import render_header

    plan = planned()
    (folder / "plan.h").write_text(render_header(plan, plan.roles[0], ROOT / "roles" / "native", None))


def planned() -> Plan:
    """The plan that targets are made of: a star with five fields of two sizes."""
    from orchestrator.plan.derive import derive
    from orchestrator.spec.read import read_run

    return derive(read_run(ROOT / "specs" / "runs" / "adam.yaml")).plan


def build(target: str | Path, folder: Path, compiler: str, *, library: bool = False) -> Path:
    """A target as a program.

    Args:
        target: one of `TARGETS`, or the source of another.
        folder: for `plan.h`, objects and the program.
        compiler: clang or gcc.
        library: whether libFuzzer drives it, which clang alone has; else `targets/standalone.c` does.
    """
    from orchestrator.build.compile import DEVICE_FILES

    if not (folder / "plan.h").exists():
        header(folder)
    own = target if isinstance(target, Path) else HERE / "targets" / f"{target}.c"
    roles = [*(ROOT / "roles" / "runtime").glob("*.c"), *(ROOT / "roles" / "native").glob("*.c")]
    within = own.read_text()  # a target that looks inside a source holds it
    left_out = {path.name for path in roles if f'/{path.name}"' in within}
    left_out |= {Path(name).name for name in DEVICE_FILES}  # this one computes on its host
    sources = [path for path in sorted(roles) if path.name not in _REPLACED | left_out]
    driver = () if library else (HERE / "targets" / "standalone.c",)
    sources += [HERE / "targets" / "machine.c", own, *driver]
    sanitizers = _SANITIZERS + (",fuzzer" if library else "")
    flags = [
        *_FLAGS,
        *(("-D__builtin_memcpy_inline=__builtin_memcpy",) if Path(compiler).name == "gcc" else ()),
    ]
    includes = [f"-I{folder}", *(f"-I{ROOT / 'roles' / part}" for part in ("runtime", "native"))]
    includes.append(f"-I{HERE / 'targets'}")
    objects = []
    for source in sources:
        made = folder / f"{source.parent.name}-{source.stem}{'-library' if library else ''}.o"
        renamed = _RENAMED if source.name == "memory.c" else ()
        command = [compiler, *flags, *renamed, sanitizers, *includes, "-c", str(source), "-o", str(made)]
        if not made.exists():  # most of it is the same in every target
            subprocess.run(command, check=True)
        objects.append(str(made))
    program = folder / own.stem
    subprocess.run([compiler, sanitizers, *objects, "-lm", "-o", str(program)], check=True)
    return program


def seeds(target: str) -> dict[str, bytes]:
    """Inputs that a target begins from, besides its corpus: those that are right in every way."""
    if target == "restore":
        return {
            f"{name}-{fit}": bytes([fit]) + in_one(files) for name, files in sets().items() for fit in (0, 1)
        }
    if target == "samples":
        plan = planned()
        words = plan.system.sample_words * plan.roles[0].samples
        return {"ones": struct.pack("<d", 1.0) * words}
    if target == "scan":
        digest, run = "ab" * 32, "01" * 16
        return {"text": f'{{"list":[0,17],"long":"{digest}","name":"7.a-b_c.d","short":"{run}"}}'.encode()}
    if target == "exchange":
        return {"whole": b"\xff\xff", "pieces": b"\x06\x10", "cut": bytes((200, 3)) + bytes(272) + b"\x55"}
    if target == "meeting":
        whole = bytes(part for child in range(4) for part in (252 + child, 255))
        return {
            "all": bytes([2]) + whole[:6],
            "pieces": bytes((2, 0, 255, 1, 255, 2, 255)),
            "most": bytes([7]) + whole * 2,
        }
    return {"same": bytes(152)}


def sets() -> dict[str, dict[str, bytes]]:
    """Whole checkpoint sets of the plan's system: of one shard, and of a tree of seven owners of words."""
    from orchestrator.oracle.manifest import Capture
    from orchestrator.oracle.publication import write_as, write_set
    from orchestrator.plan.model import Role
    from orchestrator.plan.ownership import Ownership
    from orchestrator.plan.topology import Topology

    plan = planned()
    words = array("d", (index / 8 for index in range(plan.system.state_words)))
    capture = Capture(2, plan.digest, "0189" * 8)
    roles = tuple(Role(f"r{index}", index, 0, 0) for index in range(7))
    tree = replace(
        plan,
        roles=roles,
        topology=Topology("hierarchy", len(roles), 2),
        ownership=Ownership(*["partitioned"] * 3),
    )
    made = {
        "one": write_set(plan.system, 3, words, capture),
        "tree": write_as(tree, 3, words, capture, time_ms=5),
    }
    return {name: as_restored(files) for name, files in made.items()}


def as_restored(files: dict[str, bytes]) -> dict[str, bytes]:
    """A published set under the names that it is restored by, each manifest before those that it names."""
    root = {"manifest.json": files["3.manifest.json"]}
    parts = {name: data for name, data in files.items() if name.endswith("manifest.json")}
    rest = {name: data for name, data in files.items() if name != "3.manifest.json"}
    return {**root, **{name: data for name, data in sorted(rest.items()) if name in parts}, **rest}


def in_one(files: dict[str, bytes]) -> bytes:
    """A set as the restore target reads it."""
    return b"".join(f"{name} {len(data)}\n".encode() + data for name, data in files.items())


def corpus(target: str) -> list[Path]:
    """Inputs that are kept: what once found something, and what reaches far."""
    return sorted((CORPUS / target).glob("*"))


def main(minutes: str, into: str, *targets: str) -> int:
    """A long run; see the module."""
    clang = shutil.which("clang")
    if clang is None:
        sys.stderr.write("libFuzzer comes with clang, which is not here: apt install clang\n")
        return 1
    targets = targets or TARGETS
    seconds = int(float(minutes) * SECONDS_IN_A_MINUTE / len(targets))
    with TemporaryDirectory() as folder:
        failed = [
            each
            for each in targets
            if _finds(each, build(each, Path(folder), clang, library=True), Path(into), seconds)
        ]
    sys.stdout.write(f"failed: {', '.join(failed) or 'none'}\n")
    return 1 if failed else 0


def _finds(target: str, program: Path, into: Path, seconds: int) -> bool:
    """Whether a run of so many seconds finds an input that leads elsewhere."""
    grown, kept = into / target, CORPUS / target
    grown.mkdir(parents=True, exist_ok=True)
    for name, data in seeds(target).items():
        (grown / name).write_bytes(data)
    limits = (f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=40000")
    where = (f"-artifact_prefix={into}/{target}-", grown, *((kept,) if kept.is_dir() else ()))
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # a refusal leaves what it had taken
    command = [program, *limits, "-print_final_stats=1", *where]
    return subprocess.run(command, check=False, env=environment).returncode != 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main(*sys.argv[1:]))
