"""The roles that a run declares, and the keys that stand for them in the rest of its file.

Knows node sets and the raw document: a file that is wrong elsewhere is still checked here, so that all its
faults are told at once. Must not know what stands under a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.errors import Label, Refusal
from orchestrator.spec.document import Document
from orchestrator.spec.faults import MANY, one_of, suggest
from orchestrator.spec.nodesets import MAX_NAMES, NodeSetError, assign, expand
from orchestrator.spec.places import visible

_MANY_NAMES = 4 * MAX_NAMES


def declared_roles(document: Document) -> tuple[tuple[str, ...], tuple[Refusal, ...]]:
    """Expands the declared roles, in order, and refuses what is no name or stands twice."""
    names: dict[str, None] = {}  # in order
    refusals: list[Refusal] = []
    declared = document.get("roles")
    for index, text in enumerate(declared if isinstance(declared, list) else ()):
        if not isinstance(text, str):
            continue
        try:
            expanded = expand(text)
        except NodeSetError as error:
            refusals.append(document.at(Label.VALUE_FORMAT, f"is no node set {error}", ("roles", index)))
            continue
        for name in expanded:
            if name in names:
                message = f"role `{name}` stands twice (got it again, expected every role once)"
                refusals.append(document.at(Label.NAME_DUPLICATE, message, ("roles", index)))
                break
        names.update(dict.fromkeys(expanded))
        if len(names) > MAX_NAMES:
            message = f"there are too many roles (got {len(names)} up to here, expected at most {MAX_NAMES})"
            refusals.append(document.at(Label.VALUE_RANGE, message, ("roles", index)))
            break
    return tuple(names), tuple(refusals)


def role_sets(
    document: Document, section: str, names: tuple[str, ...]
) -> tuple[dict[str, tuple[str, ...]], tuple[Refusal, ...]]:
    """Expands the keys of a mapping by role, and refuses unknown roles and roles that two keys name."""
    sets: dict[str, tuple[str, ...]] = {}
    refusals: list[Refusal] = []
    mapping = document.get(section)
    taken: set[str] = set()
    known, expansions = frozenset(names), 0
    for key in mapping if isinstance(mapping, dict) else ():
        if expansions > _MANY_NAMES:
            break  # most of them are refused already: no role stands twice
        try:
            expanded = expand(key)
        except NodeSetError as error:
            refusals.append(
                document.at(Label.VALUE_FORMAT, f"is no node set {error}", (section, key), on_key=True)
            )
            continue
        expansions += len(expanded)
        for name in expanded:
            if name not in known:
                message = (
                    f"there is no role `{visible(name)}` (got `{visible(key)}`, expected {one_of(names)})"
                )
                hint = suggest(name, names) if len(refusals) < MANY else ""
                refusals.append(
                    document.at(Label.ROLE_UNKNOWN, message, (section, key), on_key=True, hint=hint)
                )
                break
            if name in taken:
                message = (
                    f"role `{name}` stands twice in `{section}` (got it again, expected every role once)"
                )
                refusals.append(document.at(Label.NAME_DUPLICATE, message, (section, key), on_key=True))
                break
        taken.update(expanded)
        sets[key] = expanded
    return sets, tuple(refusals)


def by_role(
    document: Document, section: str, names: tuple[str, ...], values: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Gives the values of a mapping by role in role order; None for a role that it leaves out."""
    chosen = assign(role_sets(document, section, names)[0])
    return tuple(values[chosen[name]] if name in chosen else None for name in names)
