"""Separability: may each coordinate of the update be computed by its owner alone?

An update is separable if and only if a coordinate reads only its own words (`X[i]` at the same i), its own
mean (`mean_X[i]`), `rate`, constants and shared words, and shared words read neither means nor words of one
owner. A temporary is what it reads: shared where all of that is, else its coordinates' own. Whatever is
partitioned rests on this; where nothing is, nobody is held to it.

Knows a system's typed update and the text that it was parsed from, for the places; must not know how many
owners there are or which coordinate is whose: an update is separable for every way to deal them out, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.errors import Label, Refusal
from orchestrator.plan import grammar
from orchestrator.plan.programs import MEAN, Programs
from orchestrator.plan.tree import Assignment
from orchestrator.spec.system import FieldSpec, Statement, SystemSpec

_REPLICATE = "replicated ownership computes it everywhere"
_APART = "in a system of this kind an owner has nothing but its own coordinates"


@dataclass(frozen=True)
class _Read:
    """A name that a statement reads, as far as it matters whose words those are."""

    name: grammar.Name
    whole: bool

    @property
    def shown(self) -> str:
        if self.whole:
            return f"all of {self.name.text}"
        return self.name.text if self.name.index is None else f"{self.name.text}[{self.name.index}]"


def separability_refusals(spec: SystemSpec, programs: Programs) -> tuple[Refusal, ...]:
    """Every reason why the coordinates of this system cannot be computed apart; none if they can be.

    Where owners have columns instead of rows, what one sample does to a coordinate must come apart as well;
    there a column of one word is shared, and so are forward sums.

    Args:
        spec: the system as declared.
        programs: its typed programs.
    """
    fields = spec.parameters + spec.state
    names = [field.name for field in fields]
    size = {"rate": 1} | {field.name: field.size for field in fields}
    shared = {"rate"} | {field.name for field in fields if field.shared}
    means = {f"{MEAN}{field.name}": field.size for field in programs.contributions}
    columns = {column.name: column.size for column in spec.sample}
    one_word = {name for name, words in columns.items() if words == 1}
    update = _Walk(shared, size | means, names, _REPLICATE if spec.kind == "data-parallel" else _APART)
    found = list(update.program(spec.update, programs.update))
    if spec.kind == "coordinate-owned":
        forward = {statement.target: 1 for statement in programs.forward}
        alike = shared | one_word | forward.keys() | set(programs.results)
        samples = _Walk(alike, size | columns | forward, names, _APART)
        found += samples.program(spec.contribution + spec.evaluate, programs.contribution + programs.evaluate)
    if spec.kind == "independent":
        update = _Walk(shared | one_word, size | columns, names, _APART)
        found += update.program(spec.local, programs.local)
        apart = [at for at, each in enumerate(programs.evaluate) if each.target not in programs.results]
        found += update.program([spec.evaluate[at] for at in apart], [programs.evaluate[at] for at in apart])
    found += update.overclaimed(spec.state)
    return tuple(sorted(found, key=lambda refusal: refusal.where))


class _Walk:
    """Walks programs in order; knows of each name how many words it has and whether they are shared."""

    def __init__(
        self, shared: set[str], size: Mapping[str, int], fields: Iterable[str], way_out: str
    ) -> None:
        self._way_out = way_out
        self._shared = set(shared)
        self._size = dict(size)
        self._fields = frozenset(fields)
        self._given = frozenset(size)
        self._together: set[str] = set()
        self._refused: set[str] = set()

    def program(
        self, statements: Sequence[Statement], assignments: Sequence[Assignment]
    ) -> Iterator[Refusal]:
        """What of a program does not come apart."""
        for statement, assignment in zip(statements, assignments, strict=True):
            yield from self.statement(statement, assignment)

    def statement(self, statement: Statement, assignment: Assignment) -> Iterator[Refusal]:
        """What of one statement does not come apart, each read at its place."""
        reads = tuple(_reads(grammar.parse(statement.text).value))
        apart = [read for read in reads if read.name.text not in self._shared | self._refused]
        if assignment.local and not apart:
            self._shared.add(assignment.target)
        is_shared = assignment.target in self._shared
        wrong = apart if is_shared else [read for read in apart if not self._is_own(read, assignment.size)]
        stepping = {read.name.text for read in apart if self._is_own(read, assignment.size)}
        if len(stepping | {assignment.target}) > 1:
            self._together |= stepping | {assignment.target}
        self._together |= {read.name.text for read in wrong}  # used, if not as it may be
        if assignment.local:
            self._size[assignment.target] = assignment.size
            if wrong:  # said once; what reads it is no fault of its own
                self._refused.add(assignment.target)
        for read in wrong:
            message, hint = self._shared_reads(read) if is_shared else self._others_word(read, assignment)
            where = statement.at(read.name.offset)
            yield Refusal(Label.SEPARABILITY, f"{assignment.target} {message}", where, statement.key, hint)

    def overclaimed(self, fields: tuple[FieldSpec, ...]) -> Iterator[Refusal]:
        """State fields of which no coordinate has a use: owners would hold their words for nothing."""
        for field in fields:
            if field.name not in self._together and not field.shared:
                got = f"{field.size} {'word' if field.size == 1 else 'words'} that step with nothing else"
                expected = f"{field.name}{'[i]' * (field.size > 1)} beside other words of its coordinate"
                message = (
                    f"{field.name} claims words that no coordinate uses (got {got}, expected {expected})"
                )
                hint = f"leave {field.name} out, or declare as many words as step together"
                yield Refusal(Label.SEPARABILITY, message, field.where, f"state.{field.name}", hint)

    def _is_own(self, read: _Read, size: int) -> bool:
        """Whether coordinate i reads word i alone: stepping with its statement, or the one word of both."""
        if read.name.index == "i":
            return True
        return size == 1 and (self._size[read.name.text] == 1 if read.whole else not read.name.index)

    def _shared_reads(self, read: _Read) -> tuple[str, str]:
        name = read.name.text
        is_mean = name.startswith(MEAN) and name in self._given - self._fields
        what = "a mean" if is_mean else "a word of one owner"
        expected = "rate, constants and shared words alone"
        return f"is shared and reads {what} (got {read.shown}, expected {expected})", self._way_out

    def _others_word(self, read: _Read, assignment: Assignment) -> tuple[str, str]:
        name = read.name.text
        own = "its own coordinate alone" if self._size[name] == assignment.size else "shared words"
        step = f"{name}[i]" if self._size[name] == assignment.size > 1 else own
        message = f"reads words of other owners in each coordinate (got {read.shown}, expected {step})"
        if name in self._given - self._fields:  # a mean, or a column
            return message, self._way_out
        what = name if name in self._fields else f"what {name} is made of"
        return message, f"declare {what} `shared: true` if it reads no mean; {self._way_out}"


def _reads(node: grammar.Raw) -> Iterator[_Read]:
    match node:
        case grammar.Name():
            yield _Read(node, whole=False)
        case grammar.Call("sqrt", arguments):
            yield from (read for argument in arguments for read in _reads(argument))
        case grammar.Call():
            yield from (_Read(name, whole=True) for name in grammar.names(node))
        case grammar.Operation(_, left, right):
            if left is not None:
                yield from _reads(left)
            yield from _reads(right)
        case _:
            return
