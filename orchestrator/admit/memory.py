"""Host memory of a role: what its program holds, line by line with the arithmetic.

A native role allocates nothing after its start: every array has its size from the plan, so these lines are
the program's own arrays (`roles/native/`), and a test compares their total with the ELF file's segments. An
emulator's own memory is not the program's and is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.plan.model import Plan, Role, System
from orchestrator.plan.tree import Assignment, Binary, Expression, Negate, SquareRoot

WORD = 8
# what no plan changes: code, constants, stack, SHA-256, room for strangers at the root's port
PROGRAM_BYTES = 32 * 1024
# at most, for each: a socket with its hello, two frames and a digest; a name twice; a line of results
PEER_BYTES = 1024
FIELD_BYTES = 512
RESULT_BYTES = 1024
OPERATION_BYTES = 64
# the text of a manifest: room that every program has, or what the plan's own needs if that is more
MANIFEST_BYTES = 64 * 1024
MANIFEST_ROLE_BYTES = 512
MANIFEST_REGION_BYTES = 256
REGION_BYTES = 16
RUN_BYTES = 16


@dataclass(frozen=True)
class DemandLine:
    """One part of a role's memory. `formula` is the arithmetic as people read it; `bytes` its value."""

    what: str
    formula: str
    bytes: int


@dataclass(frozen=True)
class Demand:
    """All that a role's program holds in host memory."""

    role: str
    lines: tuple[DemandLine, ...]

    @property
    def total(self) -> int:
        """Bytes."""
        return sum(line.bytes for line in self.lines)


def demand(plan: Plan, role: Role) -> Demand:
    """What one role's program holds: never less than its file's segments, and little more."""
    return Demand(role.name, (*_learner(plan.system, role), *_combine(plan, role), *_program(plan)))


def _learner(system: System, role: Role) -> Iterable[DemandLine]:
    """The system's own words, and what one owner computes over its samples."""
    yield _words(
        "samples", f"{role.samples} rows x {system.sample_words} words", role.samples * system.sample_words
    )
    yield _words("parameters and state", f"{system.state_words} words", system.state_words)
    runs = sum(len(field.initial_runs) for field in system.state_fields)
    yield _each("initial state", f"{runs} runs of equal words", runs, RUN_BYTES)
    means = sum(field.size for field in system.contributions)
    yield _words("means", f"{means} words", means)
    updating = _temporary(system.update)
    yield _words("temporaries of the update", f"{updating} words", updating)
    # an owner of no samples has no program for one
    terms = system.combined_words - 1 if role.samples else 0
    yield _words("one sample's terms", f"{terms} words", terms)
    held = {field.name for field in system.contributions}
    sampling = _temporary(s for s in system.contribution if s.target not in held) if role.samples else 0
    yield _words("temporaries of a sample", f"{sampling} words", sampling)


def _temporary(statements: Iterable[Assignment]) -> int:
    return sum(statement.size for statement in statements if statement.local)


def _combine(plan: Plan, role: Role) -> Iterable[DemandLine]:
    """What is sent and received; the root holds every other role's contribution at once."""
    combined, roles = plan.system.combined_words, len(plan.roles)
    yield _words("total", f"{combined} words", combined)
    received = roles if role.index == 0 else 0
    yield _words("contributions", f"{received} of {combined} words", received * combined)
    yield _each("peers", f"{roles} roles", roles, PEER_BYTES)


def _program(plan: Plan) -> Iterable[DemandLine]:
    """Checkpoints, tables and code."""
    system, roles = plan.system, len(plan.roles)
    fields = len(system.state_fields)
    yield _each("restore coverage", f"{system.state_words} words", system.state_words, 1)
    own = roles * (MANIFEST_ROLE_BYTES + fields * MANIFEST_REGION_BYTES)
    manifest = max(MANIFEST_BYTES, own)
    formula = (
        f"the greater of {MANIFEST_BYTES} and {roles} roles x"
        f" ({MANIFEST_ROLE_BYTES} + {fields} fields x {MANIFEST_REGION_BYTES}) bytes"
    )
    yield DemandLine("manifest", formula, manifest)
    yield _each(
        "regions of a publication", f"{roles + 1} x {fields} fields", (roles + 1) * fields, REGION_BYTES
    )
    yield _each("fields and a shard's header", f"{fields} fields", fields, FIELD_BYTES)
    yield _each("results", f"{len(system.results)} results", len(system.results), RESULT_BYTES)
    operations = sum(_operations(s) for s in system.contribution + system.evaluate + system.update)
    yield _each("code of the statements", f"{operations} operations", operations, OPERATION_BYTES)
    yield DemandLine("program and stack", f"{PROGRAM_BYTES} bytes", PROGRAM_BYTES)


def _operations(node: Assignment | Expression) -> int:
    match node:
        case Assignment(_, _, value, _):
            return 1 + _operations(value)
        case Binary(_, left, right):
            return 1 + _operations(left) + _operations(right)
        case Negate(operand) | SquareRoot(operand):
            return 1 + _operations(operand)
        case _:
            return 1


def _words(what: str, formula: str, words: int) -> DemandLine:
    return _each(what, formula, words, WORD)


def _each(what: str, formula: str, count: int, size: int) -> DemandLine:
    return DemandLine(what, f"{formula} x {size} bytes", count * size)
