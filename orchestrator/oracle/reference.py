"""What a plan must yield: parameters, optimizer state, losses and `state` digests after each update.

Written from the plan and the sample words alone. A round: every owner sums its contributions and results
from +0.0 in sample order; the sums are combined up the plan's tree, the sample mass with them: a role's
subtotal is its own sums, then its children's subtotals added one by one in their order. The update reads
totals divided by the total mass. `loss` of version v is the total at the parameters that update v read.

Who owns and holds what changes no word of this; it says only which of them a role has (`held_words`).
"""

from __future__ import annotations

import hashlib
import math
import operator
import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import TypeVar

from orchestrator.oracle.arithmetic import Store, Word, Words, columns, compile_statements, divide, single
from orchestrator.plan.model import Field, Plan, Role
from orchestrator.plan.words import WordType


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
    words: array[float]
    results: dict[str, float]

    @property
    def state(self) -> str:
        """The `state` digest."""
        return state_digest(self.words)


def encoded(words: array[float]) -> bytes:
    """The words as they lie in files and frames: little-endian, on every machine."""
    if sys.byteorder == "little":
        return words.tobytes()
    swapped = array(words.typecode, words)
    swapped.byteswap()
    return swapped.tobytes()


def decoded(data: bytes, word: WordType) -> array[float]:
    """The words that lie so in a file."""
    words = array(word.typecode, data)
    if sys.byteorder != "little":
        words.byteswap()
    return words


def state_digest(words: array[float]) -> str:
    """SHA-256 over the words as they lie in files, in field and index order."""
    return hashlib.sha256(encoded(words)).hexdigest()


def held_words(plan: Plan, role: Role, words: array[float]) -> array[float]:
    """The words of a state vector that a role holds from update to update, in field and index order."""
    held, at = words[:0], 0
    for field in plan.system.state_fields:
        own = plan.held(field, role).coordinates
        held += words[at + own.start : at + own.stop : own.step]
        at += field.size
    return held


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
        # the samples of all owners at once: to the per-sample program it is nothing who owns one
        samples = self._samples = columns(system.rows, system.word)
        self._single = single(system.word)
        self._add, self._divide = self._single.each(operator.add), self._single.each(divide)
        self._constant = samples.constant
        self._inner = store_of(system.parameters + system.sample, samples)
        place(
            self._inner,
            system.sample,
            (words[at :: system.sample_words].tolist() for at in range(system.sample_words)),
        )
        for statement in system.forward:
            self._inner[statement.target] = [self._constant(0.0)]
        self._sample_program = compile_statements(system.contribution + system.evaluate, self._inner, samples)
        self._terms = [self._inner[field.name] for field in system.contributions]
        self._terms += [self._inner[name] for name in system.results]
        means = tuple(Field(f"mean_{field.name}", field.size) for field in system.contributions)
        self._read = system.state_fields + means
        self._outer = store_of(self._read, self._single)
        self._outer["rate"] = [system.rate]
        self._update_program = compile_statements(system.update, self._outer, self._single)

    def initial(self) -> Version:
        """Version 0."""
        system = self._plan.system
        words = array(system.word.typecode, (word for field in system.state_fields for word in field.initial))
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

    def contributions(self, version: Version) -> Callable[[Role], list[float]]:
        """What each owner adds of its own to the round that reads this version: sums, results, mass."""
        self._run_samples(version)
        return lambda role: self._sums(self._plan.rows(role))

    def _run_samples(self, version: Version) -> None:
        """The per-sample program over all samples, at this version's parameters."""
        place(self._inner, self._plan.system.parameters, map(self._constant, version.words))
        for step in self._sample_program:
            step()

    def _sums(self, rows: range) -> list[float]:
        """Contributions, results and mass of these samples, each word summed from +0.0 in their order."""
        own = slice(rows.start, rows.stop)
        sums = [reduce(self._add, word[own], 0.0) for term in self._terms for word in term]
        return [*sums, float(len(rows))]

    def _advance(self, version: Version) -> Version:
        number = version.number + 1
        system = self._plan.system
        total = self._total(version, number)
        means = (self._divide(word, total[-1]) for word in total)
        place(self._outer, self._read, (*version.words, *means))
        for step in self._update_program:
            step()
        words = array(system.word.typecode)
        for field in system.state_fields:
            words.extend(self._outer[field.name])
        return Version(number, finite(words, number, "the new state"), self._results(total))

    def _total(self, version: Version, number: int) -> list[float]:
        """The root's subtotal, which is everyone's."""
        return finite(self._combined(self.contributions(version)), number, "the combined total")

    def _combined(self, contribution: Callable[[Role], list[float]]) -> list[float]:
        """S(0), where S(i) is role i's own sums, and S(c) of its children c added in their order.

        The tree is walked down to the leaves and up again without recursion: it may be deep.
        """
        roles, children = self._plan.roles, self._plan.topology.children
        open_: list[tuple[list[float], Iterator[int]]] = []
        own, following = contribution(roles[0]), iter(children(0))
        while True:
            child = next(following, None)
            if child is not None:
                open_.append((own, following))
                own, following = contribution(roles[child]), iter(children(child))
            elif open_:
                above, following = open_.pop()
                own = list(map(self._add, above, own))
            else:
                return own

    def _results(self, total: list[float]) -> dict[str, float]:
        names = self._plan.system.results
        return dict(zip(names, total[-1 - len(names) : -1], strict=True))


Numbers = TypeVar("Numbers", "list[float]", "array[float]")


def finite(words: Numbers, number: int, what: str) -> Numbers:
    """The words, if every one is finite.

    Raises:
        NonFiniteError: at update `number`, of `what`.
    """
    if not all(map(math.isfinite, words)):
        raise NonFiniteError(number, what)
    return words


def store_of(fields: Iterable[Field], words: Words[Word]) -> Store[Word]:
    """Room for the words of these fields, +0.0 each."""
    return {field.name: [words.constant(0.0)] * field.size for field in fields}


def place(store: Store[Word], fields: Iterable[Field], words: Iterable[Word]) -> None:
    """Gives the fields these words, in order; those past the last field are left."""
    following = iter(words)
    for field in fields:
        store[field.name][:] = islice(following, field.size)
