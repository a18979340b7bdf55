"""Host memory of a role: what its program holds, line by line with the arithmetic.

A native role allocates nothing after its start: every array has its size from the plan, so these lines are the
program's own arrays (`roles/native/`), and a test compares their total with the ELF file's segments. An
emulator's own memory is not the program's and is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.plan.model import Plan, Role

WORD = 8
# code, constants, stack, SHA-256 and header buffers; checked against the programs, not derived from the plan
PROGRAM_BYTES = 96 * 1024
PEER_BYTES = 1024


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
    """What one role's program holds."""
    system = plan.system
    combined, roles = system.combined_words, len(plan.roles)
    received = roles if role.index == 0 else 1
    means = sum(field.size for field in system.contributions)
    return Demand(
        role.name,
        (
            _words(
                "samples",
                f"{role.samples} rows x {system.sample_words} words",
                role.samples * system.sample_words,
            ),
            _words("parameters and state", f"{system.state_words} words", system.state_words),
            _words("contributions", f"{received} of {combined} words", received * combined),
            _words("sums and total", f"2 x {combined} words", 2 * combined),
            _words("means", f"{means} words", means),
            DemandLine("restore coverage", f"{system.state_words} x 1 byte", system.state_words),
            DemandLine("peers", f"{roles} x {PEER_BYTES} bytes", roles * PEER_BYTES),
            DemandLine("program and stack", f"{PROGRAM_BYTES} bytes", PROGRAM_BYTES),
        ),
    )


def _words(what: str, formula: str, words: int) -> DemandLine:
    return DemandLine(what, f"{formula} x {WORD} bytes", words * WORD)
