"""NVIDIA's assembler and disassembler: where they are, how they are run, how what they say reads.

Knows the two programs; must not know which kernels are good ones. Neither needs a card.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from orchestrator.errors import Label, Refusal, RefusedError, UndecidedError, Where

ASSEMBLER, DISASSEMBLER = "ptxas", "nvdisasm"
INSTALL = "pip install 'orch-qualify[device]'"
DEADLINE_S = 300.0
_WHEEL = "nvidia.cu13"

_ENTRY = re.compile(r"Function properties for (\w+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+) bytes smem")
_SECTION = re.compile(r"\.section\s+\.text\.(\w+),")
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d\s+)?([A-Z][A-Z0-9_]*)")


@dataclass(frozen=True)
class Usage:
    """What one entry takes of a card for each thread; of `shared` for each block.

    Attributes:
        registers: of 32 bits.
        stack: bytes of local memory.
        spills: bytes of stores and loads of registers that there was no room for.
        shared: bytes of memory that a block shares.
    """

    registers: int
    stack: int
    spills: int
    shared: int


@dataclass(frozen=True)
class Assembled:
    """A module, assembled.

    Attributes:
        usage: by entry.
        operations: by entry, the machine's operations in it, without what they carry after a dot.
    """

    usage: Mapping[str, Usage]
    operations: Mapping[str, frozenset[str]]


def assembled(ptx: str, architecture: str) -> Assembled:
    """What becomes of a module on an architecture such as `sm_86`.

    Raises:
        RefusedError: `assembler-missing`; `ptx` with what the assembler said.
        UndecidedError: a tool cannot be started or does not end.
    """
    tools = [_found(name) for name in (ASSEMBLER, DISASSEMBLER)]
    with tempfile.TemporaryDirectory(prefix="orch-ptx-") as folder:
        (Path(folder) / "kernels.ptx").write_text(ptx, encoding="ascii")
        said = _run(
            tools[0], ("-v", "-arch", architecture, "kernels.ptx", "-o", "kernels.cubin"), folder, "kernels"
        )
        code = _run(tools[1], ("-c", "-ndf", "kernels.cubin"), folder, "what was assembled")
    return Assembled(dict(_usage(said)), _operations(code))


def _found(name: str) -> str:
    """Where the wheel has a tool, else the PATH."""
    try:
        spec = find_spec(_WHEEL)
    except ModuleNotFoundError:
        spec = None
    for folder in (spec and spec.submodule_search_locations) or ():
        if (tool := Path(folder) / "bin" / name).is_file():
            return str(tool)
    if tool_on_path := shutil.which(name):
        return tool_on_path
    message = f"kernels cannot be assembled (got no {name}, expected it in the wheel or on PATH)"
    raise RefusedError([Refusal(Label.ASSEMBLER_MISSING, message, Where(name), hint=INSTALL)])


def _run(tool: str, arguments: Sequence[str], folder: str, what: str) -> str:
    """What the tool says, of both streams."""
    try:
        done = subprocess.run(
            [tool, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UndecidedError(f"{tool} did not end within {DEADLINE_S:g} s") from error
    except OSError as error:
        raise UndecidedError(f"{tool} cannot be started: {error.strerror or error}") from error
    said = (done.stdout + done.stderr).decode("utf-8", "replace")
    if done.returncode < 0:
        raise UndecidedError(f"{tool} was ended by signal {-done.returncode}")
    if done.returncode:
        message = f"{Path(tool).name} refuses {what} (got {said.strip()!r}, expected no complaint)"
        raise RefusedError([Refusal(Label.PTX, message, Where("kernels.ptx"))])
    return said


def _usage(said: str) -> Iterator[tuple[str, Usage]]:
    """Of every entry that the report has whole."""
    _, *parts = _ENTRY.split(said)
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        stack, used = _STACK.search(text), _USED.search(text)
        if stack and used:
            shared = _SHARED.search(used[2])
            spills = int(stack[2]) + int(stack[3])
            yield name, Usage(int(used[1]), int(stack[1]), spills, int(shared[1]) if shared else 0)


def _operations(code: str) -> Mapping[str, frozenset[str]]:
    _, *parts = _SECTION.split(code)
    texts = zip(parts[::2], parts[1::2], strict=True)
    return {name: frozenset(_INSTRUCTION.findall(text)) for name, text in texts}
