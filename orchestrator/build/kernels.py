"""A role's part of a plan as kernels: what a card computes, in the order that the host would.

Knows the plan's kinds and what each kernel is given; knows no driver. Every kernel is one grid over samples,
over sums or over coordinates; each word is made by one thread, by the operations and in the order that
`docs/kernels.md` says, which are the host's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from orchestrator.build.ptx import Code, constant, module
from orchestrator.build.ptx_words import Base, Words
from orchestrator.plan.model import Plan, Role
from orchestrator.plan.places import (
    Extents,
    Step,
    extents,
    forward_program,
    local_program,
)
from orchestrator.plan.resident import local_row, terms_row, update_waves, work_words
from orchestrator.plan.tree import Assignment, Word
from orchestrator.plan.waves import Waved


@dataclass(frozen=True)
class Kernels:
    """A module, and how many threads each of its entries has.

    Attributes:
        ptx: the text.
        forward: threads of `forward`; 0 where there is no such entry.
        terms: of `terms`.
        sums: of `sums`.
        update: of `update_0`, `update_1`, ...
        work_words: words of the buffer `work`.
    """

    ptx: str
    forward: int
    terms: int
    sums: int
    update: tuple[int, ...]
    work_words: int


@dataclass(frozen=True)
class _Made:
    """Entries with their threads."""

    entries: tuple[tuple[str, int], ...] = ()


def kernels(plan: Plan, role: Role, capability: str) -> Kernels:
    """The kernels of one role for a card of a compute capability such as "8.6".

    Raises:
        ValueError: no kernels are made for cards of this compute capability.
    """
    forward, terms = _forward(plan, role), _terms(plan, role)
    update = _local(plan, role) if plan.system.local else _update(plan, role)
    made = (forward, terms, update)
    threads = [threads for _, threads in terms.entries] or [0, 0]
    return Kernels(
        ptx=module(capability, (text for each in made for text, _ in each.entries)),
        forward=sum(threads for _, threads in forward.entries),
        terms=threads[0],
        sums=threads[1],
        update=tuple(threads for _, threads in update.entries),
        work_words=work_words(plan, role),
    )


def _sampled(words: Extents) -> dict[str, Base]:
    """What a thread for each sample reads: parameters, its sample, its forward sums."""
    return {
        "parameters": Base("parameters"),
        "sample": Base("samples", words.sample),
        "forward": Base("total", 1),
    }


def _forward(plan: Plan, role: Role) -> _Made:
    """Each thread does one sample: its sums over the role's own coordinates."""
    program, words = forward_program(plan, role), extents(plan, role)
    if not program.steps:
        return _Made()
    code = Code(plan.system.word, words.samples)
    names = Words(code, program.places, {**_sampled(words), "combined": Base("total", 1)})
    for step in program.steps:
        names.all(step)
    return _Made(((code.entry("forward"), code.threads),))


def _terms(plan: Plan, role: Role) -> _Made:
    """Each thread does one sample in a row of `work`; then each adds up one word of all rows."""
    words = extents(plan, role)
    if not words.samples:
        return _Made()
    row = terms_row(plan, role)
    code = Code(plan.system.word, words.samples)
    names = Words(code, row.places, {**_sampled(words), "terms": Base("work", row.words)})
    for step in row.steps:
        names.all(step)
    return _Made(((code.entry("terms"), code.threads), (_sums(plan, words, row.words), words.terms)))


def _sums(plan: Plan, words: Extents, row: int) -> str:
    """From +0.0 on, one word of all rows, in the order of the samples."""
    code = Code(plan.system.word, words.terms)
    names = Words(code, {}, {"row": Base("work", 1), "sums": Base("sums", 1)})
    address, out = names.address("row"), names.address("sums")
    total = code.made("f", f"mov.{code.type}", constant(0.0, code.word))
    with code.loop(0, words.samples):
        term = code.made("f", f"ld.global.{code.type}", code.at(address, 0))
        code.put(f"add.rn.{code.type}", total, total, term)
        code.advance(address, row)
    code.put(f"st.global.{code.type}", code.at(out, 0), total)
    return code.entry("sums")


def _update(plan: Plan, role: Role) -> _Made:
    """Each thread does one coordinate, in as many kernels as have to wait for each other."""
    made, words = update_waves(plan, role), extents(plan, role)
    by_rows = plan.system.has_own_rows
    bases = {
        "state": Base("state"),
        "mean": Base("total" if by_rows else "sums", divisor=words.total - 1),
        "work": Base("work"),
    }
    entries = []
    for number, wave in enumerate(made.waves):
        code = Code(plan.system.word, max(each.step.count for each in wave))
        _put_wave(code, Words(code, made.places, bases), wave)
        entries.append((code.entry(f"update_{number}"), code.threads))
    return _Made(tuple(entries))


def _put_wave(code: Code, names: Words, wave: Sequence[Waved]) -> None:
    def region(waved: Waved) -> int:
        return code.threads if waved.is_everywhere else waved.step.count

    # those of other regions never wait for each other, but for what is everywhere, which comes first
    for threads, some in groupby(sorted(wave, key=region, reverse=True), region):
        with names.region(threads):
            for waved in some:
                names.here(waved.step)


def _local(plan: Plan, role: Role) -> _Made:
    """Each thread takes one coordinate from sample to sample.

    What all coordinates share every thread computes for itself, in a row of `work`. The first thread's comes
    into the state by a kernel of its own, since threads may begin after others have ended.
    """
    program, words, row = local_program(plan, role), extents(plan, role), local_row(plan, role)
    if not row.threads:
        return _Made()
    code = Code(plan.system.word, row.threads)
    bases = {"state": Base("state"), "sample": Base("samples", moves=True), "row": Base("work", row.words)}
    states = {_at_first(name): program.places[name] for name in row.lasting}
    names = Words(code, {**program.places, **row.places, **states}, bases)
    for name, size in row.lasting.items():
        names.all(_copy(name, _at_first(name), size))
    with code.loop(0, words.samples):
        names.forget()
        for step in row.steps:
            if step.part is None:
                names.all(step)
            else:
                with names.region(step.count):
                    names.here(step)
        code.advance(names.address("sample"), words.sample)
    entries = [(code.entry("update_0"), code.threads)]
    if row.lasting:
        code = Code(plan.system.word, max(row.lasting.values()))
        names = Words(code, {**row.places, **states}, {"state": bases["state"], "row": Base("work")})
        copies = [_copy(_at_first(name), name, size) for name, size in row.lasting.items()]
        _put_wave(code, names, [Waved(each, is_everywhere=False, is_stored=False) for each in copies])
        entries.append((code.entry("update_1"), code.threads))
    return _Made(tuple(entries))


def _at_first(name: str) -> str:
    """What a shared field is called as it was before the first sample: no name of a system has a blank."""
    return f"{name} at first"


def _copy(target: str, source: str, size: int) -> Step:
    return Step(Assignment(target, size, Word(source, None if size > 1 else 0), local=False), None)
