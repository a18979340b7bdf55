"""Host memory of a role: what its program holds, line by line with the arithmetic.

A native role's arrays have their sizes from the plan, so these lines are the program's own arrays
(`roles/native/`), and a test compares their total with the ELF file's segments. The one thing beside them is
the read replica of partitioned parameters, which is there within a round alone. An emulator's own memory is
not the program's and is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.plan.apart import own_names, own_sample_names
from orchestrator.plan.model import Plan, Role, System
from orchestrator.plan.places import extents
from orchestrator.plan.rounds import may_be_mesh, window_words
from orchestrator.plan.tree import Assignment, Binary, Expression, Negate, SquareRoot

if TYPE_CHECKING:
    from orchestrator.spec.device import DeviceSpec

# what no plan changes: code, constants, stack, SHA-256, room for strangers at the root's port
PROGRAM_BYTES = 64 * 1024
# at most, for each: a socket with its hello, two frames and a digest; a name twice; a line of results
PEER_BYTES = 1024
FIELD_BYTES = 1024
RESULT_BYTES = 1024
OPERATION_BYTES = 64
# of a role with a card: the text of its kernels, what is read of the machine's cards
DEVICE_BYTES = 64 * 1024
# what the driver's library takes of its host for a process
LIBRARY_BYTES = 256 * 1024 * 1024
# the text of a manifest: room that every program has, or what the plan's own needs if that is more
MANIFEST_BYTES = 64 * 1024
MANIFEST_ROLE_BYTES = 512
MANIFEST_REGION_BYTES = 256
RUN_BYTES = 16


# words of one look at a restored field
MOST_RESTORE_WORDS = 32 * 1024
# of a mesh: what one role keeps of another's words until they are added
MOST_INBOX_WORDS = 16 * 1024
# of a mesh, for each way between two of as many roles: a transfer with two frames; a hello for each
MESH_BYTES = 20 * 1024


@dataclass(frozen=True)
class DemandLine:
    """One part of a role's memory. `formula` is the arithmetic as people read it; `bytes` its value.

    Attributes:
        is_persistent: whether it lasts from update to update: its own state, its samples.
        is_static: whether it is an array of the program's own; else each round takes and returns it.
    """

    what: str
    formula: str
    bytes: int
    is_persistent: bool = False
    is_static: bool = True


@dataclass(frozen=True)
class Demand:
    """All that a role's program holds in host memory."""

    role: str
    lines: tuple[DemandLine, ...]

    @property
    def total(self) -> int:
        """Bytes at the peak of a round."""
        return sum(line.bytes for line in self.lines)

    @property
    def persistent(self) -> int:
        """Bytes that last from update to update."""
        return sum(line.bytes for line in self.lines if line.is_persistent)

    @property
    def static(self) -> int:
        """Bytes of the program's own arrays and code."""
        return sum(line.bytes for line in self.lines if line.is_static)


def restore_words(system: System) -> int:
    """Words of a field that a restore looks at at once."""
    return min(MOST_RESTORE_WORDS, max(field.size for field in system.state_fields))


def demand(plan: Plan, role: Role, device: DeviceSpec | None = None) -> Demand:
    """What one role's program holds in host memory: never less than its file's segments, and little more.

    Args:
        plan: what is computed.
        role: whose program.
        device: the profile of its card, where a role has one: there it computes.
    """
    computing = _computing(plan, role) if device is None else _device_host(plan, role)
    lines = (*_held(plan, role), *computing, *_combine(plan, role), *_program(plan, role))
    return Demand(role.name, lines)


def _held(plan: Plan, role: Role) -> Iterable[DemandLine]:
    """The system's own words; of a role with a card, the copies that it sends up and captures."""
    system, size = plan.system, plan.system.word.size
    rows, width = len(plan.rows(role)), sum(plan.columns(field, role).count for field in system.sample)
    yield _words(
        "samples", f"{_count(rows, 'row')} x {_count(width, 'word')}", rows * width, size, is_persistent=True
    )
    words = sum(plan.held(field, role).count for field in system.state_fields)
    of = f"{words} of {_count(system.state_words, 'word')}"
    yield _words("parameters and state held", of, words, size, is_persistent=True)
    # at most, so that it is the same for all roles that hold as many words
    runs = 1 + min(words, sum(len(field.initial_runs) for field in system.state_fields))
    yield _each("initial state", f"{_count(runs, 'run')} of equal words", runs, RUN_BYTES)
    if declared := plan.ownership.declared:
        known = declared + len(plan.topology.children(role.index)) + 1
        yield _each("declared ranges", _count(known, "range"), known, RUN_BYTES)


