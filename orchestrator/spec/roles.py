"""The roles that a run declares, and the keys that stand for them in the rest of its file.

Knows node sets and the raw document: a file that is wrong elsewhere is still checked here, so that all its
faults are told at once. Must not know what stands under a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.errors import Label, Refusal
from orchestrator.spec.document import Document
from orchestrator.spec.faults import MANY, one_of, suggest
from orchestrator.spec.names import Names, Register, expand
from orchestrator.spec.nodesets import MAX_BLOCKS, Block, NodeSetError, join
from orchestrator.spec.places import visible
from orchestrator.spec.repeated import Repeated, repeated

MAX_ROLES = 200_000
_MANY_BLOCKS = 4 * MAX_BLOCKS


def declared_roles(document: Document, most: int = MAX_ROLES) -> tuple[Names, tuple[Refusal, ...]]:
    """Gives the declared roles in order, and refuses what is no name, stands twice or is more than `most`."""
    blocks: list[Block] = []
    register, count = Register(), 0
    refusals: list[Refusal] = []
    declared = document.get("roles")
    for index, text in enumerate(declared if isinstance(declared, list) else ()):
        if not isinstance(text, str):
            continue
        try:
            expanded = expand(text, most)
        except NodeSetError as error:
            refusals.append(document.at(Label.VALUE_FORMAT, f"is no node set {error}", ("roles", index)))
            continue
        known = next(filter(None, map(register.first_known, expanded.blocks)), None)
        if known is not None:
            message = f"role `{known}` stands twice (got it again, expected every role once)"
            refusals.append(document.at(Label.NAME_DUPLICATE, message, ("roles", index)))
        for block in _free(expanded, register):
            register.add(block, count)
            join(blocks, block)
            count += block.count
        if refusal := _too_many(document, index, count, len(blocks), most):
            refusals.append(refusal)
            break
    return Names(tuple(blocks)), tuple(refusals)


def _too_many(document: Document, index: int, names: int, blocks: int, most: int) -> Refusal | None:
    if names > most:
        message = f"there are too many roles (got {names} up to here, expected at most {most})"
    elif blocks > MAX_BLOCKS:
        expected = f"at most {MAX_BLOCKS} ranges, in the last number of a name"
        message = f"the roles are in too many pieces (got {blocks} up to here, expected {expected})"
    else:
        return None
    return document.at(Label.VALUE_RANGE, message, ("roles", index))


def role_sets(
    document: Document, path: tuple[str, ...], names: Names
) -> tuple[dict[str, tuple[range, ...]], tuple[Refusal, ...]]:
    """Gives for the keys of a mapping by role the indices of their roles; where two have one, to the first.

    Refuses unknown roles and roles that two keys name.
    """
    sets: dict[str, tuple[range, ...]] = {}
    refusals: list[Refusal] = []
    mapping = document.get(*path)
    taken, wrong = Register(), 0
    for key in mapping if isinstance(mapping, dict) else ():
        if wrong > _MANY_BLOCKS:
            break  # they are refused already, and a short key can stand for very many blocks
        try:
            expanded = expand(key, MAX_ROLES)
        except NodeSetError as error:
            refusals.append(
                document.at(Label.VALUE_FORMAT, f"is no node set {error}", (*path, key), on_key=True)
            )
            continue
        fault = next(filter(None, (_fault(block, names, taken) for block in expanded.blocks)), None)
        if fault is not None:
            wrong += len(expanded.blocks)
            may_suggest = len(refusals) < MANY
            refusals.append(_refusal(document, (*path, key), fault, names, may_suggest=may_suggest))
        sets[key] = tuple(_take(expanded, names, taken))
    return sets, tuple(refusals)


def _fault(block: Block, names: Names, taken: Register) -> str | None:
    """Gives the first name of a block that is no role, or that a key before has."""
    firsts = [cut.offset for cut in names.cut(block) if cut.index is None]
    firsts += [cut.offset for cut in taken.cut(block) if cut.index is not None]
    return block.name(min(firsts)) if firsts else None


def _refusal(
    document: Document, path: tuple[str, ...], name: str, names: Names, *, may_suggest: bool
) -> Refusal:
    if name in names:
        section = ".".join(path[:-1])
        message = f"role `{name}` stands twice in `{section}` (got it again, expected every role once)"
        return document.at(Label.NAME_DUPLICATE, message, path, on_key=True)
    message = f"there is no role `{visible(name)}` (got `{visible(path[-1])}`, expected {one_of(names)})"
    hint = suggest(name, names) if may_suggest else ""
    return document.at(Label.ROLE_UNKNOWN, message, path, on_key=True, hint=hint)


def _free(expanded: Names, taken: Register) -> list[Block]:
    """Gives what of some names stands nowhere yet."""
    return [
        block.part(cut.offset, cut.count)
        for block in expanded.blocks
        for cut in taken.cut(block)
        if cut.index is None
    ]


def _take(expanded: Names, names: Names, taken: Register) -> Iterator[range]:
    """Yields the indices of the roles that a key is the first to name, and notes that it has them."""
    for block in _free(expanded, taken):
        taken.add(block, 0)
        for cut in names.cut(block):
            if cut.index is not None:
                yield range(cut.index, cut.index + cut.count)


def missing(sets: Mapping[str, tuple[range, ...]], count: int) -> Iterator[range]:
    """Yields the indices of the roles, of so many, that no key names, in order."""
    end = 0
    for start, stop, _ in (*_in_order(sets), (count, count, "")):
        if start > end:
            yield range(end, start)
        end = stop


def by_role(
    sets: Mapping[str, tuple[range, ...]], count: int, values: Mapping[str, Any]
) -> Repeated[tuple[str, Any]]:
    """Gives each of so many roles, in order, its key and the value there; ("", None) where none names it."""
    runs: list[tuple[tuple[str, Any], int]] = []
    end = 0
    for start, stop, key in (*_in_order(sets), (count, count, "")):
        runs.append((("", None), start - end))
        runs.append(((key, values.get(key)), stop - start))
        end = stop
    return repeated(runs, lambda each: each[0])


def _in_order(sets: Mapping[str, tuple[range, ...]]) -> list[tuple[int, int, str]]:
    return sorted((each.start, each.stop, key) for key, ranges in sets.items() for each in ranges)
