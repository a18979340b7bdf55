"""The gate for kernels that needs no card: assembled for the architecture, no spills, nothing contracted.

Knows what a kernel may be; must not know what it computes. Right divisions and square roots are made of fused
operations, and elsewhere there may be none. So an entry with one of these is assembled once more as a copy in
which they are `min` and `abs`, and no fused operation may be left in that
(`docs/adr/0017-contraction-is-looked-for-without-divisions.md`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from orchestrator.build.assembler import Usage, assembled
from orchestrator.build.ptx import OPERATIONS
from orchestrator.errors import Label, Refusal, RefusedError, Where

_ENTRY = re.compile(r"\.visible \.entry (\w+)\(")
_OPERATION = re.compile(r"^(?:@p\d+ )?([a-z][\w.]*)(?: .*)?;$", re.MULTILINE)
_KINDS = re.compile(r"\.f(?:64|32)$")
_TARGET = re.compile(r"^\.target (sm_\d+)$", re.MULTILINE)
# of one word, of two at once, of words that all threads have alike; `HFMA2` is how constants are moved
_FUSED = re.compile(r"U?[DF]FMA\d?")
# what stands for division and square root in a copy; of as many operands
_INSTEAD = {"div.rn.": "min.", "sqrt.rn.": "abs."}


@dataclass(frozen=True)
class Report:
    """What a module's entries take on one architecture.

    Attributes:
        architecture: such as `sm_86`.
        usage: by entry.
    """

    architecture: str
    usage: Mapping[str, Usage]


def assemble(modules: Mapping[str, str]) -> Mapping[str, Report]:
    """Assembles modules for their target, all at once, and gives what each takes.

    Args:
        modules: PTX by a name for messages; all for one target.

    Raises:
        RefusedError: `ptx` for every spill, local memory, instruction that kernels are not made of, and
            operation fused outside division and square root; `assembler-missing`.
        UndecidedError: a tool cannot be started or does not end.
        ValueError: the modules are for several targets.
    """
    heads = {text[: _first_entry(text)] for text in modules.values()}
    if len(heads) != 1:
        raise ValueError(f"modules of one target are assembled together (got {len(heads)}, expected 1)")
    (head,) = heads
    target = _TARGET.search(head)
    if target is None:
        raise ValueError(f"no target (got {head!r})")
    entries = {
        f"k{number}_{entry}": (module, entry, text)
        for number, (module, ptx) in enumerate(modules.items())
        for entry, text in _entries(ptx)
    }
    copies = {f"copy_{name}": _copy(text) for name, (_, _, text) in entries.items() if _divides(text)}
    texts = {name: text for name, (_, _, text) in entries.items()} | copies
    made = assembled(head + "".join(_named(text, name) for name, text in texts.items()), target[1])
    refusals = []
    for name, (module, entry, text) in entries.items():
        plain = f"copy_{name}" if f"copy_{name}" in copies else name
        fused = made.operations.get(plain, frozenset())
        for what in _problems(text, made.usage.get(name), fused):
            message = f"{entry} is no kernel for {target[1]}: {what}"
            refusals.append(Refusal(Label.PTX, message, Where(module)))
    if refusals:
        raise RefusedError(refusals)
    return {
        module: Report(
            target[1],
            {entry: made.usage[name] for name, (of, entry, _) in entries.items() if of == module},
        )
        for module in modules
    }


def _first_entry(ptx: str) -> int:
    found = _ENTRY.search(ptx)
    return found.start() if found else len(ptx)


def _entries(ptx: str) -> Iterator[tuple[str, str]]:
    """Every entry's name and text."""
    starts = [*_ENTRY.finditer(ptx)]
    ends = [*(found.start() for found in starts[1:]), len(ptx)]
    for found, end in zip(starts, ends, strict=True):
        yield found[1], ptx[found.start() : end]


def _named(text: str, name: str) -> str:
    return _ENTRY.sub(f".visible .entry {name}(", text, count=1)


def _divides(text: str) -> bool:
    return any(operation in text for operation in _INSTEAD)


def _copy(text: str) -> str:
    for operation, other in _INSTEAD.items():
        text = text.replace(operation, other)
    return text


def _problems(text: str, usage: Usage | None, operations: frozenset[str]) -> Iterator[str]:
    """What is wrong with an entry; `operations` are the machine's, of its copy where it divides."""
    for operation in sorted({_KINDS.sub(".f", each) for each in _OPERATION.findall(text)} - OPERATIONS):
        yield f"an instruction that kernels are not made of (got {operation}, expected one documented)"
    if usage is None or not operations:
        yield "the tools report nothing of it (got no usage or no code, expected both)"
        return
    if usage.spills or usage.stack:
        got = f"{usage.spills} bytes of spills, {usage.stack} of local memory"
        yield f"registers do not suffice (got {got}, expected 0)"
    if fused := sorted(filter(_FUSED.fullmatch, operations)):
        yield f"operations are contracted (got {', '.join(fused)}, expected none outside / and sqrt)"
