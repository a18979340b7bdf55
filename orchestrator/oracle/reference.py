"""What a plan must yield: parameters, optimizer state, losses and `state` digests after each update.

Written from the plan and the sample words alone. A round: every owner sums its contributions and results
from +0.0 in sample order; the sums are combined left-deep in role order, the sample mass with them; the
update reads totals divided by the total mass. `loss` of version v is the total at the parameters that update
v read.
"""

from __future__ import annotations

import hashlib
import math
import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.oracle.arithmetic import Store, compile_statements, divide
from orchestrator.plan.model import Plan, Role


class NonFiniteError(Exception):
    """The declared arithmetic leaves the finite numbers: a role must say `non-finite` in this round."""

    def __init__(self, version: int, what: str) -> None:
        super().__init__(f"{what} is not finite at update {version}")
        self.version = version


@dataclass(frozen=True)
class Version:
    """The state after `number` updates.

    Attributes:
        number: updates made.
        words: the state vector.
        results: evaluation sums at the state that update `number` read, by name; empty for version 0.
    """

    number: int
    words: tuple[float, ...]
    results: dict[str, float]

    @property
    def state(self) -> str:
        """The `state` digest."""
        return state_digest(self.words)


def state_digest(words: Sequence[float]) -> str:
    """SHA-256 over the words, little-endian binary64, in field and index order."""
    return hashlib.sha256(struct.pack(f"<{len(words)}d", *words)).hexdigest()


def bits(value: float) -> str:
    """A binary64 number as 16 hexadecimal digits, most significant first."""
    return struct.pack(">d", value).hex()


def from_bits(text: str) -> float:
    """The number whose bits these 16 hexadecimal digits are.

    Raises:
        ValueError: not 16 hexadecimal digits.
    """
    if len(text) != 16:  # noqa: PLR2004  # 64 bits, four a digit
        raise ValueError(f"not a binary64 word (got {text!r}, expected 16 hexadecimal digits)")
    return float(struct.unpack(">d", bytes.fromhex(text))[0])


class Reference:
    """The reference realization of one plan over its sample words."""

    def __init__(self, plan: Plan, words: array[float]) -> None:
        self._plan = plan
        system = plan.system
        width = system.sample_words
        self._rows = [words[row * width : (row + 1) * width].tolist() for row in range(system.rows)]
        self._inner: Store = {
            field.name: [0.0] * field.size for field in (*system.parameters, *system.sample)
        }
        self._sample_program = compile_statements(system.contribution + system.evaluate, self._inner)
        self._outer: Store = {field.name: [0.0] * field.size for field in system.state_fields}
        self._outer |= {f"mean_{field.name}": [0.0] * field.size for field in system.contributions}
        self._outer["rate"] = [system.rate]
        self._update_program = compile_statements(system.update, self._outer)

    def initial(self) -> Version:
        """Version 0."""
        words = tuple(word for field in self._plan.system.state_fields for word in field.initial)
        return Version(0, words, {})

    def versions(self, start: Version | None = None) -> Iterator[Version]:
        """The versions after `start` (after version 0 if there is none), without end.

        Raises:
            NonFiniteError: where a total or a new state word is not finite.
        """
        version = start or self.initial()
        while True:
            version = self._advance(version)
            yield version

    def at(self, number: int) -> Version:
        """The version after `number` updates from the initial state."""
        version = self.initial()
        for _ in range(number):
            version = self._advance(version)
        return version

    def evaluate(self, version: Version) -> dict[str, float]:
        """Results summed over all samples at this version's parameters, by name."""
        total = self._total(version, version.number)
        return self._results(total)

    def contribution(self, role: Role, version: Version) -> list[float]:
        """What one owner adds to a round: contributions, results, mass, from +0.0 in sample order."""
        system = self._plan.system
        self._load(self._inner, version, parameters_only=True)
        sources = [self._inner[field.name] for field in system.contributions] + [
            self._inner[name] for name in system.results
        ]
        sums = [0.0] * (system.combined_words - 1)
        for row in self._rows[role.first_sample : role.first_sample + role.samples]:
            at = 0
            for field in system.sample:
                self._inner[field.name][:] = row[at : at + field.size]
                at += field.size
            for step in self._sample_program:
                step()
            at = 0
            for words in sources:
                for word in words:
                    sums[at] = sums[at] + word
                    at += 1
        return [*sums, float(role.samples)]

    def _advance(self, version: Version) -> Version:
        number = version.number + 1
        total = self._total(version, number)
        mass = total[-1]
        self._load(self._outer, version, parameters_only=False)
        at = 0
        for field in self._plan.system.contributions:
            self._outer[f"mean_{field.name}"][:] = [
                divide(word, mass) for word in total[at : at + field.size]
            ]
            at += field.size
        for step in self._update_program:
            step()
        words = tuple(word for field in self._plan.system.state_fields for word in self._outer[field.name])
        if not all(math.isfinite(word) for word in words):
            raise NonFiniteError(number, "the new state")
        return Version(number, words, self._results(total))

    def _total(self, version: Version, number: int) -> list[float]:
        total: list[float] | None = None
        for role in self._plan.roles:
            own = self.contribution(role, version)
            total = own if total is None else [left + right for left, right in zip(total, own, strict=True)]
        if total is None or not all(math.isfinite(word) for word in total):
            raise NonFiniteError(number, "the combined total")
        return total

    def _results(self, total: list[float]) -> dict[str, float]:
        names = self._plan.system.results
        return dict(zip(names, total[-1 - len(names) : -1], strict=True))

    def _load(self, store: Store, version: Version, *, parameters_only: bool) -> None:
        system = self._plan.system
        at = 0
        for field in system.parameters if parameters_only else system.state_fields:
            store[field.name][:] = version.words[at : at + field.size]
            at += field.size