def _device_host(plan: Plan, role: Role) -> Iterable[DemandLine]:
    """What the host side of a role with a card has besides: what comes down, kernels, a library."""
    sums = extents(plan, role).terms
    yield _words("sums over samples", _count(sums, "word"), sums, plan.system.word.size)
    yield DemandLine("kernels and inventory", f"{DEVICE_BYTES} bytes", DEVICE_BYTES)
    formula = f"{LIBRARY_BYTES} bytes allowed: the driver does not say ahead"
    yield DemandLine("library of the driver", formula, LIBRARY_BYTES, is_static=False)


def _computing(plan: Plan, role: Role) -> Iterable[DemandLine]:
    """What one owner computes over its samples, and in an update."""
    system, size, rows = plan.system, plan.system.word.size, len(plan.rows(role))
    changing = own_names(system) if plan.ownership.is_partitioned else frozenset()
    updating = sum(
        _computed(plan, role, each, changing) for each in system.update + system.local if each.local
    )
    yield _words("temporaries of the update", _count(updating, "word"), updating, size)
    # an owner of no samples has no program for one
    program = system.contribution + system.evaluate if rows else ()
    own: frozenset[str] = frozenset() if system.has_own_rows else own_sample_names(system)
    contributions = {field.name for field in system.contributions}
    terms = sum(_computed(plan, role, each, own) for each in program if each.target in contributions)
    terms += len(system.results) if rows else 0
    yield _words("one sample's terms", _count(terms, "word"), terms, size)
    if system.forward:
        yield _words("sums over samples", _count(terms, "word"), terms, size)
    placed = contributions | set(system.results)
    sampling = sum(_computed(plan, role, each, own) for each in program if each.target not in placed)
    yield _words("temporaries of a sample", _count(sampling, "word"), sampling, size)


def _computed(plan: Plan, role: Role, statement: Assignment, own: frozenset[str]) -> int:
    """Words of a temporary that a role computes; of names that are `own`, those of its coordinates."""
    if statement.target not in own:
        return statement.size
    return plan.ownership.owned(statement.size, role.index, len(plan.roles)).count


def _combine(plan: Plan, role: Role) -> Iterable[DemandLine]:
    """What is sent and received: own sums whole, others' by windows, or as much as waits to be added."""
    size = plan.system.word.size
    combined, neighbours = plan.system.combined_words, len(plan.topology.children(role.index)) + 1
    yield _words("sums and totals", _count(combined, "word"), combined, size)
    others = len(plan.roles) - 1
    is_mesh = may_be_mesh(plan)
    if plan.ownership.is_partitioned or plan.topology.kind == "hierarchy" or not is_mesh:
        window = window_words(plan)
        yield _words("windows", f"{neighbours} x {_count(window, 'word')}", neighbours * window, size)
    if is_mesh:
        inbox = min(MOST_INBOX_WORDS, combined)
        yield _words("inbox of a mesh", f"{others} x {_count(inbox, 'word')}", others * inbox, size)
        yield DemandLine("transfers of a mesh", f"{MESH_BYTES} bytes", MESH_BYTES)
    yield _each("peers", _count(neighbours, "neighbour"), neighbours, PEER_BYTES)
    if plan.system.has_own_rows and plan.ownership.parameters == "partitioned":
        words = sum(field.size for field in plan.system.parameters)
        yield _words("read replica, in a round", _count(words, "word"), words, size, is_static=False)


def _program(plan: Plan, role: Role) -> Iterable[DemandLine]:
    """Checkpoints, tables and code."""
    system, named = plan.system, len(plan.topology.children(role.index)) + 1
    fields = len(system.state_fields)
    window = restore_words(system)
    yield _each("restore window", _count(window, "word"), window, system.word.size + 1)
    own = named * (MANIFEST_ROLE_BYTES + fields * MANIFEST_REGION_BYTES)
    manifest = max(MANIFEST_BYTES, own)
    formula = (
        f"the greater of {MANIFEST_BYTES} and {_count(named, 'role')} x"
        f" ({MANIFEST_ROLE_BYTES} + {_count(fields, 'field')} x {MANIFEST_REGION_BYTES}) bytes"
    )
    yield DemandLine("manifest", formula, manifest)
    yield _each("fields and a shard's header", _count(fields, "field"), fields, FIELD_BYTES)
    yield _each("results", _count(len(system.results), "result"), len(system.results), RESULT_BYTES)
    programs = system.forward + system.contribution + system.evaluate + system.update + system.local
    operations = sum(_operations(statement) for statement in programs)
    yield _each("code of the statements", _count(operations, "operation"), operations, OPERATION_BYTES)
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


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _words(what: str, formula: str, words: int, size: int, **kind: bool) -> DemandLine:
    return DemandLine(what, f"{formula} x {size} bytes", words * size, **kind)


def _each(what: str, formula: str, count: int, size: int) -> DemandLine:
    return DemandLine(what, f"{formula} x {size} bytes", count * size)
